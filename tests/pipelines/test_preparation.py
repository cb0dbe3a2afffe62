import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from keras_transformer import InputError
from pipelines import preparation, records
from pipelines.preparation import PreparationConfig, prepare
from pipelines.records import read_metadata
from pipelines.sources import FileSource

ROOT = Path(__file__).resolve().parents[2]
PAIRS = [("the dog sees the cat", "der Hund sieht die Katze"), ("a cat", "eine Katze")] * 20
CONFIG = PreparationConfig(vocab_size=290, max_length=40)


def write(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return [str(path)]


@pytest.fixture
def files(tmp_path):
    """Split -> files; the test split has a blank and an over-long pair."""
    test = [*PAIRS[:3], ("", "x"), ("long " * 60, "y"), ("z", " \t")]
    return {
        split: tuple(
            write(tmp_path / f"{split}.{side}", [pair[i] for pair in pairs])
            for i, side in enumerate(("en", "de"))
        )
        for split, pairs in {
            "train": [*PAIRS, ("", ""), ("so long " * 30, "y")],
            "test": test,
        }.items()
    }


@pytest.fixture
def data_dir(tmp_path):
    return tmp_path / "data"


def snapshot(folder):
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}


def test_unusable_pairs_are_counted_and_their_text_kept(files, data_dir):
    result = prepare(FileSource(files), data_dir, CONFIG)
    assert result["pairs"] == {"train": 40, "test": 3}
    assert result["dropped"] == {
        "train": {"blank": 1, "too_long": 1},
        "test": {"blank": 2, "too_long": 1},
    }
    assert result["vocab_size"] == 290 and result["data_dir"] == str(data_dir)
    metadata = read_metadata(data_dir)
    assert metadata.languages == ["en", "de"]
    assert metadata.splits["test"].dropped == {"blank": 2, "too_long": 1}
    assert (data_dir / "test.source.txt").read_text() == Path(files["test"][0][0]).read_text()
    assert not (data_dir / "train.source.txt").exists()
    assert "/" not in (data_dir / "metadata.json").read_text()


def test_max_length_counts_eos(tmp_path):
    # "a" is "▁a", or "▁" and "a": with EOS, 3 ids at most.
    source = FileSource(
        {"train": (write(tmp_path / "s", ["a"] * 9), write(tmp_path / "t", ["a"] * 9))}
    )
    config = PreparationConfig(vocab_size=262, max_length=9)
    prepare(source, tmp_path / "data", config)
    longest = read_metadata(tmp_path / "data").splits["train"].longest
    exact = PreparationConfig(vocab_size=262, max_length=longest)
    assert prepare(source, tmp_path / "exact", exact)["pairs"] == {"train": 9}
    with pytest.raises(InputError, match=r"--max_length must leave at least one training pair"):
        prepare(
            source, tmp_path / "none", PreparationConfig(vocab_size=262, max_length=longest - 1)
        )


def test_a_second_run_finds_its_work_done(files, data_dir):
    first = prepare(FileSource(files), data_dir, CONFIG)
    before = snapshot(data_dir)
    second = prepare(FileSource(files), data_dir, CONFIG)
    assert (first.pop("up_to_date"), second.pop("up_to_date")) == (False, True)
    first.pop("seconds"), second.pop("seconds")
    assert first == second
    assert snapshot(data_dir) == before


def test_equal_settings_make_equal_files(files, tmp_path):
    for name in ("1", "2"):
        prepare(FileSource(files), tmp_path / name, CONFIG)
    contents = [
        {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()}
        for name in ("1", "2")
    ]
    assert contents[0] == contents[1]


def test_a_data_set_of_other_settings_is_left_alone(files, data_dir):
    prepare(FileSource(files), data_dir, CONFIG)
    before = snapshot(data_dir)
    other = PreparationConfig(vocab_size=291, max_length=41)
    with pytest.raises(
        InputError,
        match=r"--data_dir=.*data holds a data set whose --vocab_size is another.*"
        r"Received: 291, there: 290",
    ):
        prepare(FileSource(files), data_dir, other)
    with open(files["train"][1][0], "a") as file:
        file.write("neu\n")
    with pytest.raises(InputError, match=r"whose --train_target is another"):
        prepare(FileSource(files), data_dir, CONFIG)
    train = {"train": files["train"]}
    with pytest.raises(InputError, match=r"is another.*Received"):
        prepare(FileSource(train), data_dir, CONFIG)
    assert snapshot(data_dir) == before


def test_what_an_error_left_is_cleared_and_done_again(files, data_dir, tmp_path, monkeypatch):
    def fail(*_):
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(records, "_permute", fail)
        with pytest.raises(OSError, match="disk full"):
            prepare(FileSource(files), data_dir, CONFIG)
    assert (data_dir / "vocabulary.model").exists()
    with pytest.raises(InputError, match=r"must be a folder completed by prepare_data"):
        read_metadata(data_dir)

    assert not prepare(FileSource(files), data_dir, CONFIG)["up_to_date"]
    prepare(FileSource(files), tmp_path / "clean", CONFIG)
    names = [
        sorted(path.name for path in folder.iterdir()) for folder in (data_dir, tmp_path / "clean")
    ]
    assert names[0] == names[1]


KILLED = """
import os, signal, sys
sys.path.insert(0, {root!r})
from pipelines import preparation, records
from pipelines.preparation import PreparationConfig, prepare
from pipelines.sources import FileSource
records._permute = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
prepare(FileSource({files!r}), {data_dir!r}, PreparationConfig(vocab_size=290, max_length=40))
"""


def test_a_killed_run_leaves_no_data_set_and_is_done_again(files, data_dir):
    program = KILLED.format(root=str(ROOT), files=files, data_dir=str(data_dir))
    killed = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert list(data_dir.glob("*.part")) and not (data_dir / "metadata.json").exists()
    with pytest.raises(InputError, match=r"must be a folder completed by prepare_data"):
        read_metadata(data_dir)
    # Other settings may take the folder over: nothing of worth is there.
    other = PreparationConfig(vocab_size=291, max_length=40)
    assert prepare(FileSource(files), data_dir, other)["vocab_size"] == 291
    assert not list(data_dir.glob("*.part")) and not (data_dir / "prepare.lock").exists()


def test_foreign_files_are_not_overwritten(files, data_dir):
    data_dir.mkdir()
    (data_dir / "vocabulary.txt").write_text("mine")
    with pytest.raises(InputError, match=r"--data_dir must be empty, new, or a data set"):
        prepare(FileSource(files), data_dir, CONFIG)
    assert (data_dir / "vocabulary.txt").read_text() == "mine"


def test_two_runs_cannot_share_a_folder(files, data_dir):
    with (
        preparation._claimed(data_dir),
        pytest.raises(InputError, match=r"must not be in use by another prepare_data"),
    ):
        prepare(FileSource(files), data_dir, CONFIG)


def test_a_folder_must_be_writable(files, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"--data_dir must be a writable folder. Received: .*file"):
        prepare(FileSource(files), tmp_path / "file" / "data", CONFIG)
    with pytest.raises(InputError, match=r"--data_dir must be a writable folder. Received: .*file"):
        prepare(FileSource(files), tmp_path / "file", CONFIG)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"tokenizer": "words"}, r"--tokenizer must be one of bpe, wordpiece. Received: words"),
        ({"vocab_size": 4}, r"--vocab_size must exceed the 4 special ids. Received: 4"),
        ({"max_length": 1}, r"--max_length must be at least 2, .* Received: 1"),
    ],
)
def test_impossible_settings_are_named(settings, message):
    with pytest.raises(InputError, match=message):
        PreparationConfig(**settings)


def test_metadata_are_plain_json(files, data_dir):
    prepare(FileSource(files), data_dir, CONFIG)
    fields = json.loads((data_dir / "metadata.json").read_text())
    assert fields["settings"]["--vocab_size"] == 290
    for name, size in fields["splits"]["train"]["shards"].items():
        assert os.path.getsize(data_dir / name) == size
