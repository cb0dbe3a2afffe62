"""The shared part of all programs: lines on stderr, --help, and errors for wrong flags."""

import os
import re
import signal
import subprocess
import sys

import pytest
from absl import flags

from keras_transformer.support.errors import InputError
from tests.processes import PATIENCE
from tests.program_fixtures import BIN

# A program whose library writes as TensorFlow does: to the descriptor, to the log, as a warning.
PROGRAM = """
from command.run import run
import os, sys
from absl import flags

flags.DEFINE_string("ending", None, "How it ends.", required=True)

def main():
    print("own line", file=sys.stderr)
    import noisy
    noisy.{ending}()
    return {{"a": 1}}

run(main)
"""
LIBRARY = """
import os, warnings
from absl import logging
from keras_transformer.support.errors import InputError

os.write(2, b"native line\\n")
logging.warning("line of its log")
warnings.warn("its warning")

def well():
    logging.error("its error")

def wrong():
    raise InputError("ending", "must be well", "wrong")

def broken():
    raise ImportError("its library is damaged")

def terminated():
    import signal
    from keras_transformer.support.files.replacing import replacing
    with replacing("out") as file:
        file.write(b"a part")
        signal.raise_signal(signal.SIGTERM)

def aborted():
    os.write(2, b"F0000 Check failed\\n" * 2000)
    os.abort()
"""
NATIVE = "native line"


@pytest.fixture
def ending(tmp_path):
    """Runs a program with an interpreter of its own that ends in a certain way."""

    def run(name, *arguments):
        (tmp_path / "noisy.py").write_text(LIBRARY)
        (tmp_path / "program.py").write_text(PROGRAM.format(ending=name))
        environment = {**os.environ, "PYTHONPATH": str(BIN)}
        done = subprocess.run(
            [sys.executable, tmp_path / "program.py", *arguments],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
        return done.returncode, done.stdout, done.stderr

    return run


def test_what_libraries_log_and_warn_of_is_not_shown(ending):
    code, output, errors = ending("well", "--ending=well")
    assert (code, output) == (0, '{"a": 1}\n')
    own, native, error = errors.splitlines()
    assert (own, native) == ("own line", NATIVE)
    assert re.fullmatch(r"\d\d:\d\d:\d\d error: its error", error)


def test_it_is_shown_if_it_is_asked_for(ending):
    for flag in ("--verbosity=1", "-v=1"):
        code, output, errors = ending("well", "--ending=well", flag)
        assert (code, output) == (0, '{"a": 1}\n')
        for text in ("native line\n", "line of its log\n", "its warning\n"):
            assert text in errors


def test_an_interrupt_during_imports_has_no_traceback(tmp_path):
    # As from a terminal: a process that was started in the background may ignore the signal.
    (tmp_path / "absl.py").write_text(
        "import signal\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "signal.raise_signal(signal.SIGINT)\n"
    )
    done = subprocess.run(
        [sys.executable, BIN / "translate.py"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    ending = (done.returncode, done.stdout, done.stderr)
    assert ending == (-signal.SIGINT, "", "interrupted\n")  # which shells call 130


def test_wrong_input_is_one_line(ending):
    code, output, errors = ending("wrong", "--ending=wrong")
    assert (code, output) == (1, "")
    assert errors.splitlines() == [
        "own line",
        NATIVE,
        "error: --ending must be well. Received: wrong",
    ]


def test_a_library_that_cannot_be_imported_has_a_traceback(ending):
    code, _, errors = ending("broken", "--ending=broken")
    assert code == 1 and errors.startswith(f"own line\n{NATIVE}\nTraceback")
    assert errors.endswith("ImportError: its library is damaged\n")


def test_a_program_that_is_terminated_leaves_no_file(ending, tmp_path):
    code, output, errors = ending("terminated", "--ending=terminated")
    assert (code, output, errors) == (143, "", f"own line\n{NATIVE}\n")
    assert set(os.listdir(tmp_path)) <= {"noisy.py", "program.py", "__pycache__"}


def test_nothing_is_lost_when_a_library_aborts(ending):
    code, output, errors = ending("aborted", "--ending=aborted")
    assert (code, output) == (-signal.SIGABRT, "")
    # absl enables faulthandler, which writes this line.
    before, after = errors.split("Fatal Python error: Aborted")
    assert before.splitlines() == ["own line", NATIVE, *["F0000 Check failed"] * 2000]
    assert "noisy.py" in after


@pytest.mark.parametrize(
    ("error", "wanted"),
    [
        (InputError("beam_size", "must be 1", 0), "--beam_size must be 1. Received: 0"),
        (InputError("alpha", "must be less"), "--alpha must be less"),
        (InputError("alpha[1]", "must be less", 3), "--alpha[1] must be less. Received: 3"),
        (InputError("alpha.mean", "must be less"), "--alpha.mean must be less"),
        # Names that are not flags of the program stay.
        (InputError("width", "must be 1", 2), "width must be 1. Received: 2"),
        (InputError("alphas", "must be 1", 2), "alphas must be 1. Received: 2"),
        # The rule and the received value stay.
        (InputError("alpha", "must fit beam_size", "n"), "--alpha must fit beam_size. Received: n"),
        # Messages about a file stay.
        (InputError("alpha", "must be 1", None, "a/b.json"), "a/b.json: alpha must be 1"),
        (InputError(None, "must have alpha", 2, "alpha"), "alpha must have alpha. Received: 2"),
        (InputError(None, "must be one line\nof text"), "must be one line of text"),
    ],
)
def test_arguments_are_named_as_flags(load_program, error, wanted):
    load_program("translate")
    from command.errors import with_flag

    assert with_flag(error) == wanted


def test_settings_of_config_are_named_as_such(load_program):
    load_program("train", "--data_dir=d", "--model_dir=m", "--config=clip_norm=-1")
    from command.errors import with_flag

    # Given by --config; without a flag of its own; with one.
    for argument, wanted in (
        ("clip_norm", "--config clip_norm"),
        ("dropout", "--config dropout"),
        ("tokens_per_batch", "--tokens_per_batch"),
    ):
        assert with_flag(InputError(argument, "must be 1")) == f"{wanted} must be 1"


def test_every_search_flag_is_an_option_of_the_search(load_program, tmp_path):
    from keras_transformer.core.search.config import DecodingConfig

    phrases = tmp_path / "phrases"
    phrases.write_text("a cat\n\n the dog \n")
    given = {"beam_size": 3, "alpha": 0.5, "batch_tokens": 7, "early_stopping": True}
    given |= {"min_length": 2, "no_repeat_ngram_size": 4, "forbidden_phrases": phrases}
    arguments = [f"--{name}={value}" for name, value in given.items()]
    load_program("evaluate", "--data_dir=d", *arguments)
    from command.model import given_search_flags, search_fields, search_options

    options = search_options()
    assert options == given | {"forbidden_phrases": ("a cat", " the dog ")}
    assert DecodingConfig(**options).beam_size == 3
    assert list(options) == list(search_fields())
    reported = given_search_flags()
    assert reported == {name: flags.FLAGS[name].value for name in given if name != "batch_tokens"}
    load_program("evaluate", "--data_dir=d")
    assert search_options() == given_search_flags() == {}
