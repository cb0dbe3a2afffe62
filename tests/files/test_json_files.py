"""JSON files: what comes back, and what is refused."""

import json

import pytest

from keras_transformer.errors import InputError
from keras_transformer.files.json_files import read_json, write_json


def test_json_comes_back(any_folder):
    content = {"name": "ü", "list": [1, 2.5, None, True], "inner": {}}
    write_json(any_folder / "file", content)
    assert read_json(any_folder / "file") == content
    assert "ü" in (any_folder / "file").read_text(encoding="utf-8")
    with pytest.raises(InputError, match=r"none must be readable JSON. Received: .*No such file"):
        read_json(any_folder / "none")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", r"file must be readable JSON. Received: Expecting"),
        (b'"\xff"', r"file must be readable JSON. Received: .*0xff"),
        (b"[" * 100_000, r"file must be readable JSON. Received: "),
        (b"[" * 51 + b"]" * 51, r"file must be readable JSON. Received: more than 50 levels"),
        (b'{"a": "\\ud800"}', r"file must be readable JSON. Received: .*surrogates not allowed"),
        (b"[1, 2]", r"file: its content must be of type dict. Received: \[1, 2\]$"),
        (
            json.dumps("x" * 100).encode(),
            r'file: its content must be of type dict. Received: "x{59}\.\.\.$',
        ),
    ],
)
def test_other_content_is_named(tmp_path, content, message):
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_json(tmp_path / "file")
    with pytest.raises(InputError, match="must be readable JSON"):
        read_json(tmp_path)
