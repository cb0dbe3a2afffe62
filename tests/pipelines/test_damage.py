"""Damaged data sets are named in use, and when they are prepared again; nothing is changed."""

import itertools
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer import InputError
from pipelines.batches.data_set import DataSet
from pipelines.prepare import sharding
from pipelines.prepare.data_files import check_records
from pipelines.prepare.metadata import read_metadata
from pipelines.prepare.preparation import PreparationConfig, prepare
from pipelines.prepare.sharding import frames, serialized_example
from pipelines.sources.files import FileSource
from tests.data_folders import contents
from tests.mutations import mutations
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

    def prepare_folder(data_dir):
        source = FileSource({"train": files, "validation": files})
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sharding, "_PAIRS_PER_SHARD", 40)
            return prepare(source, data_dir, PreparationConfig("bpe", 300, max_length=60))

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


def test_damage_is_named_in_training_and_evaluation(data_dir):
    for split in ("train", "validation"):
        shard = shards(data_dir, split)[-1]
        _, end = frames(shard.read_bytes())[-1]
        whole = shard.read_bytes()
        data = DataSet.open(data_dir)
        iterators = {
            "train": iter(data.training_batches(500, seed=1)),
            "validation": iter(data.evaluation_batches("validation", 500)),
        }
        flip(shard, end - 6)
        with refused(None, "a damaged record", shard.name), data.damage_named():
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


@pytest.mark.parametrize(
    ("name", "damage", "received"),
    [
        ("train-00001-of-00003.tfrecord", flip_the_middle, "a damaged record"),
        ("train-00001-of-00003.tfrecord", cut_off, "bytes"),
        ("validation-00000-of-00003.tfrecord", Path.unlink, "no such file"),
        ("validation.target.txt", Path.unlink, "no such file"),
        ("validation.source.txt", flip_the_middle, "a changed file"),
        ("vocabulary.model", flip_the_middle, "a changed file"),
        ("vocabulary.model", Path.unlink, "no such file"),
    ],
)
def test_preparing_again_names_the_damaged_file_and_its_cure(
    run, data_dir, sound, name, damage, received
):
    damage(data_dir / name)
    before = snapshot(data_dir)
    with refused(None, received, place=data_dir / name, about="delete its folder, and prepare"):
        run(data_dir)
    assert snapshot(data_dir) == before
    shutil.rmtree(data_dir)
    assert not run(data_dir)["up_to_date"]
    assert contents(data_dir) == contents(sound)


def snapshot(folder):
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}


SHARE = 0.2  # of all damages is drawn at random


def damaged_copies(folder, tmp_path):
    """Copies of a data directory in which one file is damaged each: (what is damaged, copy)."""
    generator = np.random.default_rng(1)
    for name, content in contents(folder).items():
        for change, damaged in mutations(content, name.endswith(".json"), generator):
            if generator.random() >= SHARE:
                continue
            copy = shutil.copytree(folder, tmp_path / "data")
            (copy / "notes.txt").write_text("mine")
            (copy / name).write_bytes(damaged)
            yield f"{name}: {change}", copy
            shutil.rmtree(copy)


def read(data_dir):
    """Reads from a data directory what training and evaluation read."""
    data = DataSet.open(data_dir)
    found = [data.text("validation")]
    with data.damage_named():
        batches = data.training_batches(500, seed=1).take(6)
        found += [[side.tolist() for side in batch] for batch in batches.as_numpy_iterator()]
    return found


def test_any_damage_is_one_line_or_changes_nothing(run, sound, tmp_path):
    expected = read(sound)
    refusals = {read: 0, run: 0}
    for damage, data_dir in damaged_copies(sound, tmp_path):
        before = snapshot(data_dir)
        for use in refusals:
            try:
                found = use(data_dir)
            except InputError as error:
                message = str(error)
                assert "\n" not in message and str(data_dir) in message, message
                assert error.received is not None, message
                refusals[use] += 1
            else:
                assert found == expected if use is read else found["up_to_date"], damage
            assert snapshot(data_dir) == before, damage
    assert min(refusals.values()) > 20 * SHARE


def test_a_sound_data_set_may_be_read_only(run, data_dir):
    before = snapshot(data_dir)
    mode = data_dir.stat().st_mode
    os.chmod(data_dir, 0o500)
    try:
        assert run(data_dir)["up_to_date"]
    finally:
        os.chmod(data_dir, mode)
    assert snapshot(data_dir) == before


@pytest.mark.parametrize("offset", [0, 7, 8, 11, 12, 20, -1])  # length, checksum, content, checksum
def test_a_damaged_record_is_found(any_folder, offset):
    path, starts = any_folder / "file", [0]
    generator = np.random.default_rng(1)
    with tf.io.TFRecordWriter(str(path)) as writer:
        for length in generator.integers(1, 40, size=50):
            record = serialized_example(generator.integers(0, 500, size=length), [2])
            writer.write(record)
            starts.append(starts[-1] + len(record) + 16)
    assert frames(path.read_bytes()) == list(itertools.pairwise(starts))
    check_records(path)
    content = bytearray(path.read_bytes())
    content[starts[10 + (offset < 0)] + offset] ^= 0x10
    path.write_bytes(bytes(content))
    with refused(None, "a damaged record", place=path):
        check_records(path)
