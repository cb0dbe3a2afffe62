"""Flags of any value: every program ends with one line that can be read, and never a traceback."""

import pytest
from absl import flags

from pipelines.prepare import preparation
from tests import refusals
from tests.program_fixtures import loaded
from tests.refusals import check_line

DIGITS = "9" * 5000  # more than Python makes a number of
WRONG_NUMBERS = ["", "nan", "-1", DIGITS]
WRONG_TEXTS = ["", DIGITS]
# The required flags. Their files do not exist, so each call ends early, whatever its other flags.
PROGRAMS = {
    "adapt": [
        *("--model_dir=absent", "--corrections=absent.tmx"),
        *("--adapter_dir=adapter", "--data_dir=absent"),
    ],
    "attention": ["--model_dir=absent", "--source=a", "--output=page.html"],
    "average_checkpoints": ["--model_dir=absent"],
    "evaluate": ["--data_dir=absent", "--model_dir=absent"],
    "export": ["--model_dir=absent", "--export_dir=export"],
    "import_model": ["--path=absent", "--model_dir=model"],
    "paper_tables": ["--measured=absent", "--model_dirs=absent"],
    "prepare_data": [
        *("--dataset=files", "--data_dir=data"),
        *("--train_source=absent", "--train_target=absent"),
    ],
    "quickstart": ["--work_dir=work"],
    "serve": ["--model_dir=absent"],
    "sweep": ["--data_dir=absent", "--model_dir=sweep"],
    "train": ["--data_dir=absent", "--model_dir=model"],
    "translate": ["--model_dir=absent"],
}


@pytest.fixture(autouse=True)
def no_training(monkeypatch):
    """Keeps the quickstart from what it does where all flags are right."""

    def refuse(*_, **__):
        raise OSError("no training here")

    monkeypatch.setattr(preparation, "prepare", refuse)


@pytest.fixture
def refused(call_program, tmp_path):
    """Runs a program that must end with one line of an error, which is returned."""

    def call(name, *arguments):
        done = call_program(name, *arguments, cwd=tmp_path)
        assert done.code in (1, 2) and done.output == "", arguments
        announced = ("A Transformer learns", "$ ")  # by the quickstart
        lines = [line for line in done.errors.splitlines() if not line.startswith(announced)]
        (line,) = filter(None, lines)
        assert line.startswith("error: ") and len(line) < 2100 and line.isprintable()
        return line

    return call


def flags_of(name):
    """The flags of a program: (defining module, name) -> whether they are numbers."""
    with loaded(name) as module:
        own = flags.FLAGS.get_key_flags_for_module(module.__name__)
        numeric = (flags.IntegerParser, flags.FloatParser)
        found = {}
        for flag in own:
            key = flags.FLAGS.find_module_defining_flag(flag.name), flag.name
            found[key] = isinstance(flag.parser, numeric)
        return found


@pytest.fixture(scope="module")
def tried():
    """The flags that earlier tests have tried: those that programs share are tried once."""
    return set()


@pytest.mark.parametrize("name", PROGRAMS)
def test_any_value_of_any_flag(refused, tried, name):
    for key, is_number in flags_of(name).items():
        if key in tried:
            continue
        tried.add(key)
        _, flag = key
        given = [other for other in PROGRAMS[name] if not other.startswith(f"--{flag}=")]
        for value in WRONG_NUMBERS if is_number else WRONG_TEXTS:
            line = refused(name, *given, f"--{flag}={value}")
            is_read = not is_number or value == "-1"
            assert is_read or f"--{flag}" in line, line


def test_text_that_is_none(refused, tmp_path):
    given = PROGRAMS["translate"]
    assert "[Errno 2]" in refused("translate", *given, "--flagfile=absent")
    check_line(refused("translate", "--model_dir=\udcff"), "--model_dir", r"--model_dir=\udcff")
    file = tmp_path / "flags"
    file.write_bytes(b"--model_dir=a\0b\n")
    check_line(refused("translate", f"--flagfile={file}"), "--model_dir", r"--model_dir=a\x00b")
    file.write_bytes(bytes(range(256)))
    check_line(refused("translate", f"--flagfile={file}"), "--flagfile")
    assert len(refused("translate", *given, f"--flagfile={'x' * 10**6}")) > 1000


@pytest.mark.parametrize("flag", ["train_minutes", "connect_seconds"])
def test_numbers_are_finite(refused, flag):
    line = refused("train", *PROGRAMS["train"], f"--{flag}=inf")
    check_line(line, f"--{flag}", "inf", "finite")


@pytest.mark.parametrize("name", ["quickstart", "sweep", "train"])
def test_seeds_have_32_bits(refused, name):
    line = refused(name, *PROGRAMS[name], f"--seed={2**32}")
    assert "--seed" in line and "4294967295" in line


def test_values_of_several_parts(refused, load_program):
    data = PROGRAMS["train"]
    line = refused("train", *data, f"--profile_steps={DIGITS},{DIGITS}")
    check_line(line, "--profile_steps", "999")
    line = refused("train", *data, f"--config=num_heads={DIGITS}")
    check_line(line, "--config num_heads", "'999")
    limits = f"--length_limits=1,{DIGITS}"
    line = refused("prepare_data", *PROGRAMS["prepare_data"], limits)
    assert "--train_source" in line or "--length_limits" in line
    attention = load_program("attention", *PROGRAMS["attention"])
    with refusals.refused("heads", "999"):
        attention.check_number("heads", DIGITS, 8)


@pytest.mark.parametrize(
    ("flag", "wanted"),
    [
        ("--tokens_per_bach=9", ["tokens_per_bach", "tokens_per_batch"]),
        ("--config=warmup_step=9", ["--config", "'warmup_step'", "warmup_steps?"]),
        (f"--{'x' * 5000}=1", ["flags"]),
    ],
)
def test_what_was_meant(refused, flag, wanted):
    line = refused("train", *PROGRAMS["train"], flag)
    assert all(word in line for word in wanted), line
