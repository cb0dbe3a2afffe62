"""The fields of the library's dataclasses and named tuples, as rows of Markdown tables.

What a field is for stands beside it in the code, as the help text of an option, as a comment or in
the docstring; its type and its rule are its annotation.
"""

import ast
import dataclasses
import inspect
import io
import re
import textwrap
import tokenize
import types
import typing
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

from keras_transformer.support.fields import Rule, options_of

TYPES = {int: "whole number", float: "number", bool: "true or false", str: "text"}
CHOICES = "be one of "


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(map(_cell, line))} |\n" for line in lines)


def _cell(text: str) -> str:
    """A text as a cell may hold it: without what ends it, or begins a tag of HTML."""
    text = " ".join(text.split()).replace("|", "\\|")
    parts = re.split(r"(`[^`]*`)", text)  # every second one is code
    parts[::2] = [part.replace("<", "&lt;") for part in parts[::2]]
    return "".join(parts)


def linked(text: str) -> str:
    """A text whose numbers of arXiv are links."""
    return re.sub(r"arXiv (\d{4}\.\d{4,5})", r"[arXiv \1](https://arxiv.org/abs/\1)", text)


def type_and_rule(annotation: Any) -> tuple[str, str]:
    """The type of a field in words, and the rule that its values must fulfil beside it."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (types.UnionType, typing.Union):
        kinds = [kind for kind in arguments if kind is not type(None)]
        found = [type_and_rule(kind) for kind in kinds]
        names = [name for name, _ in found] + ["`None`"] * (len(kinds) < len(arguments))
        return " or ".join(names), "; ".join(rule for _, rule in found if rule)
    if origin is Annotated:
        name, _ = type_and_rule(arguments[0])
        rule = arguments[1]
        if not isinstance(rule, Rule):
            return name, ""
        if rule.text.startswith(CHOICES):
            names = rule.text.removeprefix(CHOICES).split(", ")
            return ", ".join(f"`{choice}`" for choice in names), ""
        return name, rule.text.removeprefix("be ")
    if annotation in TYPES:
        return TYPES[annotation], ""
    name = annotation.__name__ if inspect.isclass(annotation) and not arguments else annotation
    return f"`{str(name).replace('numpy.', 'np.').replace('typing.', '')}`", ""


def default_of(field: dataclasses.Field) -> str:
    """The default of a field as Python has it; empty for a field that must be given."""
    if field.default is not dataclasses.MISSING:
        return f"`{field.default!r}`"
    if field.default_factory is not dataclasses.MISSING:
        return f"`{field.default_factory()!r}`"
    return ""


def comments(kind: type) -> dict[str, str]:
    """The description of each field: its help text, or the comment beside or above it."""
    source = textwrap.dedent(inspect.getsource(kind))
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    on_line = {
        token.start[0]: token.string.lstrip("# ")
        for token in tokens
        if token.type == tokenize.COMMENT
    }
    lines = source.splitlines()
    found = {}
    for node in ast.parse(source).body[0].body:
        if not isinstance(node, ast.AnnAssign):
            continue
        first = node.lineno  # of the comment right above, or of the field
        while lines[first - 2].lstrip().startswith("#"):
            first -= 1
        above = " ".join(on_line[line] for line in range(first, node.lineno))
        found[node.target.id] = on_line.get(node.end_lineno, above)
    options = options_of(kind) if dataclasses.is_dataclass(kind) else {}
    helps = {name: field.metadata["help"] for name, field in options.items()}
    return {**found, **helps}


def argument_texts(docstring: str) -> dict[str, str]:
    """The text of each argument in the section "Args:" of a docstring."""
    section = re.search(r"^ *Args:\n(.*?)(?:\n\n|\Z)", inspect.cleandoc(docstring), re.M | re.S)
    if section is None:
        return {}
    entries = re.split(r"^    (\w+): ", section[1], flags=re.M)[1:]
    return {
        name: " ".join(text.split()) for name, text in zip(entries[::2], entries[1::2], strict=True)
    }
