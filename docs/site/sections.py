"""Docstrings as the documentation site shows them (an extension of griffe, which reads them)."""

import re
from typing import Any

import griffe

# A section that griffe does not know: its entries become a list.
CALL_ARGUMENTS = re.compile(r"^( *)Call arguments:\n((?:\1 +.*\n?|\n(?=\1 ))+)", re.M)
ENTRY = re.compile(r"^( +)(\w+): ", re.M)


class Sections(griffe.Extension):
    """Makes the section "Call arguments:" of layers and models a list of arguments."""

    def on_object(self, *, obj: griffe.Object, **others: Any) -> None:
        if obj.docstring is None:
            return
        obj.docstring.value = CALL_ARGUMENTS.sub(_as_list, obj.docstring.value)


def _as_list(section: re.Match) -> str:
    body = section[2]
    indent = len(ENTRY.match(body)[1])
    entries = re.sub(rf"^ {{{indent}}}(\w+): ", rf"{' ' * indent}- `\1`: ", body, flags=re.M)
    return f"{section[1]}Call arguments:\n{entries}"
