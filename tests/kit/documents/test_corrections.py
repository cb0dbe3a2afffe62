"""Corrections in a file that other programs and other threads write at the same time."""

import errno
import multiprocessing
import os
import threading

import pytest

from keras_transformer.core.vocabulary.language_codes import Direction
from keras_transformer.kit.documents.memory import corrections as module
from keras_transformer.kit.documents.memory.corrections import Corrections, check_corrections
from keras_transformer.kit.documents.memory.tmx import Tmx
from keras_transformer.use.store.languages import ModelLanguages
from tests.refusals import refused

DIRECTION = Direction("en", "de")
LANGUAGES = ModelLanguages((DIRECTION,), ("de",))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "corrections.tmx"


def pairs(corrections):
    return [(each.source, each.translation) for each in corrections.all()]


def add_by_another_program(path, source, target):
    """Writes like a program that knows no lock: in place."""
    text = path.read_text(encoding="utf-8")
    path.write_text(Tmx(text).with_unit(source, target, DIRECTION), encoding="utf-8")


def test_what_is_added_is_in_the_file_at_once_and_in_the_memory(path):
    corrections = Corrections(path, LANGUAGES)
    assert path.exists() and corrections.all() == []
    added = corrections.add(" A\n dog. ", "Ein  Hund.", DIRECTION)
    assert (added.source, added.translation, added.direction) == ("A dog.", "Ein Hund.", DIRECTION)
    assert len(added.date) == len("20261128T134500Z")
    assert corrections.memory.find("A dog.") == "Ein Hund."
    assert pairs(Corrections(path, LANGUAGES)) == [("A dog.", "Ein Hund.")]


def test_the_newest_correction_of_a_sentence_counts(path):
    corrections = Corrections(path, LANGUAGES)
    for source, target in [
        ("A", "1"),
        ("B", "2"),
        ("A", "3"),
        ("Save {x}", "a"),
        ("Save {y}", "b"),
    ]:
        corrections.add(source, target, DIRECTION)
    wanted = [("B", "2"), ("A", "3"), ("Save {x}", "a"), ("Save {y}", "b")]
    assert pairs(corrections) == pairs(Corrections(path, LANGUAGES)) == wanted
    assert corrections.memory.find("Save {z}") == "b"
    corrections.add("Save {x}", "c", DIRECTION)
    assert corrections.memory.find("Save {z}") == "c"


def test_what_is_removed_is_forgotten_with_what_it_replaced(path):
    corrections = Corrections(path, LANGUAGES)
    for source in ("Save {x}", "B", "Save {y}"):
        corrections.add(source, "c", DIRECTION)
    assert corrections.remove("Save  {z}", DIRECTION) == 2
    assert corrections.remove("Save {z}", DIRECTION) == 0
    assert pairs(corrections) == pairs(Corrections(path, LANGUAGES)) == [("B", "c")]
    assert corrections.memory.find("Save {x}") is None


def test_since_tells_what_is_new_or_different(path):
    corrections = Corrections(path, LANGUAGES)
    corrections.add("A", "1", DIRECTION)
    corrections.add("B", "2", DIRECTION)
    version = corrections.version
    assert corrections.since(version) == []
    corrections.add("B", "2", DIRECTION)
    assert corrections.since(version) == [], "it has the same translation"
    corrections.add("A", "3", DIRECTION)
    add_by_another_program(path, "C", "4")
    corrections.refresh()
    assert [each.source for each in corrections.since(version)] == ["A", "C"]
    last = corrections.version
    corrections.remove("A", DIRECTION)
    assert corrections.version > last and corrections.since(last) == []


def test_what_another_program_adds_is_kept_and_used(path):
    corrections = Corrections(path, LANGUAGES)
    corrections.add("A", "1", DIRECTION)
    add_by_another_program(path, "B", "2")
    corrections.add("C", "3", DIRECTION)
    assert pairs(corrections) == [("A", "1"), ("B", "2"), ("C", "3")]
    add_by_another_program(path, "D", "4")
    assert corrections.memory.find("D") is None
    corrections.refresh()
    assert corrections.memory.find("D") == "4"
    path.unlink()
    corrections.refresh()
    assert corrections.all() == []
    corrections.add("E", "5", DIRECTION)
    assert pairs(Corrections(path, LANGUAGES)) == [("E", "5")]


def test_what_another_program_adds_while_a_correction_is_written_is_kept(path, monkeypatch):
    corrections = Corrections(path, LANGUAGES)
    others = iter("BCD")
    replacing = module.replacing

    def write_meanwhile(target):
        other = next(others, None)
        if other is not None:
            add_by_another_program(path, other, "x")
        return replacing(target)

    monkeypatch.setattr(module, "replacing", write_meanwhile)
    corrections.add("A", "1", DIRECTION)
    assert pairs(Corrections(path, LANGUAGES)) == [("B", "x"), ("C", "x"), ("D", "x"), ("A", "1")]
    monkeypatch.setattr(module, "ATTEMPTS", 3)
    others = iter("EFGH")
    before = len(corrections.all())
    with refused("corrections", str(path)):
        corrections.add("Z", "1", DIRECTION)
    assert len(Corrections(path, LANGUAGES).all()) == before + 3, "the other program's"


def test_a_file_that_cannot_be_read_now_is_not_overwritten(path, caplog):
    corrections = Corrections(path, LANGUAGES)
    corrections.add("A", "1", DIRECTION)
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])  # half written
    for _ in range(2):
        corrections.refresh()
    assert len(caplog.records) == 1 and corrections.memory.find("A") == "1"
    with refused(None, place=f"{path}:"):
        corrections.add("B", "2", DIRECTION)
    assert path.read_bytes() == whole[:-20]
    with refused(None, place=f"{path}:"):
        check_corrections(path)
    path.write_bytes(whole)
    corrections.add("B", "2", DIRECTION)
    assert pairs(corrections) == [("A", "1"), ("B", "2")]


def test_on_a_full_disk_nothing_changes(path):
    import resource

    corrections = Corrections(path, LANGUAGES)
    corrections.add("A", "1", DIRECTION)
    before, version = path.read_bytes(), corrections.version
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 10, hard))
    try:
        with pytest.raises(OSError, match=str(path)) as caught:
            corrections.add("B", "2", DIRECTION)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert caught.value.errno == errno.EFBIG
    assert path.read_bytes() == before and corrections.version == version
    assert sorted(os.listdir(path.parent)) == [f".{path.name}.lock", path.name]
    corrections.add("B", "2", DIRECTION)
    assert pairs(Corrections(path, LANGUAGES)) == [("A", "1"), ("B", "2")]


def add_many(path, name):
    corrections = Corrections(path, LANGUAGES)
    for number in range(10):
        corrections.add(f"{name} {number}", "x", DIRECTION)


def test_threads_and_processes_lose_nothing(path):
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=add_many, args=[path, f"process {n}"]) for n in range(2)]
    shared = Corrections(path, LANGUAGES)
    for worker in workers:
        worker.start()
    threads = [
        threading.Thread(
            target=lambda n=n: [shared.add(f"thread {n} {m}", "x", DIRECTION) for m in range(10)]
        )
        for n in range(2)
    ]
    for thread in threads:
        thread.start()
    for worker in [*threads, *workers]:
        worker.join(timeout=60)
    assert [worker.exitcode for worker in workers] == [0, 0]
    names = [
        f"{kind} {n} {m}" for kind in ("process", "thread") for n in range(2) for m in range(10)
    ]
    assert sorted(each.source for each in Corrections(path, LANGUAGES).all()) == sorted(names)


def test_several_directions(path):
    directions = (Direction("en", "de"), Direction("en", "cs"), Direction("de", "en"))
    corrections = Corrections(path, ModelLanguages(directions, ("de", "cs", "en"), True))
    for number, direction in enumerate(directions):
        corrections.add("A", str(number), direction)
    assert [each.direction for each in corrections.all()] == list(directions)
    found = [corrections.memory.find(f">>{code}<< A") for code in ("de", "cs", "en")]
    assert found == ["0", "1", "2"]
    corrections.remove("A", directions[1])
    assert corrections.memory.find(">>cs<< A") is None
    with refused("direction", "cs-en"):
        corrections.add("A", "3", Direction("cs", "en"))


@pytest.mark.parametrize(
    ("source", "target", "name"), [(" \n", "a", "source"), ("a", "", "translation")]
)
def test_blank_texts_are_refused(path, source, target, name):
    with refused(name):
        Corrections(path, LANGUAGES).add(source, target, DIRECTION)


@pytest.mark.parametrize(
    "name",
    [
        "a.tsv",
        "a.tmx.gz",
        pytest.param("gs://bucket/a.tmx", marks=pytest.mark.tensorflow),
        "none/a.tmx",
    ],
)
def test_files_that_cannot_hold_corrections(tmp_path, name):
    path = name if "://" in name else str(tmp_path / name)
    with refused("corrections", path):
        Corrections(path, LANGUAGES)


def test_models_of_unknown_languages(path):
    for languages in (None, ModelLanguages((), ("de",), True)):
        with refused("corrections", path):
            Corrections(path, languages)
    assert not path.exists()


def test_a_file_in_another_encoding_becomes_utf_8(path):
    text = '<?xml version="1.0" encoding="utf-16"?><tmx><header/><body></body></tmx>'
    path.write_bytes(text.encode("utf-16"))
    Corrections(path, LANGUAGES).add("A", "ä", DIRECTION)
    assert 'encoding="UTF-8"' in path.read_text(encoding="utf-8")
    assert pairs(Corrections(path, LANGUAGES)) == [("A", "ä")]
