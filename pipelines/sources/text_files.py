"""Text files for data preparation: lines, name patterns, checks, and digests."""

import gzip
import hashlib
import os
import zlib
from collections.abc import Iterable, Iterator, Sequence

from keras_transformer.support.errors import InputError, require
from keras_transformer.support.files.paths import is_device, to_path
from keras_transformer.support.files.reading import (
    COMPRESSED,
    file_digest,
    opened,
    require_text,
    text_lines,
)

AnyPath = str | os.PathLike
Paths = Iterable[AnyPath] | AnyPath  # several or one; a flag with such a value takes a list

DIGEST = "sha256:"  # prefix of a digest
_DIGEST_CHARACTERS = 16


def read_lines(path: str, argument: str) -> Iterator[str]:
    """Streams the lines of a UTF-8 text file, plain, .gz or .zst; see `files.reading.text_lines`.

    Args:
        path: the file.
        argument: the name of the argument that named the file, for errors.

    Yields:
        The lines, without their ends.

    Raises:
        InputError: naming the argument and the file if it is empty or its compression is damaged,
            and the file and the line if it is not text.
    """
    number = 0
    try:
        with _open(path, argument) as file:
            for number, line in enumerate(text_lines(file, path), start=1):
                require_text(line, path, number)
                yield line
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        received = f"{path}, broken after line {number} ({error})"
        raise InputError(argument, "must be a complete compressed file", received) from None
    require(number > 0, argument, "must not be empty", path)


def _open(path: str, argument: str):
    """Opens a text file; rejects a compressed one without the suffix."""
    if not path.endswith(tuple(COMPRESSED.values())):
        with opened(path) as file:
            ending = COMPRESSED.get(file.read(2))
        require(ending is None, argument, f"must end in {ending} if it is compressed", path)
    return opened(path)


def paths_of(argument: str, paths: Paths) -> list[str]:
    """Makes a list from one path or several; `argument` is the name of the argument, for errors."""
    listed = [paths] if isinstance(paths, AnyPath) else paths
    is_list = isinstance(listed, Iterable)
    listed = list(listed) if is_list else []
    are_paths = is_list and all(isinstance(path, AnyPath) for path in listed)
    require(are_paths, argument, "must be a path, or a list of paths", repr(paths))
    return [os.fspath(path) for path in listed]


def matching_files(argument: str, paths: Paths) -> list[str]:
    """Replaces every pattern among `paths` by the matching files, sorted by name.

    Args:
        argument: the name of the argument with the paths, for errors.
        paths: file names, and patterns with *, ? or [. An existing file's name is not a pattern.

    Returns:
        File names.

    Raises:
        InputError: for a value that is not a path, and for a pattern that matches no file.
    """
    matches = []
    for path in paths_of(argument, paths):
        pattern = to_path(path)
        if set("*?[").isdisjoint(path) or pattern.exists():
            matches.append(path)
            continue
        files = sorted(map(str, pattern.parent.glob(pattern.name)))
        require(files, argument, "must match a file", path)
        matches += files
    return matches


def check_files(argument: str, paths: list[str]) -> None:
    """Checks that `paths` has at least one file, and that every file can be read and is not empty.

    Args:
        argument: the name of the argument with the paths, for errors.
        paths: file names.

    Raises:
        InputError: for an empty list, and for a file that is missing, empty or unreadable, or a
            pipe or a device.
    """
    require(paths, argument, "must name at least one file", "none")
    for path in paths:
        rule = "must be a regular file, as it is read several times"
        require(not is_device(path), argument, rule, f"{path}, a pipe or a device")
        try:
            with to_path(path).open("rb") as file:
                require(file.read(1), argument, "must not be empty", path)
        except OSError as error:
            received = f"{path} ({error.strerror})"
            raise InputError(argument, "must be a readable file", received) from None


def content_digests(paths: Sequence[str]) -> list[str]:
    """Returns a short digest of each file's content."""
    return [_short(file_digest(path)) for path in paths]


class TextDigest:
    """A short digest of lines of text, by which a data set recognizes its text.

    It is the same for equal lines, whether or not their file is compressed.
    """

    def __init__(self):
        self._digest = hashlib.sha256()

    def add(self, lines: Sequence[str]) -> None:
        self._digest.update("\n".join([*lines, ""]).encode("utf-8"))

    def value(self) -> str:
        return _short(self._digest.hexdigest())


def _short(digest: str) -> str:
    return DIGEST + digest[:_DIGEST_CHARACTERS]
