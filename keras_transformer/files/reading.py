"""Reads bytes, also of compressed files, lines of text, and digests of content."""

import codecs
import contextlib
import gzip
import hashlib
import importlib
import io
import os
import zlib
from collections.abc import Iterable, Iterator
from pathlib import PurePath
from typing import Any, BinaryIO

from keras_transformer.errors import InputError, require
from keras_transformer.files.paths import RemotePath, to_path

# The first bytes of a compressed file, and the ending that its name must have.
COMPRESSED = {b"\x1f\x8b": ".gz", b"\x28\xb5": ".zst"}
# The byte order marks of UTF-16, and which one follows: no file in UTF-8 begins so.
UTF_16_MARKS = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


def require_end(path: str | os.PathLike, argument: str | None = None) -> None:
    """Refuses to read a device such as /dev/zero, which has no end.

    Pipes, terminals and the empty device are read like files.

    Args:
        path: what is to be read.
        argument: what the caller calls it, for errors; they name the path if it is not given.

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
    """The name of a file, without the ending of a compressed one."""
    name = PurePath(path)
    return name.with_suffix("") if name.suffix in COMPRESSED.values() else name


@contextlib.contextmanager
def opened(path: str | os.PathLike) -> Iterator[BinaryIO]:
    """Opens a file to read its bytes, decompressed if its name ends in .gz or .zst.

    Raises:
        InputError: for a .zst file where the package that reads it is missing, and for a device
            that has no end.
        OSError: where there is no such file, or it cannot be read.
        gzip.BadGzipFile, zlib.error: where compressed bytes are damaged.
        EOFError: where they end too soon.
    """
    require_end(path)
    with to_path(path).open("rb") as file:
        if str(path).endswith(".zst"):
            yield io.BufferedReader(_ZstdReader(file, zstandard(path)), buffer_size=1 << 16)
        elif str(path).endswith(".gz"):
            yield gzip.GzipFile(fileobj=file)
        else:
            yield file


class _ZstdReader(io.RawIOBase):
    """Decompresses Zstandard; damaged bytes are the error that they are in other compressed files.

    Args:
        file: the compressed bytes.
        zstd: the module that reads them.
    """

    def __init__(self, file: BinaryIO, zstd: Any):
        self._file = zstd.ZstdFile(file)
        self._error = zstd.ZstdError

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:
        try:
            return self._file.readinto(buffer)
        except self._error as error:
            raise zlib.error(str(error)) from None


def zstandard(path: str | os.PathLike) -> Any:
    """Returns the module of Python 3.14, or the package that has it for earlier versions.

    Args:
        path: the file that needs it, for errors.

    Raises:
        InputError: where neither is installed.
    """
    for name in ("compression.zstd", "backports.zstd"):
        with contextlib.suppress(ImportError):
            return importlib.import_module(name)
    rule = "must have a package for its compression (pip install backports.zstd)"
    raise InputError(None, rule, "none installed", path)


def text_lines(file: Iterable[bytes], name: str, keep_ends: bool = False) -> Iterator[str]:
    r"""Decodes the lines of a UTF-8 file, without line ends and an initial byte-order mark.

    Lines end at "\n" or "\r\n" and nowhere else: U+2028, U+0085 and a lone "\r" are characters of a
    line.

    Args:
        file: its lines as bytes, with their ends.
        name: of the file, for errors.
        keep_ends: whether line ends and byte-order mark are kept.

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
    """Raises InputError for a NUL character, which no text has, naming the file and the line."""
    if "\0" in line:  # the message is not made for each of some million lines
        raise InputError(None, "must be text", "a NUL character", f"{name}:{number}")


def _not_utf_8(start: bytes) -> str | None:
    """The kind of a file that begins with such bytes, if they tell."""
    if start.startswith(tuple(UTF_16_MARKS)):
        return "UTF-16, by its byte order mark"
    for mark, ending in COMPRESSED.items():
        if start.startswith(mark):
            return f"a compressed file, whose name must end in {ending}"
    return None
