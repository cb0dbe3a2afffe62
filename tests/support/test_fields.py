import dataclasses
import json
from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np
import pytest

from keras_transformer.support.errors import InputError
from keras_transformer.support.fields import (
    Count,
    FileName,
    Rule,
    Share,
    check_fields,
    from_json,
    one_of,
    to_json,
    whole_number,
)
from tests.refusals import refused


@dataclasses.dataclass(frozen=True)
class Inner:
    sizes: dict[str, int]
    words: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Outer:
    number: int
    inner: Inner
    parts: dict[str, Inner] = dataclasses.field(default_factory=dict)
    share: float = 0.5
    limit: int | None = None
    flag: bool = False
    options: dict[str, Any] = dataclasses.field(default_factory=dict)


def test_dataclasses_come_back():
    inner = Inner({"a": 1}, ["x", "y"])
    for value in (
        Outer(1, inner),
        Outer(1, inner, {"p": inner}, 0.1, 3, True, {"any": [None, {"x": 1}]}),
    ):
        assert from_json(Outer, json.loads(json.dumps(dataclasses.asdict(value))), "file") == value
    assert from_json(Outer, {"number": 1, "inner": {"sizes": {}}, "share": 1}, "file").share == 1


class Sums(NamedTuple):
    loss: float = 0.0
    steps: int = 0


@dataclasses.dataclass(frozen=True)
class Record:
    sums: Sums
    measured: dict[str, float | None]
    parts: tuple[Outer, ...] = ()
    best: str | None = None


def test_records_come_back_without_what_is_none():
    part = Outer(1, Inner({"a": 1}), {"p": Inner({}, ["x"])})
    record = Record(Sums(0.5, 3), {"bleu": None, "loss": 2.0}, (part,))
    written = to_json(record)
    assert written["sums"] == {"loss": 0.5, "steps": 3}
    assert written["measured"] == {"bleu": None, "loss": 2.0}
    assert "best" not in written and "limit" not in written["parts"][0]
    assert from_json(Record, json.loads(json.dumps(written)), "file") == record
    for sums, argument in (([0.5, 3], "sums"), ({"loss": 1}, "sums.steps")):
        with refused(argument, place="file"):
            from_json(Record, {"sums": sums, "measured": {}}, "file")


@pytest.mark.parametrize(
    ("change", "argument", "received", "about"),
    [
        ({"number": "1"}, "number", '"1"', "int"),
        ({"number": True}, "number", "true", "int"),
        ({"share": "half"}, "share", '"half"', "float"),
        ({"limit": 0.5}, "limit", "0.5", "int"),
        ({"flag": 1}, "flag", "1", "bool"),
        ({"inner": [1]}, "inner", "[1]", "dict"),
        ({"inner": {}}, "inner.sizes", "none", "given"),
        ({"inner": {"sizes": {"a": 0.5}}}, "inner.sizes.a", "0.5", "int"),
        ({"inner": {"sizes": {}, "words": ["a", 1]}}, "inner.words[1]", "1", "str"),
        ({"parts": {"p": {"sizes": {}, "width": 3}}}, "parts.p.width", "3", "field"),
    ],
)
def test_wrong_fields_are_named(change, argument, received, about):
    content = {"number": 1, "inner": {"sizes": {}}, **change}
    with refused(argument, place="f.json", about=about) as caught:
        from_json(Outer, content, "f.json")
    assert caught.value.received == received


def test_content_of_another_type_is_refused():
    with refused(None, 3, "f", "dict"):
        from_json(Outer, 3, "f")


@dataclasses.dataclass(frozen=True)
class Ruled:
    name: FileName = "a-1.b"
    share: Share | None = None
    kind: Annotated[str, one_of("x", "y")] = "x"
    sizes: dict[FileName, Count] = dataclasses.field(default_factory=dict)
    pair: Annotated[list[str], Rule("be two names", lambda names: len(names) == 2)] = ("a", "b")
    text: str | list[str] = ""
    texts: str | list[str] | None = None
    names: Sequence[str] = ()


@pytest.mark.parametrize(
    ("content", "argument", "received", "about"),
    [
        ({"name": "../x"}, "name", '"../x"', "file"),
        ({"name": ".."}, "name", '".."', "file"),
        ({"name": "a\n"}, "name", '"a\\n"', "file"),
        ({"share": 1}, "share", "1", "[0, 1)"),
        ({"share": float("nan")}, "share", "NaN", "[0, 1)"),
        ({"share": 10**400}, "share", f"1{'0' * 59}...", "2^40"),
        ({"kind": "z"}, "kind", '"z"', "x, y"),
        ({"sizes": {"a": -1}}, "sizes.a", "-1", "0"),
        ({"sizes": {"a/b": 1}}, "a key of sizes", '"a/b"', "file"),
        ({"pair": ["a"]}, "pair", '["a"]', "be two names"),
        ({"text": None}, "text", "null", "str"),
        ({"text": [None]}, "text[0]", "null", "str"),
        ({"names": "ab"}, "names", '"ab"', "list"),
        ({"names": ("a", 5)}, "names[1]", "5", "str"),
        ({"a\nb": 1}, "a\nb", "1", "field"),
    ],
)
def test_rules_beside_the_type(content, argument, received, about):
    with refused(argument, place="f", about=about) as caught:
        from_json(Ruled, content, "f")
    assert caught.value.received == received
    assert "\n" not in str(caught.value)


def test_fields_that_keep_to_their_rules():
    content = {"name": "train-00000-of-00001.tfrecord", "share": 0, "sizes": {"a": 0}}
    assert dataclasses.asdict(from_json(Ruled, content, "f")).items() >= content.items()
    content = {"share": None, "text": ["a"], "texts": None}
    assert dataclasses.asdict(from_json(Ruled, content, "f")).items() >= content.items()
    for names in (["a"], ("a",)):
        assert from_json(Ruled, {"names": names}, "f").names == names
    check_fields(Outer(1, Inner({}), share=1))
    with refused("limit", "0.5", about="int") as caught:
        check_fields(Outer(1, Inner({}), limit=0.5))
    assert caught.value.place is None
    with refused("number", '"array(1)"', about="int"):
        check_fields(Outer(np.array(1), Inner({})))


@dataclasses.dataclass(frozen=True)
class Checked:
    size: int

    def __post_init__(self):
        if self.size == 3:
            raise InputError("size", "must not be 3", 3)


def test_an_error_of_the_class_itself_gets_the_name_of_the_file():
    with refused("size", 3, "f", "must not be 3"):
        from_json(Checked, {"size": 3}, "f")


@pytest.mark.parametrize(
    ("text", "number"),
    [
        *[("0", 0), ("007", 7), ("1099511627776", 2**40)],
        *[(text, None) for text in ("", "-1", "+1", "1.0", "1e3", " 1", "²", "x", "9" * 5000)],
    ],
)
def test_whole_numbers(text, number):
    assert whole_number(text) == number
