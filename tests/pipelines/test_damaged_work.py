"""Any damage to a data directory, finished or not: one clear line, or the right data all the same.

Nothing that a user has put there or elsewhere is changed.
"""

import shutil
from pathlib import Path

import numpy as np
import pytest

from keras_transformer import InputError
from pipelines import data_writer, sharding
from pipelines.data_set import DataSet
from pipelines.preparation import PreparationConfig, prepare
from pipelines.sharding import Sharding
from pipelines.sources import FileSource
from tests.data_folders import interrupt
from tests.mutations import mutations

CONFIG = PreparationConfig(vocab_size=290, max_length=40)
MINE = {"notes.txt": "mine", "unfinished/notes.txt": "mine"}


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """Text of which blocks and shards of the module make 3 blocks and 2 shards."""
    folder = tmp_path_factory.mktemp("text")
    files = {}
    for split, count in {"train": 150, "test": 7}.items():
        paths = [folder / f"{split}.en", folder / f"{split}.de"]
        paths[0].write_text("".join(f"a cat {n}\n" for n in range(count)))
        paths[1].write_text("".join(f"eine Katze {n}\n" for n in range(count)))
        files[split] = tuple([str(path)] for path in paths)
    return FileSource(files)


@pytest.fixture(scope="module", autouse=True)
def small():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sharding, "BLOCK_PAIRS", 60)
        patch.setattr(sharding, "_PAIRS_PER_SHARD", 75)
        yield


@pytest.fixture(scope="module")
def whole(source, tmp_path_factory):
    """The data set that nothing has damaged."""
    folder = tmp_path_factory.mktemp("whole") / "data"
    prepare(source, folder, CONFIG)
    return folder


@pytest.fixture(scope="module")
def interrupted(source, tmp_path_factory):
    """Folders of preparations that were interrupted, by where that was."""
    folders = {}
    places = {
        "shards": (Sharding, "write_shard", 1),
        "metadata": (data_writer, "write_metadata", 0),
    }
    for name, (target, method, call) in places.items():
        folders[name] = tmp_path_factory.mktemp("interrupted") / "data"
        with pytest.MonkeyPatch.context() as patch:
            interrupt(patch, target, method, call)
            with pytest.raises(OSError, match="disk full"):
                prepare(source, folders[name], CONFIG)
    return folders


def snapshot(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def add_mine(folder):
    (folder / "unfinished").mkdir(exist_ok=True)
    for name, text in MINE.items():
        (folder / name).write_text(text)


def mine_in(folder):
    return {name: (folder / name).read_text() for name in MINE}


def require_one_line(error, folder):
    message = str(error)
    assert "\n" not in message and error.received is not None, message
    assert str(folder) in message, message


def damaged_copies(folder, tmp_path, seed, share):
    """Copies of a data directory in which one file is damaged each: (what is damaged, copy).

    Of all damages, a share is drawn at random.
    """
    generator = np.random.default_rng(seed)
    for name, content in snapshot(folder).items():
        for change, damaged in mutations(content, name.endswith(".json"), generator):
            if generator.random() >= share:
                continue
            copy = shutil.copytree(folder, tmp_path / "data")
            add_mine(copy)
            (copy / name).write_bytes(damaged)
            yield f"{name}: {change}", copy
            shutil.rmtree(copy)


def data_files(data_dir):
    return {name: content for name, content in snapshot(data_dir).items() if name not in MINE}


# Of all damages: a few, and as many as take seconds.
SHARES = [0.1, pytest.param(0.3, marks=pytest.mark.slow)]


@pytest.mark.parametrize("share", [0.2, pytest.param(0.5, marks=pytest.mark.slow)])
@pytest.mark.parametrize("state", ["shards", "metadata"])
def test_an_interrupted_preparation(source, whole, interrupted, tmp_path, state, share):
    outcomes = []
    text = {path: Path(path).read_bytes() for path in source.files()}
    for damage, data_dir in damaged_copies(interrupted[state], tmp_path, 1, share):
        try:
            prepare(source, data_dir, CONFIG)
        except InputError as error:
            require_one_line(error, data_dir)
            outcomes.append("refused")
        else:
            assert data_files(data_dir) == snapshot(whole), damage
            outcomes.append("redone")
        assert mine_in(data_dir) == MINE, damage
    assert {path: Path(path).read_bytes() for path in source.files()} == text
    assert {"refused", "redone"} == set(outcomes)


@pytest.mark.parametrize("share", SHARES)
def test_a_data_set_that_is_prepared_again(source, whole, tmp_path, share):
    outcomes = []
    for damage, data_dir in damaged_copies(whole, tmp_path, 3, share):
        before = snapshot(data_dir)
        try:
            prepare(source, data_dir, CONFIG)
        except InputError as error:
            require_one_line(error, data_dir)
            assert snapshot(data_dir) == before, damage
            outcomes.append("refused")
        else:
            assert data_files(data_dir) == snapshot(whole), damage
            outcomes.append("repaired")
        assert mine_in(data_dir) == MINE, damage
    assert {"refused", "repaired"} == set(outcomes)


def used(data_dir):
    """Reads from a data directory what training and evaluation read."""
    data = DataSet.open(data_dir)
    read = [data.text("test")]
    with data.damage_named():
        batches = data.training_batches(500, seed=1).take(6)
        read += [[side.tolist() for side in batch] for batch in batches.as_numpy_iterator()]
    return read


@pytest.mark.parametrize("share", SHARES)
def test_a_data_set_in_use(whole, tmp_path, share):
    """Damage is found when it is read, except where nothing has changed for the reader."""
    expected = used(whole)
    refused = 0
    for damage, data_dir in damaged_copies(whole, tmp_path, 2, share):
        before = snapshot(data_dir)
        try:
            assert used(data_dir) == expected, damage
        except InputError as error:
            require_one_line(error, data_dir)
            refused += 1
        assert snapshot(data_dir) == before, damage
    assert refused > 16 * share
