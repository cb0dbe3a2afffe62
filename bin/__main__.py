"""The console command `keras-transformer PROGRAM --flag=value ...`: runs a program in this folder.

This folder is installed as the package `keras_transformer_programs`. In a checkout, `python bin
PROGRAM ...` does the same as `python bin/PROGRAM.py ...`.
"""

import ast
import difflib
import runpy
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
PROGRAM_FILES = {path.stem: path for path in sorted(FOLDER.glob("[!_]*.py"))}  # by name


def main() -> None:
    """Runs the program named by the first argument with the remaining arguments."""
    name = sys.argv[1] if len(sys.argv) > 1 else "--help"
    if name in ("-h", "--help", "--helpshort", "help"):
        print(help_text())
    elif name not in PROGRAM_FILES:
        rule = f"the program must be one of {', '.join(PROGRAM_FILES)}"
        similar = difflib.get_close_matches(name, PROGRAM_FILES, n=1)
        meant = f" (did you mean {similar[0]}?)" if similar else ""
        print(f"error: {rule}. Received: {name!r}{meant}", file=sys.stderr)
        sys.exit(1)
    else:
        sys.argv = [f"keras-transformer {name}", *sys.argv[2:]]
        sys.path.insert(0, str(FOLDER))  # as Python does for a script: programs import `command`
        runpy.run_path(str(PROGRAM_FILES[name]), run_name="__main__")


def help_text() -> str:
    """Returns the usage line and the first line of each program's docstring."""
    lines = ["usage: keras-transformer PROGRAM [--flag=value ...]", ""]
    for name, path in PROGRAM_FILES.items():
        docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
        lines.append(f"  {name:<21}{docstring.splitlines()[0]}")
    return "\n".join([*lines, "", "keras-transformer PROGRAM --help lists the program's flags."])


if __name__ == "__main__":
    main()
