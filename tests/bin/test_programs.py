"""Properties of all programs."""

import ast
import os
import re
import shutil
import subprocess
import sys

import pytest

from bin import __main__ as console
from tests.bin.test_flags import PROGRAMS as REQUIRED_FLAGS
from tests.processes import PATIENCE
from tests.program_fixtures import BIN
from tests.refusals import check_line

PROGRAM = """
import runpy, sys
sys.argv = sys.argv[1:]
sys.path.insert(0, sys.argv.pop(0))
try:
    runpy.run_path(sys.argv[0], run_name="__main__")
finally:
    print({"tensorflow", "keras"} & set(sys.modules))
"""
WRONG = {**REQUIRED_FLAGS, "quickstart": ["--train_steps=none"]}
PROGRAMS = list(console.PROGRAM_FILES)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_wrong_flag_is_named_before_tensorflow_is_imported(name, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(BIN), str(BIN / f"{name}.py"), *WRONG[name]],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
        timeout=PATIENCE,
    )
    assert (done.returncode, done.stdout) == (1, "set()\n"), done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ") and any(flag.split("=")[0] in line for flag in WRONG[name])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", PROGRAMS)
def test_help_ends_well(name, call_program):
    spellings = ("-h", "--help", "--helpshort", "--helpfull")
    for flag in spellings if name == "train" else spellings[-1:]:
        done = call_program(name, flag)
        assert (done.code, done.errors) == (0, ""), flag
        text = " ".join(done.output.partition("absl.")[0].split())
        assert "--verbosity: 0: progress and warnings; 1: also" in text
        for phrase in ("(default: '", "a comma separated list", "(an integer)", "repeat this"):
            assert phrase not in text, "a phrase of absl"


def test_flags_in_a_file(call_program, tmp_path):
    file = tmp_path / "flags"
    file.write_text("# a table\n--table=3\n\n--json\n")
    done = call_program("paper_tables", f"--flagfile={file}")
    assert done.code == 0 and list(done.result) == ["table3"]
    file.write_text("--json\n--tabel=3\n")
    done = call_program("paper_tables", f"--flagfile={file}")
    (line,) = done.errors.splitlines()
    assert done.code == 1
    assert all(word in line for word in ("error: ", "'tabel'", ": table ", "--help"))


def test_flags_that_must_be_given(call_program):
    done = call_program("train", "--preset=tiny")
    (line,) = done.errors.splitlines()
    assert done.code == 1
    assert all(word in line for word in ("error: ", "--data_dir ", "--model_dir ", "--help"))


def test_the_installed_console_command_runs_a_program(tmp_path):
    """In an empty folder; the folders have their installed names."""
    shutil.copytree(BIN, tmp_path / "site" / "keras_transformer_programs")
    for package in ("keras_transformer", "pipelines"):
        (tmp_path / "site" / package).symlink_to(BIN.parent / package)
    (tmp_path / "empty").mkdir()
    # The console command of pyproject.toml executes this.
    program = "import sys; from keras_transformer_programs.__main__ import main; main()"
    done = subprocess.run(
        [sys.executable, "-P", "-c", program, "paper_tables", "--table=3", "--json"],
        capture_output=True,
        text=True,
        cwd=tmp_path / "empty",
        env={**os.environ, "PYTHONPATH": str(tmp_path / "site")},
        check=False,
        timeout=PATIENCE,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith('{"table3": [{"row": "base"')


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"], ["--helpshort"]])
def test_the_console_command_lists_every_program_with_its_first_line(
    arguments, monkeypatch, capsys
):
    monkeypatch.setattr(sys, "argv", ["keras-transformer", *arguments])
    console.main()
    lines = capsys.readouterr().out.splitlines()
    assert dict(line.strip().split(maxsplit=1) for line in lines[2:-2]) == {
        name: ast.get_docstring(ast.parse((BIN / f"{name}.py").read_text())).splitlines()[0]
        for name in PROGRAMS
    }


@pytest.mark.parametrize(
    ("name", "received"), [("trian", "'trian' (did you mean train?)"), ("parse", "'parse'")]
)
def test_the_console_command_names_an_unknown_program(name, received, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["keras-transformer", name])
    with pytest.raises(SystemExit) as ending:
        console.main()
    output, errors = capsys.readouterr()
    assert (ending.value.code, output) == (1, "") and errors.count("\n") == 1
    check_line(errors, "the program", received, ", ".join(PROGRAMS))


def test_the_help_of_a_program_lists_its_flags(call_program):
    text = call_program("train", "--help").output
    assert "  --preset: Model: tiny, base, big, " in text and "-v,--verbosity: 0: progress" in text
    groups = {group.partition(":\n")[0]: group for group in text.split("\n\n")}
    assert "--precision: Type of activations; " in groups["optimization"]
    assert "(one of float32,\n    bfloat16, float16; default: float32)" in groups["optimization"]
    assert "--strategy: " in groups["devices"]
    assert "--data_dir: " in groups["flags"] and "--train_steps: " not in groups["flags"]
    assert re.search(r"-v,--verbosity: 0: progress and .*\n.*\(default:\s+0\)", groups["flags"])


def flags_in(help_text):
    """The names of the flags that a help text lists."""
    return set(re.findall(r"^  (?:-v,)?--(?:\[no\])?(\w+): ", help_text, re.M))


def test_help_lists_what_most_people_need_and_helpfull_the_rest(call_program):
    shown = call_program("train", "--help").output
    full = call_program("train", "--helpfull").output
    assert len(flags_in(shown)) == 14 and {"train_steps", "preset", "seed"} < flags_in(shown)
    assert flags_in(full) - flags_in(shown) > {"accumulate_steps", "deterministic", "freeze"}
    assert "--[no]deterministic: " in full and "--helpfull lists 17 more flags" in shown
