"""A file or a stream that is translated in parts: its ends, its progress and its report."""

import contextlib
import dataclasses
import gzip
import os
import sys
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, BinaryIO

from tqdm import tqdm

from keras_transformer.support.errors import InputError, require
from keras_transformer.support.files.paths import RemotePath, is_device, to_path
from keras_transformer.support.files.reading import opened, require_end, text_lines
from keras_transformer.support.output_files import (
    STANDARD_STREAM,
    Output,
    check_output,
    opened_output,
)
from keras_transformer.support.progress import progress_bar
from keras_transformer.use.translate.answer_counts import AnswerCounts
from keras_transformer.use.translate.terminology import check_terminology, terms_in

CHUNK_LINES = 2048  # translated at once: enough for batches of similar length, little memory
NO_TERMS = "none of the terms occurs in the text: their source phrases must be in its language"
WITHOUT_TERMS = "the translation lacks a term, which the model found too improbable"


@dataclasses.dataclass(frozen=True)
class FileConfig:
    """The input and the output of a translation, and the options for any kind of file."""

    input: str = STANDARD_STREAM  # path, or "-" for stdin
    output: str = STANDARD_STREAM  # path, or "-" for stdout
    terminology: dict[str, str] | None = None  # source phrase -> how to translate it
    to: str | None = None  # the target language, if the model has several

    def __post_init__(self):
        check_terminology(self.terminology)
        path = to_path(self.input)
        readable = (isinstance(path, RemotePath) or os.access(path, os.R_OK)) and not path.is_dir()
        readable |= self.input == STANDARD_STREAM and sys.stdin is not None
        require(readable, "input", "must be a file that can be read", repr(self.input))
        if self.input != STANDARD_STREAM:
            require_end(path, "input")
        if self.output != STANDARD_STREAM:
            check_output(self.output, inputs={"input": [self.input]})

    @property
    def name(self) -> str:
        """The name of the input for errors and warnings."""
        return "stdin" if self.input == STANDARD_STREAM else self.input


@dataclasses.dataclass
class FileTranslation:
    """A translation of a file, which takes time from now on."""

    config: FileConfig
    counts: AnswerCounts
    checkpoint: Mapping[str, Any]  # the description of the translator's
    has_terms: bool = False  # whether a text has had a term
    start: float = dataclasses.field(default_factory=time.monotonic)

    @contextlib.contextmanager
    def opened(self, unit: str) -> Iterator[tuple[BinaryIO, Output | BinaryIO, tqdm, bool]]:
        """Opens the input and the output.

        Yields:
            Both, a progress bar that counts in `unit`, and whether the input is a terminal.
        """
        path = self.config.input
        if is_device(path):
            print(f"waiting for input from {path}", file=sys.stderr)
        from_stdin = path == STANDARD_STREAM
        with (
            contextlib.nullcontext(sys.stdin.buffer) if from_stdin else opened(path) as source,
            opened_output(self.config.output) as target,
        ):
            is_terminal = hasattr(source, "isatty") and source.isatty()
            if is_terminal:
                print("reading from the terminal; end with Ctrl-D", file=sys.stderr)
            with progress_bar(unit=f" {unit}", delay=0.1, disable=is_terminal) as bar:
                yield source, target, bar, is_terminal

    def look_for_terms(self, texts: Iterable[str]) -> None:
        """Notes whether one of the texts has a term."""
        self.has_terms = self.has_terms or any(terms_in(texts, self.config.terminology))

    def warn_without_terms(self) -> None:
        """Warns if there is a terminology, and no text has one of its terms."""
        if self.config.terminology and not self.has_terms:
            self.warn(NO_TERMS)

    def warn(self, message: str) -> None:
        """Prints a warning about the input on stderr."""
        print(f"{self.config.name}: {message}", file=sys.stderr)

    def result(self, first: Mapping[str, Any], then: Mapping[str, Any] | None = None) -> dict:
        """Returns the report.

        Args:
            first, then: what else it has, before and after the counts.

        Returns:
            {"truncated" (texts cut to the model's limit), "unfinished" (translations that reached
            the length limit), "from_memory" (texts found in a translation memory), "without_terms"
            (texts whose translation lacks a term), "seconds", "output"}, a description of the
            checkpoint, and a parser's counts.
        """
        return {
            **first,
            "truncated": self.counts.truncated,
            "unfinished": self.counts.unfinished,
            "from_memory": self.counts.from_memory,
            "without_terms": self.counts.without_terms,
            **(then or {}),
            "seconds": round(time.monotonic() - self.start, 3),
            "output": self.config.output,
            **self.checkpoint,
            **self.counts.of_trees(),
        }


def lines_of(source: BinaryIO, name: str, keep_ends: bool = False) -> Iterator[str]:
    """Yields the lines of the input, like `files.reading.text_lines`.

    Raises:
        InputError: names a line that is not UTF-8; also for damaged compressed input.
        OSError: names the input if it cannot be read.
    """
    with reading(name):
        yield from text_lines(source, name, keep_ends)


@contextlib.contextmanager
def reading(name: str) -> Iterator[None]:
    """Raises an InputError for damaged compressed input; adds its name to an OSError."""
    try:
        yield
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError("input", "must be a file that can be read", f"{name!r}: {error}") from None
    except OSError as error:
        raise OSError(error.errno, error.strerror, name) from None


def in_chunks(lines: Iterator[str], size: int) -> Iterator[list[str]]:
    """Yields lists of `size` lines, the last one shorter; yields all lines before an error."""
    chunk: list[str] = []
    try:
        for line in lines:
            chunk.append(line)
            if len(chunk) == size:
                yield chunk
                chunk = []
    except (InputError, OSError):
        if chunk:
            yield chunk
        raise
    if chunk:
        yield chunk
