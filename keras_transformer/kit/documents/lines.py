"""Translates a file or a stream of any length line by line, in bounded memory.

Output line i answers input line i (see files/reading.py); with `n_best` > 1, up to that many lines
do, best first. The columns are separated by tabs:

    [number of the input line, from 1, if n_best > 1] [requested columns] translation

The columns on request are `matches`, three columns: the similarity of the most similar sentence in
the translation memory, that sentence, and its translation, all empty if none is similar; `scores`,
a number; `alignments`, the aligned words as "0-0 1-2", from 0 (Pharaoh format); and `token_scores`,
two columns: the subwords and their log-probabilities, both separated by spaces. With
`target_prefixes`, an input line may contain a tab followed by the beginning of its translation.
"""

import contextlib
import dataclasses
import gzip
import os
import sys
import time
import zlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO

from keras_transformer.support.errors import InputError, require
from keras_transformer.support.fields import option
from keras_transformer.support.files.paths import RemotePath, is_device, to_path
from keras_transformer.support.files.reading import opened, require_end, text_lines
from keras_transformer.support.output_files import (
    STANDARD_STREAM,
    Output,
    check_output,
    one_line,
    opened_output,
)
from keras_transformer.support.progress import progress_bar
from keras_transformer.use.translate.answers import Translation
from keras_transformer.use.translate.terminology import check_terminology, terms_in

if TYPE_CHECKING:  # it imports TensorFlow, which is not needed to check flags
    from keras_transformer.kit.documents.memory.memory import Match
    from keras_transformer.kit.documents.text_translator import TextTranslator
    from keras_transformer.use.translate.translator import Translator

CHUNK_LINES = 2048  # translated at once: enough for batches of similar length, little memory
SHOWN_NUMBERS = 10  # line numbers in a warning
NO_TERMS = "none of the terms occurs in the text: their source phrases must be in its language"
WITHOUT_TERMS = "the translation lacks a term, which the model found too improbable"


@dataclasses.dataclass(frozen=True)
class LinesConfig:
    """The input, output and options for translating line by line."""

    input: str = STANDARD_STREAM  # path, or "-" for stdin
    output: str = STANDARD_STREAM  # path, or "-" for stdout
    n_best: int = option(
        1,
        "Translations per line; above 1, each output line begins with the number of its input "
        "line.",
    )
    scores: bool = option(False, "Write the score before each translation, separated by a tab.")
    alignments: bool = option(False, "Write word alignments such as 0-0 1-2 before it.")
    token_scores: bool = option(
        False, "Write its subwords and their log-probabilities, as two columns, before it."
    )
    confidence: bool = option(
        False,
        "Write the probability that the translation is good before it. The model needs a "
        "calibration, by evaluate.",
    )
    matches: bool = option(
        False,
        "Write the most similar sentence of the translation memory before it, as three columns: "
        "the similarity, from 0.75 to 1, the sentence and its translation.",
    )
    target_prefixes: bool = option(
        False,
        "Input lines may contain a tab followed by the beginning of their translation.",
    )
    terminology: dict[str, str] | None = None  # source phrase -> how to translate it
    to: str | None = None  # the target language, if the model has several

    def __post_init__(self):
        require(self.n_best >= 1, "n_best", "must be at least 1", self.n_best)
        check_terminology(self.terminology)
        check_streams(self.input, self.output)


def check_streams(input: str, output: str) -> None:
    """Raises an InputError if the input cannot be read or the output cannot be written."""
    path = to_path(input)
    readable = (isinstance(path, RemotePath) or os.access(path, os.R_OK)) and not path.is_dir()
    readable |= input == STANDARD_STREAM and sys.stdin is not None
    require(readable, "input", "must be a file that can be read", repr(input))
    if input != STANDARD_STREAM:
        require_end(path, "input")
    if output != STANDARD_STREAM:
        check_output(output, inputs={"input": [input]})


@contextlib.contextmanager
def opened_streams(input: str, output: str) -> Iterator[tuple[BinaryIO, Output | BinaryIO, bool]]:
    """Opens the input and the output; yields both, and whether the input is a terminal."""
    if is_device(input):
        print(f"waiting for input from {input}", file=sys.stderr)
    from_stdin = input == STANDARD_STREAM
    with (
        contextlib.nullcontext(sys.stdin.buffer) if from_stdin else opened(input) as source,
        opened_output(output) as target,
    ):
        is_terminal = hasattr(source, "isatty") and source.isatty()
        if is_terminal:
            print("reading from the terminal; end with Ctrl-D", file=sys.stderr)
        yield source, target, is_terminal


def name_of(input: str) -> str:
    """Returns the name of the input for errors."""
    return "stdin" if input == STANDARD_STREAM else input


def translate_lines(translator: "Translator", config: LinesConfig) -> dict[str, Any]:
    """Translates all lines of the input; on a terminal, each before the next is read.

    At the end, warnings on stderr list the lines that were truncated, those whose translation
    reached the length limit, and those whose translation lacks a term; or one says that no line has
    a term.

    Returns:
        {"lines", "truncated" (lines cut to the model's limit), "unfinished" (translations that
        reached the length limit), "from_memory" (lines found in a translation memory),
        "without_terms" (lines whose translation lacks a term), "seconds", "output"}, a description
        of the checkpoint, and a parser's counts.

    Raises:
        InputError: names a line that is not UTF-8; the lines before it are written if the output is
            stdout. An output file is written whole or not at all.
    """
    start, count = time.monotonic(), 0
    truncated: list[int] = []  # numbers of lines
    unfinished: list[int] = []
    without_terms: list[int] = []
    name = name_of(config.input)
    lacks_terms = bool(config.terminology)
    counts = translator.new_counts()
    if config.confidence:
        translator.require_calibration("confidence", True)
    if config.terminology:
        translator.check_terms(config.terminology)
    translator.with_codes([], config.to)  # rejects an unknown language before reading anything
    with (
        opened_streams(config.input, config.output) as (source, target, is_terminal),
        progress_bar(unit=" lines", delay=0.1, disable=is_terminal) as bar,
    ):
        lines = lines_of(source, name)
        for chunk in in_chunks(lines, 1 if is_terminal else CHUNK_LINES):
            lacks_terms = lacks_terms and not any(terms_in(chunk, config.terminology))
            answers = translate_chunk(translator, chunk, config)
            counts.add(translations[0] for translations in answers)
            matches = matches_of(translator, chunk, config)
            rows = zip(answers, matches, strict=True)
            for number, (translations, similar) in enumerate(rows, count + 1):
                line = format_answer(number, translations, similar, config)
                target.write(line.encode("utf-8"))
                if translations[0].truncated:
                    truncated.append(number)
                if translations[0].unfinished:
                    unfinished.append(number)
                if translations[0].without_terms:
                    without_terms.append(number)
            target.flush()
            count += len(chunk)
            bar.update(len(chunk))
    warn(name, truncated, "the text is longer than the model's limit; its end is not translated")
    warn(name, unfinished, "the translation reached its length limit; its end may be missing")
    warn(name, without_terms, WITHOUT_TERMS)
    if lacks_terms:
        print(f"{name}: {NO_TERMS}", file=sys.stderr)
    return {
        "lines": count,
        "truncated": len(truncated),
        "unfinished": len(unfinished),
        "from_memory": counts.from_memory,
        "without_terms": counts.without_terms,
        "seconds": round(time.monotonic() - start, 3),
        "output": config.output,
        **translator.checkpoint,
        **counts.of_trees(),
    }


def warn(name: str, numbers: Sequence[int], reason: str) -> None:
    """Prints a warning about lines of a file on stderr, if there are any."""
    if not numbers:
        return
    listed = ", ".join(map(str, numbers[:SHOWN_NUMBERS]))
    more = len(numbers) - SHOWN_NUMBERS
    if more > 0:
        listed += f" and {more} more"
    what = "line" if len(numbers) == 1 else "lines"
    print(f"{name}: {what} {listed}: {reason}", file=sys.stderr)


def translate_chunk(
    translator: "Translator", lines: Sequence[str], config: LinesConfig
) -> list[list[Translation]]:
    """Translates lines, which may contain the beginnings of their translations."""
    texts, prefixes = parts_of(lines, config)
    return translator.translate(
        texts,
        target_prefixes=prefixes,
        aligned=config.alignments or config.token_scores,
        scores=config.scores or config.token_scores,
        to=config.to,
        confidence=config.confidence,
        terminology=config.terminology,
    )


def parts_of(lines: Sequence[str], config: LinesConfig) -> tuple[list[str], list[str] | None]:
    """Returns the texts in lines, and the beginnings of their translations, if they have them."""
    if not config.target_prefixes:
        return list(lines), None
    parts = [line.partition("\t") for line in lines]
    return [text for text, _, _ in parts], [prefix for _, _, prefix in parts]


def matches_of(
    translator: "TextTranslator", lines: Sequence[str], config: LinesConfig
) -> list[list["Match"]]:
    """Returns the most similar sentence of the memory for each line, if one is similar."""
    if not config.matches:
        return [[] for _ in lines]
    texts, _ = parts_of(lines, config)
    return translator.matches(texts, to=config.to)


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


def format_answer(
    number: int,
    translations: Sequence[Translation],
    matches: Sequence["Match"],
    config: LinesConfig,
) -> str:
    """Formats the output for one input line, including line ends."""
    rows = []
    for answer in translations[: config.n_best]:
        columns = [str(number)] if config.n_best > 1 else []
        if config.matches:
            columns += match_columns(matches)
        if config.scores:
            columns.append(f"{answer.score:.6f}")
        if config.confidence:
            columns.append("" if answer.confidence is None else f"{answer.confidence:.3f}")
        if config.alignments:
            columns.append(answer.pair.pharaoh)
        if config.token_scores:
            columns.append(" ".join(answer.pair.target_pieces))
            columns.append(" ".join(f"{score:.6f}" for score in answer.pair.log_probs))
        rows.append("\t".join([*columns, one_line(answer.text)]))
    return "".join(rows)


def match_columns(matches: Sequence["Match"]) -> list[str]:
    """Returns the columns of the most similar sentence in the memory; empty if there is none."""
    if not matches:
        return ["", "", ""]
    best = matches[0]
    return [f"{best.rounded_similarity:.3f}", best.source, best.translation]
