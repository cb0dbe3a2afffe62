"""The programs that XLA compiled, on disk. TensorFlow reads and writes them in its own folder."""

import os
import subprocess
import sys

import pytest

from keras_transformer import compiled_programs
from keras_transformer.compiled_programs import CompiledPrograms
from tests.processes import ROOT

NAME = "xla_compile_cache__1__2__XLA_CPU_JIT.pb"
# Compiles a function, with the cache of earlier processes, and prints the programs before and then.
PROGRAM = """
from keras_transformer.compiled_programs import keep_compiled_programs
programs = keep_compiled_programs()
programs.load()
before = sorted(path.name for path in programs._own.iterdir())
import tensorflow as tf
square = tf.function(lambda x: tf.matmul(x, x), jit_compile=True)
assert square(2 * tf.ones([2, 2])).numpy().tolist() == [[8, 8], [8, 8]]
programs.save()
print(before, sorted(path.name for path in programs._own.iterdir()), sep=";")
"""


@pytest.fixture
def programs(tmp_path):
    """The programs of a process, of which there is none yet."""
    own = tmp_path / "own"
    own.mkdir()
    return CompiledPrograms(tmp_path / "cache" / "version", own)


def cached(programs):
    return sorted((programs._cache).glob("*"))


def next_process(programs, tmp_path, name="next"):
    own = tmp_path / name
    own.mkdir()
    later = CompiledPrograms(programs._cache, own)
    later.load()
    return later, {path.name: path.read_bytes() for path in own.iterdir()}


def test_programs_are_there_in_the_next_process(programs, tmp_path):
    (programs._own / NAME).write_bytes(b"program")
    programs.save()
    later, loaded = next_process(programs, tmp_path)
    assert loaded == {NAME: b"program"}
    later.save()
    assert len(cached(programs)) == 1


@pytest.mark.parametrize("damage", [b"", b"progra", b"Program"])
def test_damaged_programs_are_compiled_anew(programs, tmp_path, damage):
    (programs._own / NAME).write_bytes(b"program")
    programs.save()
    cached(programs)[0].write_bytes(damage)
    later, loaded = next_process(programs, tmp_path)
    assert loaded == {}
    (later._own / NAME).write_bytes(b"compiled anew")  # by another version, it may differ
    later.save()
    assert next_process(programs, tmp_path, "third")[1] == {NAME: b"compiled anew"}


def test_a_cache_that_cannot_be_used_is_one_line(programs, tmp_path, caplog):
    (tmp_path / "cache").write_text("a file")
    (programs._own / NAME).write_bytes(b"program")
    with caplog.at_level("INFO", logger="absl"):
        programs.load()
        programs.save()
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith("compiled programs are not kept: ") and "cache" in line


def test_programs_that_were_not_used_for_longest_are_removed(programs, monkeypatch):
    monkeypatch.setattr(compiled_programs, "_LARGEST_CACHE", 25)
    for time, content in enumerate((b"oldest 10b", b"second 10b", b"newest 10b")):
        path = programs._own / NAME
        path.write_bytes(content)
        programs.save()
        (saved,) = (path for path in cached(programs) if path.read_bytes() == content)
        os.utime(saved, (time, time))
    assert {path.read_bytes() for path in cached(programs)} == {b"newest 10b", b"second 10b"}


@pytest.mark.slow  # processes that import TensorFlow
def test_tensorflow_takes_the_programs_of_an_earlier_process(tmp_path):
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "TF_CPP_MIN_LOG_LEVEL": "3"}
    environment.pop("TF_XLA_FLAGS", None)
    outputs = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env=environment,
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        outputs.append(done.stdout.splitlines()[-1].split(";"))
    (before, after), (later_before, later_after) = outputs
    assert before == "[]" and NAME[:17] in after
    assert later_before == later_after == after
