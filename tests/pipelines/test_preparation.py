import dataclasses
import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from tensorflow_text import SentencepieceTokenizer

from keras_transformer.core.config import EOS_ID
from keras_transformer.core.vocabulary.pair import VocabularyPair
from pipelines.batches.data_set import DataSet
from pipelines.prepare import data_writer, preparation, sharding, vocabulary
from pipelines.prepare.metadata import read_metadata
from pipelines.prepare.preparation import PreparationConfig, prepare
from pipelines.prepare.sharding import Sharding
from pipelines.prepare.vocabulary import PairEncoder
from pipelines.sources.files import FileSource
from tests.data_folders import contents, interrupt, kill
from tests.refusals import refused

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
    text = (data_dir / "metadata.json").read_text()
    assert "/" not in text and json.loads(text)["settings"]["--vocab_size"] == 290


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
    with refused("max_length", f"{longest - 1}, with 9", about="train"):
        prepare(
            source, tmp_path / "none", PreparationConfig(vocab_size=262, max_length=longest - 1)
        )


def test_a_split_without_a_usable_pair_is_refused_before_the_training_pairs_are_written(
    files, data_dir, monkeypatch
):
    unusable = [("", "x"), ("long " * 60, "y")]
    files["validation"] = tuple(
        write(data_dir.parent / f"unusable.{side}", lines)
        for side, lines in zip(("en", "de"), zip(*unusable, strict=True), strict=True)
    )
    written = interrupt(monkeypatch, Sharding, "write_block", 9)
    with refused("max_length", "40, with 1 pairs too long and 1 blank", about="validation"):
        prepare(FileSource(files), data_dir, CONFIG)
    assert {shards._split for shards, *_ in written} == {"test", "validation"}


def test_a_folder_without_a_name_is_refused(files):
    with refused("data_dir", "''"):
        prepare(FileSource(files), "")


def test_a_second_run_changes_nothing(files, data_dir):
    first = prepare(FileSource(files), data_dir, CONFIG)
    before = snapshot(data_dir)
    second = prepare(FileSource(files), data_dir, CONFIG)
    assert (first.pop("up_to_date"), second.pop("up_to_date")) == (False, True)
    first.pop("seconds"), second.pop("seconds")
    assert first == second
    assert snapshot(data_dir) == before


def test_a_data_set_of_other_settings_is_left_alone(files, data_dir):
    prepare(FileSource(files), data_dir, CONFIG)
    before = snapshot(data_dir)
    other = PreparationConfig(vocab_size=291, max_length=41)
    with refused("data_dir", "291, there: 290", about="vocab_size"):
        prepare(FileSource(files), data_dir, other)
    target = Path(files["train"][1][0])
    target.write_text(target.read_text().replace("Hund", "Wolf"))
    with refused("data_dir", "other content", about="train_target"):
        prepare(FileSource(files), data_dir, CONFIG)
    train = {"train": files["train"]}
    with refused("data_dir", data_dir, about="another"):
        prepare(FileSource(train), data_dir, CONFIG)
    assert snapshot(data_dir) == before


def small_blocks(patch):
    patch.setattr(sharding, "BLOCK_PAIRS", 60)
    patch.setattr(sharding, "_PAIRS_PER_SHARD", 75)


@pytest.fixture(scope="module")
def many_files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("many")
    pairs = [(f"a cat {n}", f"eine Katze {n}") for n in range(290)]
    return {
        split: tuple(
            write(folder / f"{split}.{side}", [pair[side] for pair in of_split]) for side in (0, 1)
        )
        for split, of_split in {"train": pairs, "test": pairs[:7]}.items()
    }


@pytest.fixture
def many(many_files, monkeypatch):
    """A source of 5 blocks and 4 shards, all of whose pairs differ, and a test split."""
    small_blocks(monkeypatch)
    return FileSource(many_files)


@pytest.fixture(scope="module")
def whole(many_files, tmp_path_factory):
    """The result of an uninterrupted preparation of `many`, by three threads."""
    folder = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "cpu_count", lambda: 3)
        small_blocks(patch)
        prepare(FileSource(many_files), folder, CONFIG)
    return folder


def test_the_number_of_threads_changes_nothing(many, whole, data_dir, monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    prepare(many, data_dir, CONFIG)
    assert contents(data_dir) == contents(whole)
    assert read_metadata(data_dir).splits["train"].pairs == 290


@pytest.mark.parametrize(
    ("target", "name", "call"),
    [(vocabulary, "learn_subwords", 0), (Sharding, "write_block", 1 + 3)],
)
def test_a_failed_preparation_leaves_nothing(many, data_dir, monkeypatch, target, name, call):
    interrupt(monkeypatch, target, name, call)
    with pytest.raises(OSError, match="disk full"):
        prepare(many, data_dir, CONFIG)
    assert not list(data_dir.iterdir())


OTHER = dataclasses.replace(CONFIG, vocab_size=291)


@pytest.mark.parametrize(
    ("target", "name", "call"),
    [(Sharding, "write_shard", 1 + 2), (data_writer, "write_metadata", 0)],
)
def test_a_killed_preparation_is_begun_again(
    many, whole, data_dir, monkeypatch, target, name, call
):
    with monkeypatch.context() as patch:
        kill(patch, target, name, call)
        with pytest.raises(OSError, match="disk full"):
            prepare(many, data_dir, OTHER)
    assert [path.name for path in data_dir.iterdir()] == ["prepare.tmp"]
    (data_dir / "prepare.lock").write_text("as a killed process leaves it")
    with refused("data_dir", "no metadata.json"):
        read_metadata(data_dir)
    assert not prepare(many, data_dir, CONFIG)["up_to_date"]
    assert contents(data_dir) == contents(whole)


@pytest.mark.parametrize("moved", [0, 8])  # of nine files
def test_a_preparation_killed_while_it_moves_its_files_is_complete(
    many, whole, data_dir, monkeypatch, moved
):
    replace, moves = Path.replace, []

    def stopped(path, target):
        if path.parent == data_dir / "prepare.tmp" and target.parent == data_dir:
            if len(moves) == moved:
                raise OSError("disk full")
            moves.append(path)
        return replace(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", stopped)
        with pytest.raises(OSError, match="disk full"):
            prepare(many, data_dir, CONFIG)
    with refused("data_dir", "no metadata.json"):
        read_metadata(data_dir)
    written = interrupt(monkeypatch, Sharding, "write_block", 9)
    assert prepare(many, data_dir, CONFIG)["up_to_date"] and not written
    assert contents(data_dir) == contents(whole) and len(contents(data_dir)) == 9


@pytest.mark.parametrize("any_folder", ["remote"], indirect=True)
def test_a_remote_data_set_is_like_a_local_one(
    many, many_files, whole, any_folder, monkeypatch, caplog
):
    for split, sides in many_files.items():
        for side, (path,) in enumerate(sides):
            (any_folder / f"{split}.{side}").write_bytes(Path(path).read_bytes())
    source = FileSource(
        {
            split: tuple([str(any_folder / f"{split}.{side}")] for side in (0, 1))
            for split in many_files
        }
    )
    data_dir = any_folder / "data"
    with monkeypatch.context() as patch:
        kill(patch, Sharding, "write_shard", 2)
        with pytest.raises(OSError, match="disk full"):
            prepare(source, str(data_dir), CONFIG)
    with caplog.at_level("INFO", logger="absl"):
        assert not prepare(source, data_dir, CONFIG)["up_to_date"]
    assert "locked" in caplog.text and data_dir.name in caplog.text
    assert contents(data_dir) == contents(whole)
    assert prepare(source, data_dir, CONFIG)["up_to_date"]
    with refused("train_source", any_folder / "none"):
        FileSource({"train": ([str(any_folder / "none")], [str(any_folder / "none")])})


def test_text_that_changes_while_it_is_prepared_is_refused(files, data_dir, monkeypatch):
    learn = vocabulary.learn_subwords

    def with_another_pair(*arguments, **options):
        for (path,) in files["train"]:
            with open(path, "a") as file:
                file.write("a cat\n")
        return learn(*arguments, **options)

    monkeypatch.setattr(vocabulary, "learn_subwords", with_another_pair)
    with refused("train", "43", about="42"):
        prepare(FileSource(files), data_dir, CONFIG)
    assert not list(data_dir.iterdir())


def test_a_full_disk_is_named(many, data_dir, monkeypatch):
    monkeypatch.setattr(Sharding, "_data_file", lambda *_: Path("/dev/full"))
    with pytest.raises(OSError) as caught:
        prepare(many, data_dir, CONFIG)
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, "/dev/full")


# Runs a program, and kills it at the n-th call of a method of Sharding.
KILLED = """
import os, runpy, signal, sys
name, last, calls = sys.argv[1], int(sys.argv[2]), []
del sys.argv[:3]
sys.path[:0] = [os.path.dirname(sys.argv[0]), {root!r}]
from pipelines.prepare import sharding
sharding.BLOCK_PAIRS, sharding._PAIRS_PER_SHARD = 60, 75
method = getattr(sharding.Sharding, name)

def dying(*arguments):
    calls.append(arguments)
    if len(calls) >= last:
        os.kill(os.getpid(), signal.SIGKILL)
    return method(*arguments)

setattr(sharding.Sharding, name, dying)
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.mark.slow  # a process that is killed
def test_data_are_the_same_after_a_killed_process(many, many_files, whole, data_dir):
    program = [sys.executable, "-c", KILLED.format(root=str(ROOT))]
    arguments = ["--dataset=files", f"--data_dir={data_dir}", "--vocab_size=290", "--max_length=40"]
    for split, paths in many_files.items():
        for name, (path,) in zip(("source", "target"), paths, strict=True):
            arguments.append(f"--{split}_{name}={path}")
    command = [*program, "write_block", "5", str(ROOT / "bin" / "prepare_data.py"), *arguments]
    killed = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert {path.name for path in data_dir.iterdir()} == {"prepare.lock", "prepare.tmp"}
    result = prepare(many, data_dir, CONFIG)
    assert contents(data_dir) == contents(whole)
    assert result["pairs"] == {"train": 290, "test": 7} and not result["up_to_date"]


def test_sentencepiece_gives_the_ids_of_tensorflow_text(files, tmp_path):
    """Everything encodes with one, graphs of texts with the other."""
    prepare(FileSource(files), tmp_path / "data", CONFIG)
    vocabularies = VocabularyPair.load(tmp_path / "data")
    texts = [
        *("", " ", "  the  dog ", "a\u2581cat", "▁▁", "<s> </s> <unk> <pad> <0x41>", "tab\tand\r"),
        *("漢字 日本", "e\u0301 \u00e9", "\U0001f431 \u200d\ufeff", "\x01\x7f\x80", "(S (NP x))"),
        *(text for pair in PAIRS[:2] for text in pair),
    ]
    tokenizer = SentencepieceTokenizer(vocabularies.source.file.read_bytes())
    assert vocabularies.source.encode(texts) == tokenizer.tokenize(texts).to_list()
    pairs = [(text, "a cat") for text in texts]
    found = [source for source, _ in PairEncoder(vocabularies, 9999).encode(pairs, Counter())]
    written = [text for text in texts if text.strip()]
    assert found == [[*row, EOS_ID] for row in vocabularies.source.encode(written)]
    assert vocabularies.source.encode([]) == []


def test_foreign_files_are_not_overwritten(files, data_dir):
    data_dir.mkdir()
    (data_dir / "vocabulary.txt").write_text("mine")
    with refused("data_dir", "vocabulary.txt"):
        prepare(FileSource(files), data_dir, CONFIG)
    assert contents(data_dir) == {"vocabulary.txt": b"mine"}


def test_a_lock_that_was_left_behind_means_nothing(files, data_dir):
    data_dir.mkdir()
    (data_dir / "prepare.lock").write_text("")
    mine = {"test.source.txt", "mine.target.txt", "mine.trees.txt", ".x.source.txt.0a1b2c3d.tmp"}
    for name in mine:
        (data_dir / name).write_text("mine")
    for _ in range(2):
        with refused("data_dir", about="empty") as error:
            prepare(FileSource(files), data_dir, CONFIG)
        assert re.search(r"(mine|test)\.\w+\.txt", error.value.received)
        assert contents(data_dir) == dict.fromkeys(mine, b"mine")


def test_files_beside_those_of_a_killed_preparation_stay(many, data_dir, monkeypatch):
    with monkeypatch.context() as patch:
        kill(patch, Sharding, "write_shard", 2)
        with pytest.raises(OSError, match="disk full"):
            prepare(many, data_dir, CONFIG)
    for name in ("notes.txt", "mine.source.txt"):
        (data_dir / name).write_text("mine")
    with refused("data_dir", "mine.source.txt"):
        prepare(many, data_dir, CONFIG)
    assert (data_dir / "mine.source.txt").read_text() == "mine"
    (data_dir / "mine.source.txt").unlink()
    prepare(many, data_dir, CONFIG)
    assert (data_dir / "notes.txt").read_text() == "mine"


def test_a_folder_of_links_that_lead_to_each_other(files, data_dir, tmp_path):
    data_dir.symlink_to("other")
    (tmp_path / "other").symlink_to("data")
    with refused(None, "links", place=data_dir):
        prepare(FileSource(files), data_dir, CONFIG)


@pytest.mark.parametrize("place", ["train.en", "raw/train.en"])
def test_files_of_the_folder_that_is_written_to_are_not_read(files, data_dir, place):
    source, target = files["train"]
    inside = data_dir / place
    inside.parent.mkdir(parents=True)
    shutil.copy(source[0], inside)
    vocabulary = shutil.copy(__file__, data_dir / "given.model")
    with refused("data_dir", inside):
        prepare(FileSource({"train": ([str(inside)], target)}), data_dir, CONFIG)
    given = PreparationConfig(max_length=40, vocabulary=[str(vocabulary)])
    with refused("data_dir", vocabulary):
        prepare(FileSource(files), data_dir, given)
    assert sorted(path.name for path in data_dir.iterdir()) == ["given.model", place.split("/")[0]]


def test_two_runs_cannot_share_a_folder(files, data_dir):
    with preparation._claimed(data_dir), refused("data_dir", data_dir, about="in use"):
        prepare(FileSource(files), data_dir, CONFIG)


def test_another_run_that_ends_as_this_one_begins_is_not_repeated(files, data_dir, monkeypatch):
    call, found = preparation.locked, []

    def overtaken(*arguments):
        if not found:
            found.append(None)
            prepare(FileSource(files), data_dir, config)
            found.append(snapshot(data_dir))
        return call(*arguments)

    monkeypatch.setattr(preparation, "locked", overtaken)
    config = CONFIG
    data_dir.mkdir()
    assert prepare(FileSource(files), data_dir, CONFIG)["up_to_date"]
    assert found == [None, snapshot(data_dir)]
    assert "prepare.lock" not in found[1]
    found.clear()
    shutil.rmtree(data_dir)
    data_dir.mkdir()
    config = PreparationConfig(vocab_size=291, max_length=40)
    with refused("data_dir", "290, there: 291", about="vocab_size"):
        prepare(FileSource(files), data_dir, CONFIG)
    assert found == [None, snapshot(data_dir)]


def test_a_folder_must_be_writable(files, tmp_path):
    (tmp_path / "file").write_text("")
    for data_dir in (tmp_path / "file" / "data", tmp_path / "file"):
        with pytest.raises(OSError, match=re.escape(f"'{data_dir}'")):
            prepare(FileSource(files), data_dir, CONFIG)


@pytest.mark.parametrize(
    ("settings", "argument", "received"),
    [
        ({"tokenizer": "words"}, "tokenizer", "words"),
        ({"tokenizer": "pieces"}, "vocabulary", "none"),
        ({"vocab_size": 4}, "vocab_size", "4"),
        ({"vocabulary": ["no"]}, "vocabulary", "no ("),
        ({"vocabulary": ["a", "b"]}, "vocabulary", "a,b"),
        ({"vocabulary": ["a"], "shared_vocabulary": False}, "vocabulary", "a"),
        ({"vocabulary": [__file__], "tokenizer": "wordpiece"}, "tokenizer", "wordpiece"),
        ({"max_length": 1}, "max_length", "1"),
        ({"max_length": 2**30 + 1}, "max_length", "1073741825"),
    ],
)
def test_impossible_settings_are_named(settings, argument, received):
    with refused(argument, received):
        PreparationConfig(**settings)


SEPARATE = dataclasses.replace(CONFIG, vocab_size=280, shared_vocabulary=False)


def test_each_side_learns_its_own_vocabulary(files, data_dir, tmp_path):
    result = prepare(FileSource(files), data_dir, SEPARATE)
    assert (result["source_vocab_size"], result["vocab_size"]) == (280, 280)
    metadata = read_metadata(data_dir)
    names = (metadata.source_vocabulary, metadata.vocabulary)
    assert names == ("source_vocabulary.model", "target_vocabulary.model")
    for side, name in enumerate(names):  # the text of that side alone, in the order of the file
        text = Path(files["train"][side][0]).read_text().splitlines()
        alone = vocabulary.learn_subwords(text, "bpe", 280, tmp_path, seed=1)
        assert (data_dir / name).read_bytes() == alone.file.read_bytes()
    vocabularies = VocabularyPair.load(data_dir)
    (batch,) = DataSet.open(data_dir).evaluation_batches("test", 512)
    for vocabulary_of_side, ids, texts in zip(
        vocabularies, batch, zip(*PAIRS[:3], strict=True), strict=True
    ):
        assert sorted(vocabulary_of_side.decode(ids.numpy().tolist())) == sorted(texts)


def test_each_damaged_vocabulary_is_named(files, data_dir):
    prepare(FileSource(files), data_dir, SEPARATE)
    for name in ("source_vocabulary.model", "target_vocabulary.model"):
        whole = (data_dir / name).read_bytes()
        (data_dir / name).write_bytes(b"damaged")
        with refused(None, "a changed file", place=name):
            DataSet.open(data_dir)
        (data_dir / name).write_bytes(whole)


def test_an_existing_vocabulary_is_used(files, tmp_path):
    prepare(FileSource(files), tmp_path / "learned", CONFIG)
    file = str(tmp_path / "learned" / "vocabulary.model")
    given = PreparationConfig(max_length=40, vocabulary=[file])
    for up_to_date in (False, True):
        result = prepare(FileSource(files), tmp_path / "given", given)
        assert (result["up_to_date"], result["vocab_size"]) == (up_to_date, 290)
    first, second = contents(tmp_path / "learned"), contents(tmp_path / "given")
    assert first.pop("metadata.json") != second.pop("metadata.json") and first == second
    with refused("data_dir", "290, there: None", about="vocab"):
        prepare(FileSource(files), tmp_path / "given", CONFIG)


def test_metadata_name_settings_as_the_command_line_does():
    settings = {"dataset": "tfds:x", "split_sizes": {"train": 9}}
    assert data_writer.recorded(settings) == {
        "--dataset": "tfds:x",
        "the split sizes of --dataset": {"train": 9},
    }
