"""What all programs have in common."""

import subprocess
import sys

import pytest

from tests.program_fixtures import BIN, PATIENCE

PROGRAM = """
import runpy, sys
sys.argv = sys.argv[1:]
sys.path.insert(0, sys.argv.pop(0))
try:
    runpy.run_path(sys.argv[0], run_name="__main__")
finally:
    print({"tensorflow", "keras"} & set(sys.modules))
"""
ABSENT = ["--model_dir=absent"]
DATA = ["--data_dir=absent", "--model_dir=model"]
WRONG = {  # the first of the flags is wrong
    "attention": [*ABSENT, "--source=a", "--output=page.html"],
    "average_checkpoints": ABSENT,
    "draw_trees": ["--trees=absent"],
    "evaluate": DATA,
    "export": [*ABSENT, "--export_dir=export"],
    "paper_tables": ["--table=5"],
    "prepare_data": ["--dataset=files", "--data_dir=data"],
    "quickstart": ["--train_steps=none"],
    "serve": ["--saved_model=absent"],
    "sweep": DATA,
    "train": DATA,
    "translate": ABSENT,
}


@pytest.mark.parametrize("name", sorted({path.stem for path in BIN.glob("*.py")} - {"command"}))
def test_a_wrong_flag_is_named_before_tensorflow_is_imported(name, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(BIN), str(BIN / f"{name}.py"), *WRONG[name]],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
        timeout=PATIENCE,
    )
    assert (done.returncode, done.stdout) == (1, "set()\n"), done.errors
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ") and WRONG[name][0].split("=")[0].lstrip("-") in line
    assert list(tmp_path.iterdir()) == []
