"""Standard streams that are closed, full, or no longer read: one line, and no traceback."""

import errno
import os

import pytest

from tests.processes import run_python
from tests.program_fixtures import BIN, ended
from tests.refusals import check_line

# Runs the program argv[2] after its stdout has become what argv[1] says.
REDIRECTED = """
import os, runpy, sys
kind, sys.argv = sys.argv[1], sys.argv[2:]
if kind == "full":
    os.dup2(os.open("/dev/full", os.O_WRONLY), 1)
elif kind == "unread":
    reader, writer = os.pipe()
    os.close(reader)
    os.dup2(writer, 1)
else:
    stream = {"no stdin": 0, "no stdout": 1}[kind]
    os.close(stream)
    setattr(sys, kind.split()[1], None)  # as Python does when it starts without one
sys.path.insert(0, os.path.dirname(sys.argv[0]))
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.fixture
def redirected(tmp_path):
    def run(kind, name, *arguments, **options):
        command = ("-c", REDIRECTED, kind, BIN / f"{name}.py", *arguments)
        return ended(name, *run_python(*command, folder=tmp_path, **options))

    return run


@pytest.mark.parametrize("program", ["translate", "paper_tables"])
def test_output_that_cannot_be_written(redirected, program, for_ctranslate2):
    arguments = {"translate": [f"--saved_model={for_ctranslate2}"], "paper_tables": ["--table=3"]}
    done = redirected("full", program, *arguments[program], stdin=b"a cat\n")
    assert done.code == 1
    check_line(done.errors, os.strerror(errno.ENOSPC))
    done = redirected("unread", program, *arguments[program], stdin=b"a cat\n")
    assert done.code == 141 and "rror" not in done.errors


def test_output_that_is_closed(redirected):
    done = redirected("no stdout", "paper_tables", "--table=3")
    assert done.code == 1
    check_line(done.errors, "stdout", "closed")


def test_input_that_is_closed(redirected, untrained):
    done = redirected("no stdin", "translate", f"--model_dir={untrained}")
    assert done.code == 1
    check_line(done.errors, "--input", "'-'")
    done = redirected("no stdin", "paper_tables", "--json")
    assert done.code == 0 and "table3" in done.result
