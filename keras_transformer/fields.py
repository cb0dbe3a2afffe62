"""Fields of dataclasses and of JSON files, checked against their annotations: types and rules."""

import dataclasses
import json
import math
import os
import re
import types
import typing
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

from keras_transformer.errors import InputError, require


class Rule(NamedTuple):
    """What a field must do beside being of its type: Annotated[TYPE, Rule(...)]."""

    text: str  # "FIELD must TEXT"
    holds: Callable[[Any], bool]


def one_of(*choices: str) -> Rule:
    return Rule(f"be one of {', '.join(choices)}", lambda value: value in choices)


Count = Annotated[int, Rule("be at least 0", lambda number: number >= 0)]
Size = Annotated[int, Rule("be at least 1", lambda number: number >= 1)]
LARGEST_SEED = 2**32 - 1  # of NumPy
Seed = Annotated[int, Rule(f"be from 0 to {LARGEST_SEED}", lambda n: 0 <= n <= LARGEST_SEED)]
Positive = Annotated[float, Rule("be positive and finite", lambda x: 0 < x < math.inf)]
Amount = Annotated[float, Rule("be at least 0 and finite", lambda x: 0 <= x < math.inf)]
Share = Annotated[float, Rule("be in [0, 1)", lambda x: 0 <= x < 1)]
_is_file_name = re.compile(r"\w[\w.-]*", re.ASCII).fullmatch
FileName = Annotated[str, Rule("be the name of a file, without a folder", _is_file_name)]


def check_fields(config: Any, prefix: str = "") -> None:
    """Raises an InputError for a field of a dataclass that is not as annotated, or has no value."""
    for name, kind in typing.get_type_hints(type(config), include_extras=True).items():
        _checked(getattr(config, name), kind, prefix + name)


def from_json(kind: Any, content: Any, path: str | os.PathLike) -> Any:
    """Returns what the JSON file `path` holds, checked against the annotation `kind`.

    That is a str, int, float or bool, a list, tuple or dict of a type, any of these with a Rule or
    with None, or Any. An object becomes a dataclass that has exactly its fields; or `kind` is a
    dict of fields that must be there, or may if the name ends in "?", among others that are not
    looked at.

    Raises:
        InputError: naming the file and the field, if one is missing, unknown, of another type or
            breaks a rule.
    """
    return _checked(content, kind, f"{path}: its content", f"{path}: ")


def _checked(value: Any, kind: Any, place: str, of_fields: str | None = None) -> Any:
    """Returns `value` as of the annotation `kind`. Errors begin with `place`, or for the fields of
    an object with `of_fields`."""
    arguments = typing.get_args(kind)
    is_object = isinstance(kind, dict) or dataclasses.is_dataclass(kind)
    container = typing.get_origin(kind) or kind
    if kind is Any or (value is None and types.NoneType in arguments):
        return value
    if container in (types.UnionType, typing.Union):
        return _checked(value, arguments[0], place)
    if container is Annotated:
        value = _checked(value, arguments[0], place)
        require(arguments[1].holds(value), f"{place} must {arguments[1].text}", shown(value))
        return value
    wanted = dict if is_object and type(value) is not kind else container
    if wanted is tuple and isinstance(value, list):  # JSON has no other sequences
        value = tuple(value)
    whole = wanted is float and isinstance(value, int)  # JSON may write 1.0 as 1
    fits = (isinstance(value, wanted) or whole) and (wanted is bool or not isinstance(value, bool))
    require(fits, f"{place} must be of type {wanted.__name__}", shown(value))
    if isinstance(value, int):
        require(abs(value) < 1 << 40, f"{place} must be below 2^40 in size", shown(value))
    if wanted in (list, tuple) and arguments:
        return wanted(_checked(v, arguments[0], f"{place}[{i}]") for i, v in enumerate(value))
    if wanted is not dict or not (is_object or arguments):
        return value
    of_fields = of_fields or f"{place}."
    if not is_object:
        for key in value:
            _checked(key, arguments[0], f"a key of {place}")
        return {k: _checked(v, arguments[1], of_fields + k) for k, v in value.items()}
    return _of_fields(value, kind, of_fields)


def _of_fields(values: dict[str, Any], kind: type, place: str) -> Any:
    """Returns an object of the dataclass `kind`; for a dict of fields, the values themselves."""
    if isinstance(kind, dict):
        for name, of_field in kind.items():
            known = name.removesuffix("?")
            if known == name or values.get(known) is not None:
                require(known in values, f"{place}{known} must be given", "none")
                _checked(values[known], of_field, place + known)
        return values
    hints = typing.get_type_hints(kind, include_extras=True)
    for name, value in values.items():
        rule = f"{place}{name} must be a field that this version knows"
        require(name in hints, rule, shown(value))
    for f in dataclasses.fields(kind):
        optional = f.default is not f.default_factory  # both are MISSING where there is no default
        require(optional or f.name in values, f"{place}{f.name} must be given", "none")
    checked = {name: _checked(value, hints[name], place + name) for name, value in values.items()}
    try:
        return kind(**checked)
    except InputError as error:  # of several fields together: it names no file
        raise InputError(f"{place}{error}") from None


def shown(value: Any) -> str:
    """A value in one line of an error, cut where it is long."""
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= 60 else text[:60] + "..."
