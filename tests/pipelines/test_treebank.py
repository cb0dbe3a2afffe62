import gzip

import numpy as np
import pytest

from keras_transformer.core.vocabulary.pair import VocabularyPair
from keras_transformer.kit.parsing.linearisation import Linearisation
from pipelines.batches.data_set import DataSet
from pipelines.prepare.metadata import read_metadata
from pipelines.prepare.preparation import PreparationConfig, prepare
from pipelines.sources.treebank import TreebankSource
from tests.refusals import refused

TRAIN = """
( (S (NP-SBJ-1 (DT The) (NN dog)) (VP (VBD was) (VP (VBN seen) (NP-1 (-NONE- *)))) (. .)) )
( (S (NP-SBJ (NN IN)) (VP (VBZ binds) (NP (-LRB- -LRB-) (NN XXL) (-RRB- -RRB-)))) )
( (FRAG (ADVP|PRT (RB up))) )
"""
TEST = "(S (INTJ (UH Oh)) (, ,) (NP (NN dog)))\n" + f"(S{' (NN dog)' * 70})\n"


@pytest.fixture
def files(tmp_path):
    train, test = tmp_path / "train.mrg", tmp_path / "test.mrg.gz"
    train.write_text(TRAIN * 5)
    test.write_bytes(gzip.compress(TEST.encode()))
    return {"train": [str(train)], "test": [str(test)]}


def make(files, folder, way):
    source = TreebankSource(files, way)
    return prepare(source, folder, PreparationConfig(vocab_size=330, max_length=64))


def test_pairs_are_words_and_the_tokens_of_the_cleaned_tree(files):
    source = TreebankSource(files, Linearisation("tags"))
    survey = source.survey()
    assert survey.counts == {"train": 15, "test": 2}
    first, second, third, *_ = source.pairs("train")
    assert first == ("The dog was seen .", "(S (NP DT NN )NP (VP VBD (VP VBN )VP )VP . )S")
    assert second[0] == "IN binds -LRB- XXL -RRB-"
    assert third == ("up", "(FRAG (ADVP RB )ADVP )FRAG")
    brackets = [f"{side}{label}" for side in "()" for label in ("ADVP", "FRAG", "NP", "S", "VP")]
    tags = ["-LRB-", "-RRB-", ".", "DT", "NN", "RB", "VBD", "VBN", "VBZ"]
    assert survey.symbols == brackets + tags  # those of training alone


@pytest.mark.parametrize(
    ("words", "unaries"), [("xx", "keep"), ("tags", "collapse"), ("keep", "keep")]
)
def test_a_data_directory_has_one_id_for_each_symbol(files, tmp_path, words, unaries):
    way = Linearisation(words, unaries)
    result = make(files, tmp_path / "data", way)
    assert result["pairs"] == {"train": 15, "test": 1}
    assert result["dropped"]["test"] == {"blank": 0, "too_long": 1}
    metadata = read_metadata(tmp_path / "data")
    assert metadata.task == "parsing"
    assert metadata.task_options == {"words": words, "unaries": unaries}
    subwords = VocabularyPair.load(tmp_path / "data").target
    source = TreebankSource(files, way)
    symbols = source.survey().symbols
    pairs = list(source.pairs("train"))
    # Text comes back, also where a word begins with a symbol: "XXL", or "IN" in full.
    for side in zip(*pairs, strict=True):
        assert subwords.decode(subwords.encode(list(side))) == list(side)
    ids = dict(zip(symbols, subwords.encode(symbols), strict=True))
    assert all(len(found) == 1 for found in ids.values())
    for _, target in pairs:
        expected = [subwords.encode([token])[0] for token in target.split(" ")]
        assert subwords.encode([target]) == [[one for token in expected for one in token]]
    (batch,) = DataSet.open(tmp_path / "data").evaluation_batches("test", 512)
    np.testing.assert_array_equal(batch[1][0, -1], 2)


def test_no_gold_tree_is_lost_and_none_is_changed_but_by_cleaning(files, tmp_path):
    make(files, tmp_path / "data", Linearisation())
    gold = DataSet.open(tmp_path / "data").trees("test")
    assert "".join(f"{tree}\n" for tree in gold) == TEST
    sentences, targets = DataSet.open(tmp_path / "data").text("test")
    assert [" ".join(tree.words()) for tree in gold] == sentences
    assert targets[0] == "(S (INTJ XX )INTJ XX (NP XX )NP )S"
    with refused("split", "train", about="trees"):
        DataSet.open(tmp_path / "data").trees("train")
    trees = tmp_path / "data" / "test.trees.txt"
    trees.write_text(TEST.replace("NP", "VP", 1))
    with refused(None, "a changed file", place=trees):
        DataSet.open(tmp_path / "data").trees("test")
    with refused(None, "a changed file", place=trees):
        make(files, tmp_path / "data", Linearisation())


def test_another_linearisation_is_another_data_set(files, tmp_path):
    make(files, tmp_path / "data", Linearisation())
    assert make(files, tmp_path / "data", Linearisation())["up_to_date"]
    with refused("data_dir", "tags, there: xx", about="tree_words"):
        make(files, tmp_path / "data", Linearisation("tags"))


def test_bad_trees_are_named_and_leave_nothing(files, tmp_path):
    bad = tmp_path / "bad.mrg"
    bad.write_text("(S (NN a))\n(S (NN b)\n")
    files["validation"] = [str(bad)]
    with refused("brackets", "1 open", place="bad.mrg:2"):
        make(files, tmp_path / "data", Linearisation())
    assert not (tmp_path / "data" / "metadata.json").exists()
    files["validation"] = [str(tmp_path / "none.mrg")]
    with refused("validation_trees", tmp_path / "none.mrg"):
        TreebankSource(files, Linearisation())


def test_translation_data_have_no_gold_trees(prepared):
    with refused("data_dir", prepared, about="treebank"):
        DataSet.open(prepared).trees("test")
