"""The table of sources: every source by its name, in Python, as the program makes it."""

from pathlib import Path

import pytest

import keras_transformer as kt
from keras_transformer.kit.parsing.linearisation import Linearisation
from keras_transformer.support.fields import options_of
from pipelines.prepare.preparation import prepare
from pipelines.prepare.preparation_config import PreparationConfig
from pipelines.sources.files import FileSource
from pipelines.sources.source_options import OPTION_NAMES, SOURCES, make_source
from pipelines.sources.treebank import TreebankSource
from tests.refusals import refused

TREES = "(S (NP (DT The) (NN dog)) (VP (VBZ barks)))\n" * 9
CONFIG = PreparationConfig()


@pytest.fixture
def trees(tmp_path):
    """A pattern for two files of trees, and the files."""
    paths = [tmp_path / f"{name}.mrg" for name in "ab"]
    for path in paths:
        path.write_text(TREES)
    return tmp_path / "*.mrg", [str(path) for path in paths]


def contents(folder):
    return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def test_every_option_belongs_to_a_source():
    assert {name: len(options_of(options)) for name, options in SOURCES.items()} == {
        "files": 19,
        "treebank": 5,
        "tfds:NAME": 3,
    }
    assert len(OPTION_NAMES) == 19 + 5 + 3 - 2  # the languages have two sources
    assert not set(OPTION_NAMES) & set(vars(CONFIG))


@pytest.mark.parametrize("name", SOURCES)
def test_options_of_other_sources_are_refused(name):
    dataset = name.replace("NAME", "some_set")
    for option in set(OPTION_NAMES) - set(options_of(SOURCES[name])):
        with refused(option, "some value", about=f"dataset={dataset}"):
            make_source(dataset, {option: "some value"})


@pytest.mark.parametrize("dataset", ["", "file", "files:x", "treebank:", "tfds", "x:y", None, 5])
def test_unknown_sources_are_refused(dataset):
    with refused("dataset", dataset, about="files, treebank, tfds:NAME"):
        make_source(dataset, {})


@pytest.mark.tensorflow
def test_files_are_the_default(tmp_path):
    paths = [tmp_path / "a.en", tmp_path / "a.de"]
    for path in paths:
        path.write_text("a dog\n" * 9)
    options = {"vocab_size": 268, "max_length": 40}
    kt.prepare(tmp_path / "default", *paths, **options)
    kt.prepare(
        tmp_path / "named", dataset="files", train_source=paths[0], train_target=paths[1], **options
    )
    source = FileSource({"train": ([str(paths[0])], [str(paths[1])])})
    prepare(source, tmp_path / "made", PreparationConfig(**options))
    made = contents(tmp_path / "made")
    assert contents(tmp_path / "default") == contents(tmp_path / "named") == made


@pytest.mark.tensorflow
def test_a_treebank(tmp_path, trees):
    pattern, files = trees
    options = {"vocab_size": 300, "max_length": 64}
    way = {"tree_words": "tags", "tree_unaries": "collapse"}
    result = kt.prepare(
        tmp_path / "data",
        dataset="treebank",
        train_trees=pattern,
        test_trees=files[0],
        **way,
        **options,
    )
    assert result["pairs"] == {"train": 18, "test": 9}
    source = TreebankSource({"train": files, "test": files[:1]}, Linearisation("tags", "collapse"))
    prepare(source, tmp_path / "made", PreparationConfig(**options))
    assert contents(tmp_path / "data") == contents(tmp_path / "made")


@pytest.mark.parametrize(
    ("options", "argument", "received"),
    [
        ({"train_trees": ()}, "train_trees", "none"),
        ({"train_trees": 5}, "train_trees", "5"),
        ({"train_trees": "no*"}, "train_trees", "no*"),
        ({"tree_words": "pos"}, "tree_words", "pos"),
        ({"tree_unaries": 1}, "tree_unaries", "1"),
        ({"tokenizer": "wordpiece"}, "tokenizer", "wordpiece"),
        ({"dedupe": True}, "dedupe", "True"),
        ({"weights": [1.0]}, "weights", "1.0"),
        ({"augment": {"upper": 0.5}}, "augment", "upper"),
    ],
)
def test_what_does_not_suit_trees_is_refused(tmp_path, trees, options, argument, received):
    options = {"train_trees": trees[0], **options}
    with refused(argument, received):
        kt.prepare(tmp_path / "data", dataset="treebank", **options)
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("dataset", "options", "argument", "received"),
    [
        ("treebank", {"train_source": "a.en"}, "train_source", "a.en"),
        ("tfds:some_set", {"target_language": "de"}, "source_language", "none"),
        ("tfds:some_set", {"source_language": "de"}, "target_language", "none"),
        ("tfds:some_set", {"source_language": 5}, "source_language", "5"),
        ("tfds:some_set", {"name": "x"}, "options", "'name'"),
    ],
)
def test_wrong_options_are_refused(tmp_path, dataset, options, argument, received):
    with refused(argument, received):
        kt.prepare(tmp_path / "data", dataset=dataset, **options)
    assert not (tmp_path / "data").exists()
