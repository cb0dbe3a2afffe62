"""Apache Beam writes what the local runner writes. It is an extra: keras-transformer-nmt[beam]."""

import gzip

import pytest

from keras_transformer.kit.parsing.linearisation import Linearisation
from pipelines.prepare import sharding
from pipelines.prepare.metadata import read_metadata
from pipelines.prepare.preparation import PreparationConfig, prepare
from pipelines.prepare.sharding import Sharding
from pipelines.sources.files import FileSource
from pipelines.sources.treebank import TreebankSource
from tests.data_folders import contents, interrupt
from tests.refusals import refused

pytest.importorskip("apache_beam", reason="install: pip install '.[beam]'")
from pipelines.prepare.beam import training_writer

pytestmark = pytest.mark.slow  # another engine
CONFIG = PreparationConfig(vocab_size=290, max_length=40)
WORKERS = {
    "one": ["--direct_num_workers=1"],
    "three threads": ["--direct_num_workers=3", "--direct_running_mode=multi_threading"],
    # The protocol by which pipelines are sent to Flink and Spark.
    "portable": ["--runner=PortableRunner", "--job_endpoint=embed", "--environment_type=LOOPBACK"],
}


@pytest.fixture(scope="module", autouse=True)
def small():
    """Blocks and shards small enough for a small corpus to have several."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sharding, "BLOCK_PAIRS", 60)
        patch.setattr(sharding, "_PAIRS_PER_SHARD", 75)
        yield


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """Three files a side, one of them compressed: 5 blocks, two of them of several files."""
    folder = tmp_path_factory.mktemp("text")
    pairs = [(f"a cat {n}", f"eine Katze {n}") for n in range(290)]
    pairs[3], pairs[130], pairs[131] = ("", "x"), ("so long " * 40, "y"), ("z", " \t")

    def write(name, lines):
        path = folder / name
        text = "".join(f"{line}\n" for line in lines).encode()
        path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
        return str(path)

    bounds = {"0.{}": (0, 125), "1.{}.gz": (125, 140), "2.{}": (140, 290)}
    train = tuple(
        [
            write(name.format(f"{side}"), [pair[side] for pair in pairs[slice(*span)]])
            for name, span in bounds.items()
        ]
        for side in (0, 1)
    )
    test = tuple([write(f"test.{side}", [pair[side] for pair in pairs[:7]])] for side in (0, 1))
    return FileSource({"train": train, "test": test})


@pytest.fixture(scope="module")
def local(source, tmp_path_factory):
    """The data set of the local runner."""
    folder = tmp_path_factory.mktemp("local")
    prepare(source, folder, CONFIG)
    info = read_metadata(folder).splits["train"]
    assert (info.pairs, info.dropped) == (287, {"blank": 2, "too_long": 1})
    assert len(info.shards) == 4
    return folder


@pytest.mark.parametrize("options", WORKERS.values(), ids=list(WORKERS))
def test_the_data_set_is_that_of_the_local_runner(source, local, tmp_path, monkeypatch, options):
    encoded = interrupt(monkeypatch, Sharding, "write_block", 5 + 1)  # of train, and of test
    result = prepare(source, tmp_path, CONFIG, training_writer(options))
    assert result["pairs"] == {"train": 287, "test": 6} and not result["up_to_date"]
    assert contents(tmp_path) == contents(local)
    assert len(encoded) == 5 + 1
    assert prepare(source, tmp_path, CONFIG, training_writer(options))["up_to_date"]


def test_a_source_that_is_not_of_files(tmp_path):
    trees = tmp_path / "trees.mrg"
    nouns = ("dog", "seal", "crowd", "engine", "orchestra") * 20
    trees.write_text("".join(f"(S (NP (DT The) (NN {noun})) (VP (VBZ waits)))\n" for noun in nouns))
    config = PreparationConfig(vocab_size=290)
    for name, write_training in (("local", None), ("beam", training_writer([]))):
        source = TreebankSource({"train": [str(trees)]}, Linearisation())
        prepare(source, tmp_path / name, config, write_training)
    assert contents(tmp_path / "local") == contents(tmp_path / "beam")


def test_pairs_that_are_selected_and_augmented(source, tmp_path):
    selection = {"length_limits": [3, 3], "weights": [1.5, 0.5, 2]}
    shares = {"upper": 0.2, "typos": 0.3, "words": 0.1}
    config = PreparationConfig(vocab_size=330, max_length=40, augment=shares, **selection)
    for name, write_training in (("local", None), ("beam", training_writer([]))):
        prepare(source, tmp_path / name, config, write_training)
    assert contents(tmp_path / "local") == contents(tmp_path / "beam")
    assert len(contents(tmp_path / "beam")) > 6  # several shards


@pytest.mark.parametrize("name", ["write_block", "write_shard"])
def test_a_failed_pipeline_is_one_line_and_leaves_nothing(
    source, local, tmp_path, monkeypatch, name
):
    with monkeypatch.context() as patch:
        interrupt(patch, Sharding, name, 2)
        with refused("runner", "disk full"):
            prepare(source, tmp_path, CONFIG, training_writer([]))
    assert not list(tmp_path.iterdir())
    prepare(source, tmp_path, CONFIG, training_writer([]))
    assert contents(tmp_path) == contents(local)


@pytest.mark.parametrize(
    ("option", "received"),
    [
        ("--runner=NoRunner", "NoRunner"),
        ("--direct_num_workers=two", "direct_num_workers: invalid int value: 'two'"),
    ],
)
def test_flags_that_beam_refuses(option, received):
    with refused("pipeline_options", received):
        training_writer([option])
