"""Docstrings as the documentation site shows them (an extension of griffe, which reads them)."""

import itertools
import re
from typing import Any

import griffe

# A section that griffe does not know: its entries become a list.
CALL_ARGUMENTS = re.compile(r"^( *)Call arguments:\n((?:\1 +.*\n?|\n(?=\1 ))+)", re.M)
ENTRY = re.compile(r"^( +)(\w+): ", re.M)


class Sections(griffe.Extension):
    """Makes two sections of what the library writes in its own way.

    "Call arguments:" of layers and models becomes a list. The fields of a class become its section
    "Attributes:", with the comments or the help texts beside them.
    """

    def on_object(self, *, obj: griffe.Object, **others: Any) -> None:
        if obj.docstring is None:
            return
        obj.docstring.value = CALL_ARGUMENTS.sub(_as_list, obj.docstring.value)

    def on_class(self, *, cls: griffe.Class, **others: Any) -> None:
        described = {name: description(field) for name, field in cls.attributes.items()}
        entries = [f"    {name}: {text}\n" for name, text in described.items() if text]
        if entries and cls.docstring is not None:
            cls.docstring.value += f"\n\nAttributes:\n{''.join(entries)}"


def _as_list(section: re.Match) -> str:
    body = section[2]
    indent = len(ENTRY.match(body)[1])
    entries = re.sub(rf"^ {{{indent}}}(\w+): ", rf"{' ' * indent}- `\1`: ", body, flags=re.M)
    return f"{section[1]}Call arguments:\n{entries}"


def description(field: griffe.Attribute) -> str:
    """The help text of an option, or else the comment at the end of a field or above it."""
    if isinstance(field.value, griffe.ExprCall) and str(field.value.function) == "option":
        text = str(field.value.arguments[1])  # as in the code, with its quotation marks
        return text.removeprefix("f")[1:-1]
    lines = field.lines_collection[field.filepath]
    comment = re.search(r"  # (.+)$", lines[field.endlineno - 1])
    if comment:
        return comment[1]
    above = reversed(lines[: field.lineno - 1])
    comments = itertools.takewhile(lambda line: line.lstrip().startswith("#"), above)
    return " ".join(line.lstrip("# ") for line in reversed([*comments]))
