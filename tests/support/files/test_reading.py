"""Lines of text, compressed files, and what is not read."""

import gzip
import io
import os

import pytest

from keras_transformer.support.files.json_files import read_json
from keras_transformer.support.files.reading import opened, require_end, text_lines
from tests.refusals import refused


def test_lines_of_text():
    file = [b"\xef\xbb\xbfa \r\n", b"\xe2\x80\xa8b\rc\x0c\n", b"\n", b"\xef\xbb\xbfd"]
    assert list(text_lines(file, "name")) == ["a ", "\u2028b\rc\x0c", "", "\ufeffd"]
    lines = text_lines([b"a\n", b"b\xffc\n"], "name")
    assert next(lines) == "a"
    with refused(None, "byte 0xff at column 2", "name:2", "UTF-8"):
        next(lines)


def test_compressed_files_are_read_as_they_come(any_folder):
    (any_folder / "plain").write_bytes(b"one\ntwo")
    (any_folder / "packed.gz").write_bytes(gzip.compress(b"one\ntwo"))
    for name in ("plain", "packed.gz"):
        with opened(any_folder / name) as file:
            assert list(text_lines(file, name)) == ["one", "two"]
    with pytest.raises(FileNotFoundError), opened(any_folder / "none") as file:
        file.read()


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/full", "/dev/urandom"])
def test_what_has_no_end_is_not_read(device, tmp_path):
    (tmp_path / "link").symlink_to(device)
    for path in (device, tmp_path / "link"):
        with refused(None, path, path, "terminal"):
            read_json(path)
        with refused(None, path, path, "terminal"), opened(path):
            pass
    with refused("text", device, about="terminal") as caught:
        require_end(device, "text")
    assert caught.value.place is None


@pytest.mark.tensorflow
def test_what_has_an_end_is_read(tmp_path):
    leader, terminal = os.openpty()
    os.mkfifo(tmp_path / "pipe")
    for path in (os.ttyname(terminal), "/dev/null", tmp_path / "pipe", tmp_path, "ram://none"):
        require_end(path)
    with opened("/dev/null") as file:
        assert file.read() == b""
    os.close(leader)
    os.close(terminal)


@pytest.mark.parametrize(
    ("content", "received"),
    [
        ("\ufeffa\n".encode("utf-16-le"), "UTF-16"),
        ("\ufeffa\n".encode("utf-16-be"), "UTF-16"),
        (gzip.compress(b"a\n", mtime=0), ".gz"),
    ],
)
def test_a_file_of_another_kind_is_called_by_its_name(content, received):
    with refused(None, received, "name:1", "UTF-8"):
        list(text_lines(io.BytesIO(content), "name"))
