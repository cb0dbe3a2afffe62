"""Flags of any value: every program ends with one line that can be read, and never a traceback."""

import subprocess

import pytest
from absl import flags

from tests.program_fixtures import loaded

DIGITS = "9" * 5000  # more than Python makes a number of
WRONG_NUMBERS = ["", "nan", "-1", DIGITS]
WRONG_TEXTS = ["", DIGITS]
# What a program needs; nothing is there, so that each call ends early, whatever its flags.
PROGRAMS = {
    "attention": ["--model_dir=absent", "--source=a", "--output=page.html"],
    "average_checkpoints": ["--model_dir=absent"],
    "draw_trees": ["--trees=absent"],
    "evaluate": ["--data_dir=absent", "--model_dir=absent"],
    "export": ["--model_dir=absent", "--export_dir=export"],
    "import_model": ["--path=absent", "--model_dir=model"],
    "paper_tables": ["--measured=absent", "--layers=absent"],
    "prepare_data": ["--dataset=files", "--data_dir=data", "--train_source=absent"],
    "quickstart": ["--work_dir=work"],
    "serve": ["--model_dir=absent"],
    "sweep": ["--data_dir=absent", "--model_dir=sweep"],
    "train": ["--data_dir=absent", "--model_dir=model"],
    "translate": ["--model_dir=absent"],
}


@pytest.fixture(autouse=True)
def no_processes(monkeypatch):
    """Keeps quickstart from starting the other programs."""

    def refuse(*_, **__):
        raise OSError("no processes here")

    monkeypatch.setattr(subprocess, "run", refuse)


@pytest.fixture
def refused(call_program, tmp_path):
    """Runs a program that must end with one line of an error, which is returned."""

    def call(name, *arguments):
        done = call_program(name, *arguments, cwd=tmp_path)
        assert done.code in (1, 2) and done.output == "", arguments
        lines = [line for line in done.errors.splitlines() if not line.startswith("$ ")]
        (line,) = filter(None, lines)
        assert line.startswith("error: ") and len(line) < 2100 and line.isprintable()
        return line

    return call


def flags_of(name):
    """The flags of a program, and whether they are numbers."""
    with loaded(name) as module:
        own = flags.FLAGS.get_flags_for_module(module.__name__)
        numeric = (flags.IntegerParser, flags.FloatParser)
        return {flag.name: isinstance(flag.parser, numeric) for flag in own}


@pytest.mark.parametrize("name", PROGRAMS)
def test_any_value_of_any_flag(refused, name):
    for flag, is_number in flags_of(name).items():
        given = [other for other in PROGRAMS[name] if not other.startswith(f"--{flag}=")]
        for value in WRONG_NUMBERS if is_number else WRONG_TEXTS:
            line = refused(name, *given, f"--{flag}={value}")
            is_read = not is_number or value == "-1"
            assert is_read or f"--{flag}" in line, line


@pytest.mark.parametrize("name", PROGRAMS)
def test_text_that_is_none(refused, tmp_path, name):
    assert "Received: [Errno 2]" in refused(name, *PROGRAMS[name], "--flagfile=absent").replace(
        "Unable to open flagfile: ", "Received: "
    )
    message = "must be text in UTF-8 without NUL, names of files included. Received: "
    first = PROGRAMS[name][0].partition("=")[0]
    assert refused(name, f"{first}=\udcff") == rf"error: {first} {message}{first}=\udcff"
    file = tmp_path / "flags"
    file.write_bytes(b"%s=a\0b\n" % first.encode())
    assert refused(name, f"--flagfile={file}") == rf"error: {first} {message}{first}=a\x00b"
    file.write_bytes(bytes(range(256)))
    line = refused(name, f"--flagfile={file}")
    assert line.startswith("error: --flagfile must be a file of text, a flag a line. Received: ")
    assert len(refused(name, *PROGRAMS[name], f"--flagfile={'x' * 10**6}")) > 1000


@pytest.mark.parametrize(
    ("name", "flag"),
    [
        ("quickstart", "train_minutes"),
        ("sweep", "train_minutes"),
        ("train", "train_minutes"),
        ("translate", "alpha"),
    ],
)
def test_numbers_are_finite(refused, name, flag):
    for value, number in (("nan", "nan"), ("inf", "inf"), ("1e999", "inf")):
        line = refused(name, *PROGRAMS[name], f"--{flag}={value}")
        assert line == f"error: --{flag} must be finite. Received: {number}"


def test_numbers_that_are_too_large(refused):
    line = refused("train", *PROGRAMS["train"], "--connect_seconds=1e308")
    rule = "--connect_seconds must be positive, and 86400 at most"
    assert line == f"error: {rule}. Received: 1e+308"


def test_values_of_several_parts(refused, load_program):
    data = PROGRAMS["train"]
    line = refused("train", *data, f"--profile_steps={DIGITS},{DIGITS}")
    assert line.startswith("error: --profile_steps must be FIRST,LAST with 1 <= FIRST <= LAST")
    line = refused("train", *data, f"--config=num_heads={DIGITS}")
    assert line.startswith("error: --config num_heads must be a whole number. Received: '999")
    limits = f"--length_limits=1,{DIGITS}"
    line = refused("prepare_data", *PROGRAMS["prepare_data"], limits, "--train_target=absent")
    assert "--train_source" in line or "--length_limits" in line
    attention = load_program("attention", *PROGRAMS["attention"])
    with pytest.raises(ValueError, match=r"^--heads must be from 1 to 8\. Received: 999"):
        attention.check_number("heads", DIGITS, 8)


@pytest.mark.parametrize(
    ("name", "flag", "wanted"),
    [
        ("train", "--tokens_per_bach=9", "flag 'tokens_per_bach'. Did you mean: tokens_per_batch"),
        ("train", "--config=warmup_step=9", "Received: 'warmup_step' (did you mean warmup_steps?)"),
        ("train", f"--{'x' * 5000}=1", "flags must be those of this program"),
    ],
)
def test_what_was_meant(refused, name, flag, wanted):
    assert wanted in refused(name, *PROGRAMS[name], flag)
