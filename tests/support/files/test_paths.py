"""Paths, local and remote."""

from pathlib import Path

import pytest

from keras_transformer.support.files.json_files import read_json
from keras_transformer.support.files.locks import locked
from keras_transformer.support.files.paths import resolved, to_path
from tests.refusals import refused


@pytest.mark.tensorflow
@pytest.mark.parametrize("path", ["none://bucket/folder", "none://bucket/folder/"])
def test_a_file_system_that_there_is_not_is_named(path):
    named = "'none' not implemented.*: 'none://bucket/folder"
    with pytest.raises(OSError, match=named):
        to_path(path).exists()
    with pytest.raises(OSError, match=named), locked(f"{path}/lock", "dir"):
        pass
    with pytest.raises(OSError, match=named):
        read_json(path)


@pytest.mark.parametrize("path", ["a\0b", "file:///a\0", "a\ud800", "gs://a/\udfff"])
def test_what_no_file_can_be_called_is_refused(path):
    with refused("path", ascii(path.removeprefix("file://"))):
        to_path(path)
    assert to_path("a\udcff") == Path("a\udcff")  # a byte that is no UTF-8


@pytest.mark.tensorflow
def test_paths_are_local_unless_they_name_a_file_system():
    for path in ("a/b", "/a:/b", "c:/d", "x:y//z"):
        assert to_path(path) == Path(path)
    assert to_path("file:///a/b") == Path("/a/b")
    remote = to_path("gs://bucket/a.b")
    assert (str(remote), str(remote / "c"), remote.suffix) == (
        *("gs://bucket/a.b", "gs://bucket/a.b/c", ".b"),
    )
    assert str(remote.parent) == "gs://bucket" and to_path(remote) == remote


@pytest.mark.tensorflow
def test_links_are_followed_to_where_they_lead(tmp_path):
    folder = tmp_path.resolve()
    (folder / "to_file").symlink_to("../" + folder.name + "/file")
    (folder / "file").touch()
    (folder / "nowhere").symlink_to("absent/file")
    (folder / "loop").symlink_to("loop")
    assert resolved(folder / "to_file") == folder / "file"
    assert resolved(folder / "nowhere") == folder / "absent" / "file"
    assert resolved("ram://folder/../file") == to_path("ram://folder/../file")
    for path in (folder / "loop", folder / "loop" / "file"):
        with refused(None, "links", path):
            resolved(path)
