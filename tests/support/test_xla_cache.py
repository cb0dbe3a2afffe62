"""Programs on disk: found by the next process, and compiled anew where they are damaged."""

import contextlib
import errno
import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
import tensorflow as tf

from keras_transformer.support import xla_cache
from keras_transformer.support.xla_cache import (
    FLAGS,
    compiled,
    default_folder,
    keep_programs,
    remove_programs,
)

ROOT = Path(__file__).parents[2]
# Searches with a program and without one, in a process that keeps its programs in a folder.
SEARCHES = """
import json, sys, time
from pathlib import Path
from keras_transformer.support.xla_cache import keep_programs
keep_programs(Path(sys.argv[1]))
from tests.core.search.test_xla_search import SOURCES, Request, assert_same, both
from tests.small_models import settings_of, small_model
engine, plain = both(small_model(num_layers=1), settings_of(2, extra_length=4))
requests = [Request(SOURCES), Request(SOURCES[:3], guaranteed=2, alpha=1.0)]  # one program
for request in requests:
    found = engine.search(request)
    assert_same(found, plain.search(request))
print(json.dumps([len(engine.programs.ready), found.ids.tolist(), found.score.tolist()]))
"""


def in_new_process(program, folder):
    """Runs a program with a folder as its argument, and returns what it prints, a line of JSON."""
    done = subprocess.run(
        [sys.executable, "-c", program, str(folder)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(autouse=True)
def no_flags(monkeypatch):
    monkeypatch.setenv(FLAGS, "")
    monkeypatch.delenv(FLAGS)


def test_programs_are_kept_in_a_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(xla_cache, "MOST_FILES", 2)
    folder = tmp_path / "new" / "xla"
    keep_programs(folder)
    assert os.environ[FLAGS] == f"--tf_xla_persistent_cache_directory={folder}"
    names = [f"xla_compile_cache__{number}" for number in range(4)]
    for age, name in enumerate(names):
        (folder / name).write_bytes(b"")
        os.utime(folder / name, (1000 - age, 1000 - age))
    monkeypatch.delenv(FLAGS)
    keep_programs(folder)  # and the oldest leave
    assert sorted(path.name for path in folder.iterdir()) == names[:2]
    remove_programs(folder)
    assert list(folder.iterdir()) == []


@contextlib.contextmanager
def unwritable(folder, reason):
    """Makes a folder one that cannot be written, also for root."""
    limits, user = resource.getrlimit(resource.RLIMIT_FSIZE), os.geteuid()
    if reason == "no folder":
        folder.write_bytes(b"a file")
    elif reason == "full":
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    elif reason == "read-only":
        folder.mkdir(mode=0o500)
        if user == 0:
            os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(user)
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.parametrize("reason", ["no folder", "full", "almost full", "read-only", "spaces"])
def test_nothing_is_kept_where_it_cannot_be(tmp_path, monkeypatch, reason):
    folder = tmp_path / ("a b" if reason == "spaces" else "xla")
    if reason == "almost full":
        monkeypatch.setattr(xla_cache, "FREE_BYTES", 2**62)
    with unwritable(folder, reason):
        keep_programs(folder)
    assert FLAGS not in os.environ


class Compiler:
    """Compiles at its second call, or at none."""

    def __init__(self, message, failures, kind=tf.errors.ResourceExhaustedError):
        self.error = kind(None, None, message)
        self.failures = failures
        self.calls = 0

    def __call__(self):
        self.calls += 1
        if self.calls <= self.failures:
            raise self.error
        return self.calls


@pytest.fixture
def kept(tmp_path):
    keep_programs(tmp_path)
    program = tmp_path / "xla_compile_cache__1"
    program.write_bytes(b"")
    return program


def test_a_program_is_compiled_anew_without_those_on_disk(kept, caplog):
    with caplog.at_level("INFO", logger="absl"):
        assert compiled(Compiler("damaged", failures=1, kind=tf.errors.DataLossError)) == 2
    assert not kept.exists() and len(caplog.records) == 1


def test_a_disk_that_fills_up_is_named(kept):
    with pytest.raises(OSError) as caught:
        compiled(Compiler(f"{kept}.tmp; No space left on device\nwhile", failures=2))
    assert caught.value.errno == errno.ENOSPC
    assert caught.value.filename == str(kept.parent)
    with pytest.raises(tf.errors.OpError):
        compiled(Compiler("another", failures=2))


def test_programs_stay_where_a_device_lacks_memory(kept):
    compiler = Compiler("out of memory", failures=9)
    with pytest.raises(tf.errors.ResourceExhaustedError):
        compiled(compiler)
    assert kept.exists() and compiler.calls == 1


def test_the_users_choice_is_kept(tmp_path, monkeypatch):
    monkeypatch.setenv(FLAGS, "--tf_xla_auto_jit=1")
    keep_programs(tmp_path)
    assert os.environ[FLAGS] == "--tf_xla_auto_jit=1"


def test_each_version_and_processor_has_its_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = default_folder()
    assert folder.parent == tmp_path / "keras-transformer" and folder == default_folder()
    monkeypatch.setattr("importlib.metadata.version", lambda name: "2.99")
    other = default_folder()
    monkeypatch.setenv("XLA_FLAGS", "--xla_backend_optimization_level=0")
    assert len({folder, other, default_folder()}) == 3


@pytest.mark.slow  # new interpreters, which compile with XLA
def test_a_program_from_the_disk_is_that_of_its_compilation(tmp_path):
    def searched():
        return in_new_process(SEARCHES, tmp_path)

    fresh = searched()
    assert fresh[0] == 1
    (file,) = tmp_path.iterdir()
    written = file.stat().st_mtime_ns
    assert searched() == fresh
    assert [path.stat().st_mtime_ns for path in tmp_path.iterdir()] == [written]  # only read
    size = file.stat().st_size
    file.write_bytes(file.read_bytes()[: size // 2])
    assert searched() == fresh
    (file,) = tmp_path.iterdir()
    assert file.stat().st_size > size * 0.9  # whole again; names in it vary
