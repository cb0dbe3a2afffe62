"""Reads bytes, also from compressed files, lines of text, and digests of content."""

import codecs
import contextlib
import gzip
import hashlib
import io
import os
import zlib
from collections.abc import Iterable, Iterator
from pathlib import PurePath
from typing import BinaryIO

from backports import zstd

from keras_transformer.support.errors import InputError, require
from keras_transformer.support.files.paths import RemotePath, to_path

# The first bytes of compressed files, and their required suffixes.
COMPRESSED = {b"\x1f\x8b": ".gz", b"\x28\xb5": ".zst"}
# The byte order marks of UTF-16; no UTF-8 file begins with them.
UTF_16_MARKS = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


def require_end(path: str | os.PathLike, argument: str | None = None) -> None:
    """Rejects devices without an end, such as /dev/zero.

    Pipes, terminals and the null device are read like files.

    Args:
        path: the file to read.
        argument: the caller's name for it, for errors; they name the path if it is not given.

    Raises:
        InputError: for such a device.
    """
    file = to_path(path)
    if isinstance(file, RemotePath) or not file.is_char_device():
        return
    if file.samefile(os.devnull):
        return
    descriptor = os.open(file, os.O_RDONLY | os.O_NOCTTY)
    is_terminal = os.isatty(descriptor)
    os.close(descriptor)
    place = path if argument is None else None
    rule = "must be a file, a pipe or a terminal"
    require(is_terminal, argument, rule, f"{path}, a device", place)


def file_digest(path: str | os.PathLike) -> str:
    """Returns the SHA-256 of a file, in hexadecimal."""
    digest = hashlib.sha256()
    with to_path(path).open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def uncompressed_name(path: str | os.PathLike) -> PurePath:
    """Returns a file's name without a compression suffix."""
    name = PurePath(path)
    return name.with_suffix("") if name.suffix in COMPRESSED.values() else name


@contextlib.contextmanager
def opened(path: str | os.PathLike) -> Iterator[BinaryIO]:
    """Opens a file to read its bytes, decompressed if its name ends in .gz or .zst.

    Raises:
        InputError: for a device without an end. OSError: if there is no such file, or it cannot
            be read. gzip.BadGzipFile, zlib.error: if compressed bytes are damaged. EOFError: if
            they are truncated.
    """
    require_end(path)
    with to_path(path).open("rb") as file:
        if str(path).endswith(".zst"):
            yield io.BufferedReader(_ZstdReader(file), buffer_size=1 << 16)
        elif str(path).endswith(".gz"):
            yield gzip.GzipFile(fileobj=file)
        else:
            yield file


class _ZstdReader(io.RawIOBase):
    """Decompresses Zstandard; damaged bytes raise the same errors as for gzip.

    Args:
        file: the compressed bytes.
    """

    def __init__(self, file: BinaryIO):
        self._file = zstd.ZstdFile(file)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:
        try:
            return self._file.readinto(buffer)
        except zstd.ZstdError as error:
            raise zlib.error(str(error)) from None


def text_lines(file: Iterable[bytes], name: str, keep_ends: bool = False) -> Iterator[str]:
    r"""Decodes the lines of a UTF-8 file, without line ends and an initial byte order mark.

    Lines only end at "\n" or "\r\n": U+2028, U+0085 and a lone "\r" are characters in a line.

    Args:
        file: its lines as bytes, with their ends.
        name: the file's name, for errors.
        keep_ends: whether to keep line ends and the byte order mark.

    Raises:
        InputError: naming the line that is not UTF-8.
    """
    for number, line in enumerate(file, start=1):
        if number == 1 and not keep_ends:
            line = line.removeprefix(codecs.BOM_UTF8)
        if not keep_ends:
            line = line.removesuffix(b"\n").removesuffix(b"\r")
        try:
            yield line.decode("utf-8")
        except UnicodeDecodeError as error:
            byte = f"byte 0x{line[error.start]:02x} at column {error.start + 1}"
            received = _not_utf_8(line) if number == 1 else None
            raise InputError(None, "must be UTF-8", received or byte, f"{name}:{number}") from None


def require_text(line: str, name: str, number: int) -> None:
    """Raises InputError for a NUL character, naming the file and the line."""
    if "\0" in line:  # format the message only on failure, as there may be millions of lines
        raise InputError(None, "must be text", "a NUL character", f"{name}:{number}")


def _not_utf_8(start: bytes) -> str | None:
    """Names the kind of a file from its first bytes, if known."""
    if start.startswith(tuple(UTF_16_MARKS)):
        return "UTF-16, by its byte order mark"
    for mark, ending in COMPRESSED.items():
        if start.startswith(mark):
            return f"a compressed file, whose name must end in {ending}"
    return None
