"""Damaged data sets: found and named in use, and repaired by preparing them again."""

import itertools
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from pipelines import damage, sharding, vocabulary
from pipelines.damage import damaged_byte
from pipelines.data_set import DataSet
from pipelines.metadata import read_metadata
from pipelines.preparation import PreparationConfig, prepare
from pipelines.sharding import Sharding, frames, serialized_example
from pipelines.sources import FileSource
from tests.data_folders import contents
from tests.refusals import refused

TEXT = [("dog " * (1 + n % 8) + f"{n}", "Hund " * (1 + n % 7) + f"{n}") for n in range(120)]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Prepares a folder: three shards of about 40 pairs for each of two splits."""
    folder = tmp_path_factory.mktemp("text")
    paths = [folder / "text.en", folder / "text.de"]
    for path, lines in zip(paths, zip(*TEXT, strict=True), strict=True):
        path.write_text("".join(f"{line}\n" for line in lines))
    files = tuple([str(path)] for path in paths)

    def prepare_folder(data_dir, vocab_size=300):
        source = FileSource({"train": files, "validation": files})
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sharding, "_PAIRS_PER_SHARD", 40)
            return prepare(source, data_dir, PreparationConfig("bpe", vocab_size, max_length=60))

    return prepare_folder


@pytest.fixture(scope="module")
def sound(run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("sound") / "data"
    run(folder)
    return folder


@pytest.fixture
def data_dir(sound, tmp_path):
    return Path(shutil.copytree(sound, tmp_path / "data"))


def shards(data_dir, split="train"):
    return [data_dir / name for name in read_metadata(data_dir).splits[split].shards]


def flip(path, place):
    content = bytearray(path.read_bytes())
    content[place] ^= 4
    path.write_bytes(content)


def times(folder):
    return {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}


def test_damage_is_named_in_training_and_evaluation(data_dir):
    for split in ("train", "validation"):
        shard = shards(data_dir, split)[-1]
        begin, end = frames(shard.read_bytes())[-1]
        whole = shard.read_bytes()
        data = DataSet.open(data_dir)
        iterators = {
            "train": iter(data.training_batches(500, seed=1)),
            "validation": iter(data.evaluation_batches("validation", 500)),
        }
        flip(shard, end - 6)
        with refused(None, f"byte {begin}", shard.name), data.damage_named():
            for _ in itertools.islice(iterators[split], 500):
                pass
        shard.write_bytes(whole)


def test_a_shard_lost_while_training_is_named(data_dir):
    shard = shards(data_dir)[1]
    data = DataSet.open(data_dir)
    iterator = iter(data.training_batches(500, seed=1))
    shard.unlink()
    with refused(None, "no such file", place=shard.name), data.damage_named():
        for _ in itertools.islice(iterator, 500):
            pass


def test_other_errors_pass(data_dir):
    with (
        pytest.raises(tf.errors.NotFoundError, match="nowhere"),
        DataSet.open(data_dir).damage_named(),
    ):
        tf.io.read_file("nowhere")


def flip_the_middle(path):
    flip(path, len(path.read_bytes()) // 2)


def cut_off(path):
    path.write_bytes(path.read_bytes()[:-1])


SECOND = "train-00001-of-00003.tfrecord"


@pytest.mark.parametrize(
    ("damages", "split"),
    [
        ({SECOND: flip_the_middle}, "train"),
        ({SECOND: cut_off}, "train"),
        ({SECOND: Path.unlink, "train-00002-of-00003.tfrecord": flip_the_middle}, "train"),
        ({"validation-00000-of-00003.tfrecord": Path.unlink}, "validation"),
        ({"validation.target.txt": Path.unlink}, "validation"),
        ({"vocabulary.model": flip_the_middle}, None),
        ({"vocabulary.model": Path.unlink}, None),
    ],
)
def test_running_again_rewrites_damaged_files_alone(
    run, data_dir, sound, monkeypatch, damages, split
):
    before = times(data_dir)
    for name, change in damages.items():
        change(data_dir / name)
    encoded, write_block = [], Sharding.write_block
    monkeypatch.setattr(
        Sharding,
        "write_block",
        lambda shards, *block: encoded.append(shards) or write_block(shards, *block),
    )
    assert not run(data_dir)["up_to_date"]
    assert contents(data_dir) == contents(sound)
    after = times(data_dir)
    rewritten = {name for name in after if after[name] != before[name]}
    texts = {f"{split}.source.txt", f"{split}.target.txt"}  # these may be written beside shards
    assert rewritten - texts == damages.keys() - texts
    assert len(encoded) == (split is not None)  # the other split is not encoded again
    assert run(data_dir)["up_to_date"] and times(data_dir) == after


def test_an_interrupted_repair_is_resumed(run, data_dir, sound, monkeypatch):
    for name in (SECOND, "train-00002-of-00003.tfrecord", "vocabulary.model"):
        (data_dir / name).unlink()
    with monkeypatch.context() as patch:
        write_shard, calls = Sharding.write_shard, []

        def interrupted(*arguments):
            calls.append(None)
            if len(calls) == 3:  # the first shard is sound
                raise OSError("stopped")
            write_shard(*arguments)

        patch.setattr(Sharding, "write_shard", interrupted)
        with pytest.raises(OSError, match="stopped"):
            run(data_dir)
    assert (data_dir / SECOND).exists()
    monkeypatch.setattr(Sharding, "write_block", None)  # blocks are there
    monkeypatch.setattr(vocabulary, "learn_subwords", None)  # and so is the vocabulary
    assert not run(data_dir)["up_to_date"]
    assert contents(data_dir) == contents(sound)


def test_a_repair_that_gives_other_files_is_refused(run, data_dir, monkeypatch):
    (data_dir / SECOND).unlink()
    generator = Sharding._generator
    monkeypatch.setattr(
        Sharding, "_generator", lambda shards, *place: generator(shards, *place, "other")
    )
    with refused(None, "different content", place=SECOND):
        run(data_dir)


def test_a_sound_data_set_may_be_read_only(run, data_dir):
    before = times(data_dir)
    mode = data_dir.stat().st_mode
    os.chmod(data_dir, 0o500)
    try:
        assert run(data_dir)["up_to_date"]
    finally:
        os.chmod(data_dir, mode)
    assert times(data_dir) == before


@pytest.fixture
def file(tmp_path):
    """A file of 50 records; where they begin, and its end."""
    path, starts = tmp_path / "file", [0]
    generator = np.random.default_rng(1)
    with tf.io.TFRecordWriter(str(path)) as writer:
        for length in generator.integers(1, 40, size=50):
            record = serialized_example(generator.integers(0, 500, size=length), [2])
            writer.write(record)
            starts.append(starts[-1] + len(record) + 16)
    return path, starts


def test_an_undamaged_file(file):
    path, starts = file
    assert frames(path.read_bytes()) == list(itertools.pairwise(starts))
    assert damaged_byte(path) is None


@pytest.mark.parametrize("at_once", [1, 4, 4096])
@pytest.mark.parametrize("offset", [0, 7, 8, 11, 12, 20, -1])  # length, checksum, content, checksum
def test_the_first_damaged_record_is_found(file, monkeypatch, offset, at_once):
    monkeypatch.setattr(damage, "_RECORDS_AT_ONCE", at_once)
    path, starts = file
    content = bytearray(path.read_bytes())
    content[starts[10 + (offset < 0)] + offset] ^= 0x10
    content[starts[30] + 14] ^= 1
    path.write_bytes(content)
    assert damaged_byte(path) == starts[10]


@pytest.mark.parametrize("kept", [1, 11, 14])
def test_a_cut_off_record_is_found(file, kept):
    path, starts = file
    path.write_bytes(path.read_bytes()[: starts[20] + kept])
    assert damaged_byte(path) == starts[20]


def test_other_and_empty_files(any_folder):
    (any_folder / "text").write_text("no records at all, but long enough for a header")
    assert damaged_byte(any_folder / "text") == 0
    (any_folder / "empty").write_bytes(b"")
    assert damaged_byte(any_folder / "empty") is None
