"""Dataclasses and JSON, checked against annotations: types and rules.

Dataclasses check their fields with `check_fields`; `dataclasses.asdict` converts them to JSON, and
`from_json` converts them back.
"""

import dataclasses
import json
import math
import os
import re
import types
import typing
from collections.abc import Callable, Sequence
from typing import Annotated, Any, NamedTuple

from keras_transformer.support.errors import InputError, require


class Rule(NamedTuple):
    """A rule for a value, in addition to its type: Annotated[TYPE, Rule(...)]."""

    text: str  # "FIELD must TEXT"
    holds: Callable[[Any], bool]
    choices: tuple[str, ...] = ()  # all allowed values, if they are few

    def __repr__(self) -> str:
        return f"must {self.text}"  # so that `help` shows Annotated[int, must be at least 1]


def between(least: int, largest: int) -> Rule:
    """The rule that a whole number is from `least` to `largest`."""
    return Rule(f"be from {least} to {largest}", lambda number: least <= number <= largest)


def one_of(*choices: str) -> Rule:
    """The rule that a value is one of `choices`."""
    return Rule(f"be one of {', '.join(choices)}", lambda value: value in choices, choices)


def option(default: Any, help: str, is_advanced: bool = False) -> Any:
    """A field of a dataclass that programs offer as a flag.

    Args:
        default: for the field and the flag.
        help: what the flag does, for the help of programs and for the reference.
        is_advanced: whether few people need it, so that the short help leaves it out.
    """
    metadata = {"help": help, "is_advanced": is_advanced}
    return dataclasses.field(default=default, metadata=metadata)


def options_of(kind: type) -> dict[str, dataclasses.Field]:
    """Returns the fields of a dataclass that were made with `option`, by name."""
    return {field.name: field for field in dataclasses.fields(kind) if "help" in field.metadata}


Count = Annotated[int, Rule("be at least 0", lambda number: number >= 0)]
Size = Annotated[int, Rule("be at least 1", lambda number: number >= 1)]
# TensorFlow counts tokens and positions in 32 bits, and adds some of them.
LARGEST_LENGTH = 2**30
Length = Annotated[int, between(1, LARGEST_LENGTH)]
LARGEST_SEED = 2**32 - 1  # of NumPy
Seed = Annotated[int, between(0, LARGEST_SEED)]
Positive = Annotated[float, Rule("be positive and finite", lambda x: 0 < x < math.inf)]
Amount = Annotated[float, Rule("be at least 0 and finite", lambda x: 0 <= x < math.inf)]
Share = Annotated[float, Rule("be in [0, 1)", lambda x: 0 <= x < 1)]
_is_file_name = re.compile(r"\w[\w.-]*", re.ASCII).fullmatch
FileName = Annotated[str, Rule("be a file name without a folder", _is_file_name)]

_LARGEST_INT = 2**40  # larger sizes fit no machine
_MOST_DIGITS = len(str(_LARGEST_INT))
_SHOWN_CHARACTERS = 60


class _Place(NamedTuple):
    """The location of a value, for errors: "FILE: parts.a[2]"."""

    file: str | os.PathLike | None  # None for a dataclass constructed in Python
    path: str | None = None  # None for the whole content of the file

    def field(self, name: str) -> "_Place":
        return _Place(self.file, f"{self.path}.{name}" if self.path else name)

    def item(self, index: int) -> "_Place":
        return _Place(self.file, f"{self.path or ''}[{index}]")

    def key(self) -> "_Place":
        return _Place(self.file, f"a key of {self.path}" if self.path else "a key")

    def require(self, condition: bool, rule: str, received: str) -> None:
        require(condition, self.path, rule, received, self.file)

    def require_of(self, value: Any, condition: bool, rule: str) -> None:
        """Requires a condition; shows the value only if it fails, as an upload may be large."""
        if not condition:
            raise InputError(self.path, rule, shown(value), self.file)


def check_fields(config: Any) -> None:
    """Checks the fields of a dataclass; called in its `__post_init__`.

    Raises:
        InputError: "FIELD must RULE. Received: VALUE", for the first field that has the wrong type
            or breaks its rule.
    """
    for name, kind in typing.get_type_hints(type(config), include_extras=True).items():
        _read(getattr(config, name), kind, _Place(file=None, path=name))


def from_json(kind: Any, content: Any, path: str | os.PathLike) -> Any:
    """Checks the content of a JSON file, and converts it to dataclasses and tuples.

    Args:
        kind: str, int, float, bool, or Any; a list, tuple or dict of a kind; a kind with a Rule or
            a description, Annotated[KIND, ...]; a union of kinds; a dataclass, for an object
            without further fields; a named tuple, for an object with at least its fields; or a dict
            {name: kind} of the fields to check in an object that may have others. Fields whose name
            there ends in "?" may be missing.
        content: what json.load returned.
        path: the file, for errors.

    Returns:
        The content, with dataclasses, named tuples and tuples where `kind` has them.

    Raises:
        InputError: naming the file and the field, if a field is missing or unknown, has the wrong
            type or breaks its rule.
    """
    return _read(content, kind, _Place(path))


def to_json(value: Any) -> Any:
    """Returns a value in the form that `from_json` reads.

    Args:
        value: dataclasses and named tuples become objects without the fields that are None, also
            inside lists, tuples and dicts. Other values are returned unchanged.
    """
    if dataclasses.is_dataclass(value):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return {name: to_json(item) for name, item in fields.items() if item is not None}
    if hasattr(value, "_asdict"):
        return to_json(value._asdict())
    if isinstance(value, dict):
        return {name: to_json(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    return value


def from_text(annotation: Any, text: str, argument: str) -> Any:
    """Converts text that a user typed to a field's type, without its rule: see `check_fields`.

    Args:
        annotation: of the field; see `type_and_choices`.
        text: its value.
        argument: its name in errors.
    """
    kind, _ = type_and_choices(annotation)
    if kind is str:
        return text
    if kind is bool:
        require(text.lower() in ("true", "false"), argument, "must be true or false", repr(text))
        return text.lower() == "true"
    try:
        return kind(text)
    except ValueError:
        rule = "must be a number" if kind is float else "must be a whole number"
        raise InputError(argument, rule, repr(text)) from None


def type_and_choices(annotation: Any) -> tuple[type, tuple[str, ...]]:
    """Returns a field's type without None and its rule, and the rule's choices."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (types.UnionType, typing.Union):
        return type_and_choices(arguments[0])
    if origin is Annotated:
        return arguments[0], arguments[1].choices
    return origin or annotation, ()


def _read(value: Any, kind: Any, place: _Place) -> Any:
    """Reads a value of any kind."""
    if kind is Any:
        return value
    if isinstance(kind, dict):
        return _read_some_fields(value, kind, place)
    if dataclasses.is_dataclass(kind):
        return _read_dataclass(value, kind, place)
    if isinstance(kind, type) and hasattr(kind, "_fields"):
        return _read_named_tuple(value, kind, place)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is Annotated:
        return _read_annotated(value, *arguments, place)
    if origin in (types.UnionType, typing.Union):
        return _read(value, _choice(value, arguments), place)
    if origin is Sequence:  # a str is a sequence, too, but not meant here
        origin = tuple if isinstance(value, tuple) else list
    if origin in (list, tuple):
        return _read_sequence(value, origin, arguments[0], place)
    if origin is dict:
        return _read_mapping(value, *arguments, place)
    return _read_plain(value, origin or kind, place)


def _read_annotated(value: Any, kind: Any, rule: Rule | str, place: _Place) -> Any:
    """Reads a value with a rule, or with a description for the reader of the code."""
    value = _read(value, kind, place)
    if isinstance(rule, Rule):
        place.require_of(value, rule.holds(value), f"must {rule.text}")
    return value


def _choice(value: Any, kinds: Sequence[Any]) -> Any:
    """Returns the kind in a union that matches a value's type; the first if none does."""
    for kind in kinds:
        plain = typing.get_origin(kind) or kind
        has_type = plain is not Annotated and isinstance(value, plain)
        is_object = dataclasses.is_dataclass(kind) and isinstance(value, dict)
        if has_type or is_object:
            return kind
    return kinds[0]


def _read_plain(value: Any, kind: type, place: _Place) -> Any:
    """Reads a text, a number, or an object that is returned unchanged.

    Python counts True as an int; here it is not. JSON may write 1.0 as 1.
    """
    allowed = (int, float) if kind is float else kind
    is_bool = isinstance(value, bool)
    fits = isinstance(value, allowed) and is_bool == (kind is bool)
    place.require_of(value, fits, f"must be of type {kind.__name__}")
    if isinstance(value, int):
        place.require_of(value, abs(value) < _LARGEST_INT, "must be below 2^40 in size")
    return value


def _read_sequence(value: Any, kind: type, item_kind: Any, place: _Place) -> Any:
    """Reads a list, or a tuple from a JSON list."""
    if kind is tuple and isinstance(value, list):
        value = tuple(value)
    _read_plain(value, kind, place)
    return kind(_read(item, item_kind, place.item(i)) for i, item in enumerate(value))


def _read_mapping(value: Any, key_kind: Any, value_kind: Any, place: _Place) -> dict[str, Any]:
    _read_plain(value, dict, place)
    read = {}
    for key, item in value.items():
        _read(key, key_kind, place.key())
        read[key] = _read(item, value_kind, place.field(key))
    return read


def _read_some_fields(value: Any, kinds: dict[str, Any], place: _Place) -> dict[str, Any]:
    """Checks the fields named in `kinds`; others are allowed."""
    _read_plain(value, dict, place)
    for name, kind in kinds.items():
        known = name.removesuffix("?")
        is_optional = known != name
        if is_optional and value.get(known) is None:
            continue
        place.field(known).require(known in value, "must be given", "none")
        _read(value[known], kind, place.field(known))
    return value


def _read_named_tuple(value: Any, kind: type, place: _Place) -> Any:
    """Converts an object that has all its fields to a named tuple."""
    if isinstance(value, kind):
        return value
    kinds = typing.get_type_hints(kind, include_extras=True)
    fields = _read_some_fields(value, kinds, place)
    return kind(**{name: fields[name] for name in kinds})


def _read_dataclass(value: Any, kind: type, place: _Place) -> Any:
    """Converts an object that has its fields and no others to a dataclass."""
    if isinstance(value, kind):
        return value
    _read_plain(value, dict, place)
    kinds = typing.get_type_hints(kind, include_extras=True)
    for name, item in value.items():
        rule = "must be a field known to this version"
        place.field(name).require_of(item, name in kinds, rule)
    for field in dataclasses.fields(kind):
        missing = dataclasses.MISSING
        has_default = field.default is not missing or field.default_factory is not missing
        is_given = has_default or field.name in value
        place.field(field.name).require(is_given, "must be given", "none")
    read = {name: _read(item, kinds[name], place.field(name)) for name, item in value.items()}
    try:
        return kind(**read)
    except InputError as error:  # a rule for several fields together: the argument is one of them
        path = place.field(error.argument).path
        raise error.replaced(argument=path, place=place.file) from None


def whole_number(text: str) -> int | None:
    """Parses decimal digits; None for any other text, or for too many digits."""
    return int(text) if text.isdecimal() and len(text) <= _MOST_DIGITS else None


def shown(value: Any) -> str:
    """Returns a value for an error message: one line, truncated if long."""
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "..."
