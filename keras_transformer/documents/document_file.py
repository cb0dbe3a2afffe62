"""Translates a file or a stream of any format of documents/formats.py.

Text is read, translated and written in parts: a stream of any length takes a bounded part of
memory, and from a terminal each line is answered before the next is read. Other formats are read
whole.
"""

import dataclasses
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

from tqdm import tqdm

from keras_transformer.documents.case import CASE_RULES
from keras_transformer.documents.encodings import decoded
from keras_transformer.documents.formats import (
    FORMATS,
    TEXT,
    WRAPPED,
    check_beginning,
    check_format,
    format_of,
    in_file,
    read_document,
)
from keras_transformer.documents.lines import (
    CHUNK_LINES,
    check_streams,
    in_chunks,
    lines_of,
    name_of,
    opened_streams,
    reading,
)
from keras_transformer.documents.segments import Document, Segment
from keras_transformer.documents.sentences import check_language
from keras_transformer.documents.wrapped import continued_line
from keras_transformer.errors import InputError, require
from keras_transformer.fields import check_fields, one_of, option
from keras_transformer.files.paths import RemotePath, to_path
from keras_transformer.files.reading import opened, uncompressed_name
from keras_transformer.output_files import STANDARD_STREAM

if TYPE_CHECKING:  # it imports TensorFlow, and checking a flag need not wait for that
    from keras_transformer.translate.translator import Translator

FIRST_BYTES = 16  # by which kinds of files are known


@dataclasses.dataclass(frozen=True)
class DocumentConfig:
    """The input and output of a document's translation, and its options."""

    input: str = STANDARD_STREAM  # path, or "-" for stdin
    output: str = STANDARD_STREAM  # path, or "-" for stdout
    format: Annotated[str, one_of(*sorted(FORMATS))] | None = option(
        None,
        "Format of the input. The default goes by the ending of its name, and is text for unknown "
        "endings. wrapped is text whose paragraphs run over several lines.",
    )
    columns: tuple[str, ...] | None = option(
        None,
        "Columns or keys to translate in formats tsv, csv and jsonl, by name, or number from 1.",
    )
    language: str | None = option(
        None,
        "Language of the input, such as en, whose rules split it into sentences. The default is "
        "that of the training data.",
    )
    case: Annotated[str, one_of(*CASE_RULES)] = option(
        "auto",
        "auto: normalize all-caps sentences and English title case before translation, and restore "
        "all-caps after it; keep: translate the text as it is written.",
    )
    terminology: dict[str, str] | None = None  # source phrases: what translations then contain
    to: str | None = None  # the language to translate into, of a model of several

    def __post_init__(self):
        check_fields(self)
        check_streams(self.input, self.output)
        check_language(self.language)
        check_format(self.read_as, self.columns)
        format = FORMATS[self.read_as]
        if format.is_archive and self.output != STANDARD_STREAM:
            is_same = uncompressed_name(self.output).suffix.lower() in format.endings
            rule = f"must end in {' or '.join(format.endings)} for such an input"
            require(is_same, "output", rule, repr(self.output))

    @property
    def read_as(self) -> str:
        """The format in which the input is read."""
        return self.format or format_of(self.input)

    def check_content(self) -> None:
        """Refuses a file that cannot be decoded or read in its format, before a model is loaded.

        A stream is not looked at: it can be read once.

        Raises:
            InputError: naming the file, and the line.
        """
        path = to_path(self.input)
        if self.input == STANDARD_STREAM or isinstance(path, RemotePath) or not path.is_file():
            return
        with reading(self.input), opened(self.input) as file:
            if self.format is None:
                check_beginning(file.read(FIRST_BYTES), self.read_as, self.input)
                file.seek(0)
            for text in texts_of(file, self.input, self.read_as, CHUNK_LINES):
                if self.read_as != TEXT:
                    _read(text, self.language or "en", self)


def translate_file(translator: "Translator", config: DocumentConfig) -> dict[str, Any]:
    """Translates a document.

    Returns:
        {"format", "lines" (of the input; paragraphs of an archive), "truncated" (sentences that
        could not be cut to the model's limit), "unfinished" (those whose translation reached its
        length limit), "from_memory" (those that a translation memory had; in these three, equal
        sentences count once), "seconds", "output"}, and what the checkpoint is.

    Raises:
        InputError: for a line that is not in the encoding of the document, naming it: of text,
            which is UTF-8, the lines before it are written if the output is stdout. An output file
            is written whole or not at all.
    """
    start, lines = time.monotonic(), 0
    format = config.read_as
    counts = translator.new_counts()
    documents = translator.document_translator(
        config.language, config.case, config.terminology, to=config.to, counts=counts
    )
    with (
        opened_streams(config.input, config.output) as (source, target, is_terminal),
        tqdm(unit="segment", disable=is_terminal) as bar,
    ):
        size = 1 if is_terminal else CHUNK_LINES
        for text in texts_of(source, name_of(config.input), format, size):
            if lines == 0 and config.format is None and format == TEXT:
                suggest_wrapped(text, name_of(config.input))
            document = _read(text, documents.language, config, documents.target)
            translated = _counted(document, documents.translate(document.parts), bar)
            for content in document.written(translated):
                target.write(content)
            target.flush()
            lines += _lines(text, document)
    return {
        "format": format,
        "lines": lines,
        "truncated": counts.truncated,
        "unfinished": counts.unfinished,
        "from_memory": counts.from_memory,
        "seconds": round(time.monotonic() - start, 3),
        "output": config.output,
        **translator.checkpoint,
    }


def _counted(document: Document, translated: Iterator[str], bar: tqdm) -> Iterator[str]:
    """Yields the parts of a document that are translated, and shows how many there are."""
    for part, text in zip(document.parts, translated, strict=True):
        yield text
        bar.update(isinstance(part, Segment))


def _lines(text: str | bytes, document: Document) -> int:
    """The lines of a text; of an archive, its paragraphs."""
    if isinstance(text, bytes):
        return len(document.segments)
    return text.count("\n") + (not text.endswith("\n") and text != "")


def suggest_wrapped(text: str, name: str) -> None:
    """Says on stderr what to do where a text looks as if its paragraphs go over several lines."""
    if (number := continued_line(text)) is not None:
        tqdm.write(  # beside the bar
            f"{name}:{number}: this line seems to go on in the next one, but each line is "
            f"translated as a paragraph; format={WRAPPED} joins the lines of a paragraph",
            file=sys.stderr,
        )


def _read(
    text: str | bytes, language: str, config: DocumentConfig, target: str | None = None
) -> Document:
    """Reads a document; an error names the file."""
    try:
        return read_document(text, config.read_as, language, config.columns, target)
    except InputError as error:
        raise in_file(error, name_of(config.input)) from None


def texts_of(file: BinaryIO, name: str, format: str, size: int) -> Iterator[str | bytes]:
    """Yields what is read as a document: of text, `size` lines at a time; else all of a file."""
    if format == TEXT:
        yield from map("".join, in_chunks(lines_of(file, name, keep_ends=True), size))
        return
    with reading(name):
        content = file.read()
    yield content if FORMATS[format].is_archive else decoded(content, format, name)
