"""JSON files: what comes back, and what is refused."""

import json

import pytest

from keras_transformer.support.files.json_files import read_json, write_json
from tests.refusals import refused


def test_json_comes_back(any_folder):
    content = {"name": "ü", "list": [1, 2.5, None, True], "inner": {}}
    write_json(any_folder / "file", content)
    assert read_json(any_folder / "file") == content
    assert "ü" in (any_folder / "file").read_text(encoding="utf-8")
    with refused(None, "No such file", any_folder / "none"):
        read_json(any_folder / "none")


@pytest.mark.parametrize(
    ("content", "received", "about"),
    [
        (b"{", "Expecting", "JSON"),
        (b'"\xff"', "0xff", "JSON"),
        (b"[" * 100_000, "", "JSON"),
        (b"[" * 51 + b"]" * 51, "50 levels", "JSON"),
        (b'{"a": "\\ud800"}', "surrogates", "JSON"),
        (b"[1, 2]", "[1, 2]", "dict"),
        (json.dumps("x" * 100).encode(), f'"{"x" * 59}...', "dict"),
    ],
)
def test_other_content_is_named(tmp_path, content, received, about):
    (tmp_path / "file").write_bytes(content)
    with refused(None, received, tmp_path / "file", about):
        read_json(tmp_path / "file")


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(IsADirectoryError, match=str(tmp_path)):
        read_json(tmp_path)
