"""Properties of all programs."""

import ast
import os
import re
import shutil
import subprocess
import sys

import pytest

from bin.__main__ import PROGRAM_FILES
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
PROGRAMS = list(PROGRAM_FILES)


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
    for flag in ("-h", "--help", "--helpshort", "--helpfull"):
        done = call_program(name, flag)
        assert (done.code, done.errors) == (0, ""), flag
        assert "--verbosity: 0: progress and warnings; 1: also" in " ".join(done.output.split())


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


@pytest.fixture(scope="module")
def command(tmp_path_factory):
    """Runs `keras-transformer` with the folders under their installed names, in an empty folder."""
    site = tmp_path_factory.mktemp("site")
    shutil.copytree(BIN, site / "keras_transformer_programs")
    for package in ("keras_transformer", "pipelines"):
        (site / package).symlink_to(BIN.parent / package)
    # The console command of pyproject.toml executes this.
    program = "import sys; from keras_transformer_programs.__main__ import main; main()"

    def run(*arguments):
        done = subprocess.run(
            [sys.executable, "-P", "-c", program, *arguments],
            capture_output=True,
            text=True,
            cwd=tmp_path_factory.mktemp("empty"),
            env={**os.environ, "PYTHONPATH": str(site)},
            check=False,
            timeout=PATIENCE,
        )
        return done.returncode, done.stdout, done.stderr

    return run


def test_the_console_command_lists_every_program_with_its_first_line(command):
    code, output, errors = command("--help")
    assert (code, errors) == (0, "")
    assert [command(flag) for flag in ("-h", "--helpshort")] == 2 * [(0, output, "")]
    listed = dict(line.strip().split(maxsplit=1) for line in output.splitlines()[2:-2])
    assert listed == {
        name: ast.get_docstring(ast.parse((BIN / f"{name}.py").read_text())).splitlines()[0]
        for name in PROGRAMS
    }


def test_the_console_command_runs_a_program(command):
    code, output, errors = command("paper_tables", "--table=3", "--json")
    assert (code, errors) == (0, "")
    assert output.startswith('{"table3": [{"row": "base"')


def test_the_help_of_a_program_lists_its_flags(command):
    code, output, errors = command("train", "--help")
    assert (code, errors) == (0, "")
    assert (
        "  --preset: Model: tiny, base, big, " in output and "-v,--verbosity: 0: progress" in output
    )
    groups = {group.partition(":\n")[0]: group for group in output.split("\n\n")}
    assert "--precision: Type of activations; " in groups["optimization"]
    assert "(one of float32,\n    bfloat16, float16; default: float32)" in groups["optimization"]
    assert "--strategy: " in groups["devices"]
    assert "--data_dir: " in groups["flags"] and "--train_steps: " not in groups["flags"]


def flags_in(help_text):
    """The names of the flags that a help text lists."""
    return set(re.findall(r"^  (?:-v,)?--(?:\[no\])?(\w+): ", help_text, re.M))


def test_help_lists_what_most_people_need_and_helpfull_the_rest(run_program):
    shown = run_program("train", "--help").output
    full = run_program("train", "--helpfull").output
    assert len(flags_in(shown)) == 14 and {"train_steps", "preset", "seed"} < flags_in(shown)
    assert flags_in(full) - flags_in(shown) > {"accumulate_steps", "deterministic", "freeze"}
    assert "--[no]deterministic: " in full and "--helpfull lists 17 more flags" in shown


@pytest.mark.parametrize("name", ["prepare_data", "serve", "sweep", "translate"])
def test_help_has_none_of_the_phrases_of_absl(name, run_program):
    text = run_program(name, "--helpfull").output.partition("absl.")[0]
    for phrase in ("(default: '", "a comma separated list", "(an integer)", "repeat this option"):
        assert phrase not in text


def test_the_default_of_verbosity_is_what_programs_do(run_program):
    text = run_program("train", "--help").output
    assert re.search(r"-v,--verbosity: 0: progress and .*\n.*\(default:\s+0\)", text)


def test_the_console_command_names_an_unknown_program(command):
    for name, received in (("trian", "'trian' (did you mean train?)"), ("parse", "'parse'")):
        code, output, errors = command(name)
        assert (code, output) == (1, "") and errors.count("\n") == 1
        check_line(errors, "the program", received, ", ".join(PROGRAMS))
