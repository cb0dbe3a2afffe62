"""What a type checker knows about a program that uses the library."""

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import keras_transformer as kt

def translated(translator: kt.TextTranslator, text: str) -> str:
    (answer,) = translator.translate([text])[0]
    return answer.text

print(translated(kt.load("runs/model", beam_size=4), "A dog."))
kt.nothing
"""


def test_public_names_have_types(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    options = ["--strict", "--follow-imports=silent", "--python-executable", sys.executable]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, program.name],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(Path(__file__).resolve().parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )
    line, *rest = done.stdout.splitlines()
    assert line == 'program.py:9: error: Module has no attribute "nothing"  [attr-defined]', done
    assert len(rest) == 1, rest
