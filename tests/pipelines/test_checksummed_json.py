import json

from keras_transformer.fields import Count
from pipelines.checksummed_json import (
    read_checksummed,
    read_checksummed_or_none,
    write_checksummed,
)
from tests.refusals import refused

KIND = {"a": list[Count], "b?": str}


def test_content_comes_back(any_folder):
    write_checksummed(any_folder / "file", {"a": [1, 2], "b": "ü"})
    assert read_checksummed(any_folder / "file", KIND) == {"a": [1, 2], "b": "ü"}


def test_every_change_is_found(tmp_path):
    path = tmp_path / "file"
    write_checksummed(path, {"a": [1, 2]})
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content))  # other spaces are no change
    assert read_checksummed(path, KIND) == {"a": [1, 2]}
    for change in ({"a": [1, 3]}, {"b": "new"}, {"checksum": None}):
        path.write_text(json.dumps(content | change))
        with refused(None, "a changed file", place=path):
            read_checksummed(path, KIND)
        assert read_checksummed_or_none(path, KIND) is None


def test_a_file_is_not_taken_for_another(tmp_path):
    write_checksummed(tmp_path / "1", {"a": [1, 2]})
    (tmp_path / "1").rename(tmp_path / "2")
    with refused(None, "a changed file", place=tmp_path / "2"):
        read_checksummed(tmp_path / "2", KIND)
    assert read_checksummed_or_none(tmp_path / "1", KIND) is None
