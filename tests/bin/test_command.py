"""What the programs share: which lines are on stderr, and what --help and wrong flags say."""

import os
import signal
import subprocess
import sys

import pytest

from tests.processes import PATIENCE
from tests.program_fixtures import BIN

# A program whose library writes as TensorFlow does: to the descriptor, to the log, as a warning.
PROGRAM = """
import command  # isort: skip
import os, sys
from absl import flags

flags.DEFINE_string("ending", None, "How it ends.", required=True)

def main():
    print("own line", file=sys.stderr)
    import noisy
    noisy.{ending}()
    return {{"a": 1}}

command.run(main)
"""
LIBRARY = """
import os, warnings
from absl import logging
from keras_transformer.errors import InputError

os.write(2, b"I0000 native line\\n")
logging.warning("line of its log")
warnings.warn("its warning")

def well():
    logging.error("its error")

def wrong():
    raise InputError("ending must be well. Received: wrong")

def broken():
    raise ImportError("its library is damaged")

def aborted():
    os.write(2, b"F0000 Check failed\\n" * 2000)
    os.abort()
"""
FOREIGN = ("native line", "line of its log", "its warning")


@pytest.fixture
def ending(tmp_path):
    """Runs a program with an interpreter of its own that ends in a certain way."""

    def run(name, *arguments):
        (tmp_path / "noisy.py").write_text(LIBRARY)
        (tmp_path / "program.py").write_text(PROGRAM.format(ending=name))
        done = subprocess.run(
            [sys.executable, tmp_path / "program.py", *arguments],
            env={**os.environ, "PYTHONPATH": str(BIN)},
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
        return done.returncode, done.stdout, done.stderr

    return run


def test_what_libraries_write_is_not_shown_where_all_goes_well(ending):
    code, output, errors = ending("well", "--ending=well")
    assert (code, output) == (0, '{"a": 1}\n')
    own, error = errors.splitlines()
    assert own == "own line" and error.endswith("] its error")


def test_it_is_shown_if_it_is_asked_for(ending):
    for flag in ("--verbosity=1", "-v=1"):
        code, output, errors = ending("well", "--ending=well", flag)
        assert (code, output) == (0, '{"a": 1}\n')
        assert [text for text in FOREIGN if text in errors] == list(FOREIGN)


def test_wrong_input_is_one_line(ending):
    line = "error: --ending must be well. Received: wrong"
    assert ending("wrong", "--ending=wrong") == (1, "", f"own line\n{line}\n")


def test_a_library_that_cannot_be_imported_shows_what_it_wrote(ending):
    code, _, errors = ending("broken", "--ending=broken")
    assert code == 1 and errors.startswith("own line\nI0000 native line\nTraceback")
    assert errors.endswith("ImportError: its library is damaged\n")


def test_a_library_that_aborts_shows_what_it_wrote_last(ending):
    code, output, errors = ending("aborted", "--ending=aborted")
    assert (code, output) == (-signal.SIGABRT, "")
    told, where = errors.split("Fatal Python error: Aborted")  # of faulthandler, which absl enables
    own, *native = told.splitlines()
    assert own == "own line" and len(native) > 900 and set(native) == {"F0000 Check failed"}
    assert "noisy.py" in where
