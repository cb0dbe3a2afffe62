"""Damaged data sets: found and named in use, and repaired by preparing them again."""

import itertools
import os
import shutil
from pathlib import Path

import pytest
import tensorflow as tf

from keras_transformer import InputError
from pipelines import sharding, vocabulary
from pipelines.datasets import damage_named, evaluation_batches, training_batches
from pipelines.preparation import PreparationConfig, prepare
from pipelines.records import read_metadata
from pipelines.sharding import Sharding, frames
from pipelines.sources import FileSource
from tests.data_folders import contents

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
        message = (
            rf"{shard.name} must hold sound records: run prepare_data.py again with the same flags,"
            rf" which rewrites .* files. Received: damage at byte {begin}$"
        )
        iterators = {
            "train": iter(training_batches(data_dir, 500, seed=1)),
            "validation": iter(evaluation_batches(data_dir, "validation", 500)),
        }
        flip(shard, end - 6)  # after the shards' beginnings were checked
        with pytest.raises(InputError, match=message), damage_named(data_dir):
            for _ in itertools.islice(iterators[split], 500):
                pass
        with pytest.raises(InputError, match=message):
            training_batches(data_dir, 500, seed=1)
        shard.write_bytes(whole)


def test_a_shard_lost_while_training_is_named(data_dir):
    shard = shards(data_dir)[1]
    iterator = iter(training_batches(data_dir, 500, seed=1))
    shard.unlink()
    with (
        pytest.raises(InputError, match=rf"{shard.name} must have .* no such file"),
        damage_named(data_dir),
    ):
        for _ in itertools.islice(iterator, 500):
            pass


def test_other_errors_pass(data_dir):
    with pytest.raises(tf.errors.NotFoundError, match="nowhere"), damage_named(data_dir):
        tf.io.read_file("nowhere")


def flip_the_middle(path):
    flip(path, len(path.read_bytes()) // 2)


def cut_off(path):
    path.write_bytes(path.read_bytes()[:-1])


def swap(path):
    """Puts a sound shard of the same size in the place of another."""
    begin, end = frames(path.read_bytes())[0]
    path.write_bytes(path.read_bytes()[end:] + path.read_bytes()[begin:end])


SECOND = "train-00001-of-00003.tfrecord"


@pytest.mark.parametrize(
    ("damages", "split"),
    [
        ({SECOND: flip_the_middle}, "train"),
        ({SECOND: cut_off}, "train"),
        ({SECOND: swap}, "train"),
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
    for name, damage in damages.items():
        damage(data_dir / name)
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
    with pytest.raises(InputError, match=rf"{SECOND} must be the same when .* in a new folder"):
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


def test_a_shard_of_another_data_set_is_named(run, data_dir, tmp_path):
    run(tmp_path / "other", vocab_size=310)
    mixed = shards(data_dir)[2]
    mixed.write_bytes((tmp_path / "other" / mixed.name).read_bytes())
    with pytest.raises(InputError, match=rf"{mixed.name} must (have \d+ bytes|be the shard that)"):
        training_batches(data_dir, 500, seed=1)
