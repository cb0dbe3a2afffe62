import dataclasses
import json
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import pytest

from keras_transformer.errors import InputError
from keras_transformer.fields import (
    Count,
    FileName,
    Rule,
    Share,
    check_arguments,
    check_fields,
    from_json,
    one_of,
    whole_number,
)


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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"number": "1"}, 'f.json: number must be of type int. Received: "1"'),
        ({"number": True}, "f.json: number must be of type int. Received: true"),
        ({"number": None}, "f.json: number must be of type int. Received: null"),
        ({"share": "half"}, 'f.json: share must be of type float. Received: "half"'),
        ({"share": False}, "f.json: share must be of type float. Received: false"),
        ({"limit": 0.5}, "f.json: limit must be of type int. Received: 0.5"),
        ({"flag": 1}, "f.json: flag must be of type bool. Received: 1"),
        ({"inner": [1]}, "f.json: inner must be of type dict. Received: [1]"),
        ({"inner": {}}, "f.json: inner.sizes must be given. Received: none"),
        ({"inner": {"sizes": {"a": 0.5}}}, "inner.sizes.a must be of type int. Received: 0.5"),
        ({"inner": {"sizes": []}}, "inner.sizes must be of type dict. Received: []"),
        (
            {"inner": {"sizes": {}, "words": ["a", 1]}},
            "f.json: inner.words[1] must be of type str. Received: 1",
        ),
        (
            {"parts": {"p": {"sizes": {}, "width": 3}}},
            "f.json: parts.p.width must be a field that this version knows. Received: 3",
        ),
    ],
)
def test_wrong_fields_are_named(change, message):
    content = {"number": 1, "inner": {"sizes": {}}, **change}
    with pytest.raises(InputError) as error:
        from_json(Outer, content, "f.json")
    assert str(error.value).endswith(message)
    with pytest.raises(InputError, match=r"f: its content must be of type dict. Received: 3"):
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


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"name": "../x"}, 'name must be the name of a file, without a folder. Received: "../x"'),
        ({"name": "/etc/passwd"}, 'without a folder. Received: "/etc/passwd"'),
        ({"name": ".."}, 'without a folder. Received: ".."'),
        ({"name": "a\n"}, 'without a folder. Received: "a\\n"'),
        ({"share": 1}, "f: share must be in [0, 1). Received: 1"),
        ({"share": float("nan")}, "f: share must be in [0, 1). Received: NaN"),
        ({"share": 10**400}, f"share must be below 2^40 in size. Received: 1{'0' * 59}..."),
        ({"kind": "z"}, 'f: kind must be one of x, y. Received: "z"'),
        ({"sizes": {"a": -1}}, "f: sizes.a must be at least 0. Received: -1"),
        ({"sizes": {"a": 10**15}}, f"sizes.a must be below 2^40 in size. Received: {10**15}"),
        (
            {"sizes": {"a/b": 1}},
            'f: a key of sizes must be the name of a file, without a folder. Received: "a/b"',
        ),
        ({"pair": ["a"]}, 'f: pair must be two names. Received: ["a"]'),
        ({"text": None}, "f: text must be of type str. Received: null"),
        ({"text": [None]}, "f: text[0] must be of type str. Received: null"),
        ({"a\nb": 1}, "f: a b must be a field that this version knows. Received: 1"),
    ],
)
def test_rules_beside_the_type(content, message):
    with pytest.raises(InputError) as error:
        from_json(Ruled, content, "f")
    assert str(error.value).endswith(message)


def test_fields_that_keep_to_their_rules():
    content = {"name": "train-00000-of-00001.tfrecord", "share": 0, "sizes": {"a": 0}}
    assert dataclasses.asdict(from_json(Ruled, content, "f")).items() >= content.items()
    content = {"share": None, "text": ["a"], "texts": None}
    assert dataclasses.asdict(from_json(Ruled, content, "f")).items() >= content.items()
    check_fields(Outer(1, Inner({}), share=1))
    with pytest.raises(InputError, match=r"^limit must be of type int\. Received: 0\.5$"):
        check_fields(Outer(1, Inner({}), limit=0.5))
    with pytest.raises(InputError, match=r"^number must be of type int\. Received: \"array\(1\)\""):
        check_fields(Outer(np.array(1), Inner({})))


@dataclasses.dataclass(frozen=True)
class Checked:
    size: int

    def __post_init__(self):
        if self.size == 3:
            raise InputError("size must not be 3. Received: 3")


def test_an_error_of_the_class_itself_gets_the_name_of_the_file():
    with pytest.raises(InputError, match=r"^f: size must not be 3\. Received: 3$"):
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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"names": "ab"}, '^names must be of type list. Received: "ab"$'),
        ({"names": 5}, "^names must be of type list. Received: 5$"),
        ({"names": ("a", 5)}, r"^names\[1\] must be of type str. Received: 5$"),
        ({"count": "3"}, '^count must be of type int. Received: "3"$'),
        (
            {"count": 10**5000},
            "^count must be below 2.40 in size. Received: one that cannot be sho",
        ),
    ],
)
def test_arguments_of_a_function(arguments, message):
    def called(names: Sequence[str] | None = None, count: int = 0, **options: Any) -> str:
        check_arguments(called, locals())
        return "checked"

    assert called() == called(["a"], 3, other=object()) == called(("a",)) == "checked"
    with pytest.raises(InputError, match=message):
        called(**arguments)
