"""Output files of programs: checked early and written atomically."""

import contextlib
import gzip
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import BinaryIO

from backports import zstd

from keras_transformer.support.errors import require
from keras_transformer.support.files.paths import RemotePath, is_device, resolved, to_path
from keras_transformer.support.files.replacing import replacing

STANDARD_STREAM = "-"  # instead of a path: stdin or stdout
NO_PART_OF_A_LINE = str.maketrans("\r\n\0", "   ")


def check_output(
    path: str, argument: str = "output", inputs: Mapping[str, Sequence[str]] | None = None
) -> None:
    """Checks early that a file can be written, and that it does not replace an input.

    Args:
        path: the file.
        argument: the caller's name for it, for errors.
        inputs: the files and folders that are read, by the names of their arguments. No file in
            these folders may be replaced.

    Raises:
        InputError: naming the argument, or the path if symbolic links form a loop.
    """
    file = resolved(path)
    for name, read in (inputs or {}).items():
        paths = [resolved(each) for each in read]
        is_within = file.exists() and any(path in file.parents for path in paths)
        rule = f"must not be the same file as {name}"
        is_read = file in paths or is_within
        require(not is_read or is_device(path), argument, rule, repr(path))
    target = to_path(path) if is_device(path) else file.parent
    writable = (isinstance(file, RemotePath) or os.access(target, os.W_OK)) and not file.is_dir()
    require(writable, argument, "must be a file in a writable directory", repr(path))


def write_lines(path: str, texts: Sequence[str]) -> None:
    """Atomically writes a file with one text per line."""
    with opened_output(path) as file:
        file.write("".join(map(one_line, texts)).encode("utf-8"))


def one_line(text: str) -> str:
    """Ends a text with a line break; replaces line breaks and NUL inside it by spaces.

    A model with byte pieces may produce them, and a file of sentences must not contain them.
    """
    return text.translate(NO_PART_OF_A_LINE) + "\n"


class Output:
    """A file that is being written; its errors carry the file name."""

    def __init__(self, file: BinaryIO, path: str):
        self._file = file
        self._path = path

    def write(self, content: bytes) -> None:
        """Writes bytes; raises an OSError on failure."""
        try:
            self._file.write(content)
        except OSError as error:
            raise OSError(error.errno, error.strerror, self._path) from None

    def flush(self) -> None:
        """Flushes what was written; raises an OSError on failure."""
        try:
            self._file.flush()
        except OSError as error:
            raise OSError(error.errno, error.strerror, self._path) from None


@contextlib.contextmanager
def opened_output(path: str) -> Iterator[Output | BinaryIO]:
    """Opens stdout, or a file that appears only when it is complete.

    A file whose name ends in .gz or .zst is compressed.

    Raises:
        OSError: if the file cannot be written; it carries the file name.
    """
    if path == STANDARD_STREAM:
        yield sys.stdout.buffer
        return
    with replacing(path) as file, _compressing(file, path) as file:
        yield Output(file, path)


@contextlib.contextmanager
def _compressing(file: BinaryIO, path: str) -> Iterator[BinaryIO]:
    """Yields a compressor if the file's name asks for one; otherwise the file."""
    if path.endswith(".gz"):
        # Without a name and a date, equal contents give equal files.
        with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as compressed:
            yield compressed
    elif path.endswith(".zst"):
        with zstd.ZstdFile(file, "wb") as compressed:
            yield compressed
    else:
        yield file
