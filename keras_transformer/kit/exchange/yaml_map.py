"""Reads YAML maps, Marian's format for options and vocabularies, without running code."""

from pathlib import Path
from types import ModuleType
from typing import Any

from keras_transformer.kit.exchange.tensors import package
from keras_transformer.support.errors import InputError, reason

MAX_DEPTH = 50  # levels of lists and maps


def read_yaml(file: Path, content: bytes, typed: bool) -> dict[str, Any]:
    """Reads a YAML map.

    Args:
        file: the file with the content, for errors.
        content: UTF-8 bytes.
        typed: whether to parse numbers and booleans; otherwise all values are strings.

    Raises:
        InputError: if it is not a map, has more than MAX_DEPTH levels or an alias, or PyYAML is not
            installed.
    """
    yaml = package("yaml", file)
    if typed:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    else:
        loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    try:
        text = content.decode("utf-8")
        # Marian writes these line ends unescaped in quotes, where YAML would end a line.
        text = text.replace("\x85", "\\N").replace("\u2028", "\\L").replace("\u2029", "\\P")
        _check_structure(yaml, text, loader)
        value = yaml.load(text, loader)
        if not isinstance(value, dict):
            raise ValueError(f"a {type(value).__name__}")
        return value
    except (yaml.YAMLError, ValueError, TypeError) as error:
        raise InputError(None, "must be a YAML map", reason(error), file) from None


def _check_structure(yaml: ModuleType, text: str, loader: type) -> None:
    """Raises ValueError for a text that would exhaust the stack or the memory.

    Nested lists and maps use the stack without a limit. A few lines of aliases, which repeat parts
    of the document, may expand beyond any memory; Marian writes none.
    """
    depth = 0
    for event in yaml.parse(text, loader):
        if isinstance(event, yaml.AliasEvent):
            raise ValueError(f"an alias, *{event.anchor}")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            raise ValueError(f"more than {MAX_DEPTH} levels")
