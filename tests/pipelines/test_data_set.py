import re
from collections import Counter

import numpy as np
import pytest

from keras_transformer.core.vocabulary.pair import VocabularyPair
from pipelines.batches.data_set import DataSet
from pipelines.prepare.preparation import PreparationConfig, prepare
from pipelines.sources.files import FileSource
from tests.refusals import refused

WORDS = ["dog", "cat", "house", "tree", "bird", "fish", "red", "blue", "green", "sees", "eats"]


def sentences(count, seed):
    generator = np.random.default_rng(seed)
    return [" ".join(generator.choice(WORDS, size=generator.integers(1, 12))) for _ in range(count)]


@pytest.fixture(scope="module")
def text():
    """Split -> (sources, targets); the validation text has a blank pair and odd characters."""
    return {
        "train": (sentences(200, 1), sentences(200, 2)),
        "validation": (["", "a\u2028b\x85 ü", *sentences(20, 3)], ["x", "c", *sentences(20, 4)]),
    }


@pytest.fixture(scope="module")
def data_dir(text, tmp_path_factory):
    folder = tmp_path_factory.mktemp("translation")
    files = {}
    for split, sides in text.items():
        paths = [folder / f"{split}.{side}" for side in ("source", "target")]
        for path, lines in zip(paths, sides, strict=True):
            path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="")
        files[split] = tuple([str(path)] for path in paths)
    prepare(FileSource(files), folder / "data", PreparationConfig(vocab_size=330))
    return folder / "data"


def decoded(batches, subwords):
    """The text of batches, as a multiset of pairs; checks that each row ends in EOS."""
    pairs = Counter()
    for source, target in batches:
        for side in (source, target):
            lengths = np.count_nonzero(side, axis=1)
            assert (np.asarray(side)[np.arange(len(side)), lengths - 1] == 2).all()
        texts, targets = (subwords.decode(np.asarray(side).tolist()) for side in (source, target))
        pairs.update(zip(texts, targets, strict=True))
    return pairs


def test_an_epoch_of_training_is_the_training_text(text, data_dir):
    batches, rows = [], 0
    iterator = iter(DataSet.open(data_dir).training_batches(300, seed=1))
    while rows < 200:
        batches.append(next(iterator))
        rows += len(batches[-1][0])
        assert max(np.size(side) for side in batches[-1]) <= 300
    expected = Counter(zip(*text["train"], strict=True))
    assert decoded(batches, VocabularyPair.load(data_dir).target) == expected


def test_element_spec_leaves_shapes_open(data_dir):
    for spec in DataSet.open(data_dir).training_batches(300, 1).element_spec:
        assert spec.shape.as_list() == [None, None] and spec.dtype == "int32"


def test_evaluation_sees_each_usable_pair_once(text, data_dir):
    expected = Counter(zip(*(side[1:] for side in text["validation"]), strict=True))
    for budget in (300, 5):  # the second is less than a sentence
        batches = list(DataSet.open(data_dir).evaluation_batches("validation", budget))
        assert decoded(batches, VocabularyPair.load(data_dir).target) == expected


def test_text_is_kept_to_the_letter(text, data_dir):
    assert DataSet.open(data_dir).text("validation") == text["validation"]


def test_a_budget_below_the_longest_sentence_is_refused(data_dir):
    with refused("tokens_per_batch", "9") as error:
        DataSet.open(data_dir).training_batches(9, seed=1)
    longest = int(re.search(r"at least (\d+)", error.value.rule)[1])
    next(iter(DataSet.open(data_dir).training_batches(longest, seed=1)))


def test_unknown_splits_are_named(data_dir):
    with refused("split", "test", about="train, validation"):
        DataSet.open(data_dir).evaluation_batches("test", 300)
    with refused("split", "train"):
        DataSet.open(data_dir).text("train")
