"""Translates a file or a stream in any format listed in documents/formats.py.

Text is read, translated and written in parts: a stream of any length needs bounded memory, and on a
terminal each line is answered before the next is read. Files in other formats are read whole.
"""

import dataclasses
import sys
import time
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

from tqdm import tqdm

from keras_transformer.kit.documents.formats import (
    FORMATS,
    TEXT,
    WRAPPED,
    check_beginning,
    check_format,
    format_of,
    in_file,
    read_document,
)
from keras_transformer.kit.documents.lines import (
    CHUNK_LINES,
    NO_TERMS,
    WITHOUT_TERMS,
    check_streams,
    in_chunks,
    lines_of,
    name_of,
    opened_streams,
    reading,
)
from keras_transformer.kit.documents.text.encodings import decoded
from keras_transformer.kit.documents.text.wrapped import continued_line
from keras_transformer.kit.documents.tree.case import CASE_RULES
from keras_transformer.kit.documents.tree.segments import Document
from keras_transformer.kit.documents.tree.sentences import check_language
from keras_transformer.support.errors import InputError, require
from keras_transformer.support.fields import Share, check_fields, one_of, option
from keras_transformer.support.files.paths import RemotePath, to_path
from keras_transformer.support.files.reading import opened, uncompressed_name
from keras_transformer.support.output_files import STANDARD_STREAM
from keras_transformer.support.progress import progress_bar
from keras_transformer.use.translate.terminology import terms_in

if TYPE_CHECKING:  # it imports TensorFlow, which is not needed to check flags
    from keras_transformer.use.translate.translator import Translator

FIRST_BYTES = 16  # enough to recognize file types
UNKNOWN = "translation"  # in a file's name, in place of the language


@dataclasses.dataclass(frozen=True)
class DocumentConfig:
    """The input, output and options for translating a document."""

    input: str = STANDARD_STREAM  # path, or "-" for stdin
    output: str = STANDARD_STREAM  # path, or "-" for stdout
    format: Annotated[str, one_of(*sorted(FORMATS))] | None = option(
        None,
        "Format of the input. The default follows from the file extension, and is text for unknown "
        "extensions. wrapped is text whose paragraphs span several lines.",
    )
    columns: tuple[str, ...] | None = option(
        None,
        "Columns or keys to translate in tsv, csv and jsonl, by name or by number from 1.",
    )
    language: str | None = option(
        None,
        "Language of the input, such as en, which selects the rules for splitting sentences. The "
        "default is the language of the training data.",
    )
    case: Annotated[str, one_of(*CASE_RULES)] = option(
        "auto",
        "auto: normalize all-caps sentences and English title case before translation, and restore "
        "all-caps in translations; keep: translate the text as written.",
    )
    review_below: Share | None = option(
        None,
        "Count the sentences whose translation is good with less than this probability, such as "
        "0.5, and mark them in docx, odt, po, xliff, tsv, csv and jsonl. The model needs a "
        "calibration, by evaluate.",
    )
    terminology: dict[str, str] | None = None  # source phrase -> how to translate it
    to: str | None = None  # the target language, if the model has several

    def __post_init__(self):
        check_fields(self)
        check_streams(self.input, self.output)
        check_language(self.language)
        check_format(self.read_as, self.columns)
        format = FORMATS[self.read_as]
        if format.is_archive and self.output != STANDARD_STREAM:
            ending = uncompressed_name(self.input).suffix.lower()
            endings = (ending,) if ending in format.endings else format.endings
            is_same = uncompressed_name(self.output).suffix.lower() in endings
            rule = f"must end in {' or '.join(endings)} for this input"
            require(is_same, "output", rule, repr(self.output))

    @property
    def read_as(self) -> str:
        """The format used to read the input."""
        return self.format or format_of(self.input)

    def check_content(self) -> None:
        """Refuses a file that cannot be decoded or read in its format, before a model is loaded.

        Streams are not checked, as they can only be read once.

        Raises:
            InputError: names the file and the line.
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
        could not be cut to the model's limit), "unfinished" (sentences whose translation reached
        the length limit), "from_memory" (sentences found in a translation memory), "without_terms"
        (sentences whose translation lacks a term; these four count equal sentences once), "left"
        (the numbers of pieces with letters that stay as they are, by kind; see Document.left),
        "seconds", "output"}, and a description of the checkpoint. With `review_below`, also
        {"doubtful": the number of distinct sentences below it, "marked_by": what marks them in the
        output, or None for a format without marks}.

    Raises:
        InputError: names a line that is not in the document's encoding. For text (UTF-8), the lines
            before it are written if the output is stdout. An output file is written whole or not at
            all.
    """
    start, lines = time.monotonic(), 0
    segments, left = 0, Counter()
    lacks_terms = bool(config.terminology)
    format = config.read_as
    is_judged = config.review_below is not None
    if is_judged:
        translator.require_calibration("review_below", config.review_below)
    mark = FORMATS[format].review_mark
    counts = translator.new_counts(config.review_below or 0.0)
    documents = translator.document_translator(
        config.language,
        config.case,
        config.terminology,
        to=config.to,
        counts=counts,
        confidence=is_judged,
    )
    with (
        opened_streams(config.input, config.output) as (source, target, is_terminal),
        progress_bar(unit=" segments", delay=0.1, disable=is_terminal) as bar,
    ):
        size = 1 if is_terminal else CHUNK_LINES
        for text in texts_of(source, name_of(config.input), format, size):
            if lines == 0 and config.format is None and format == TEXT:
                suggest_wrapped(text, name_of(config.input))
            document = _read(text, documents.language, config, documents.target)
            texts = [segment.text for segment in document.segments]
            lacks_terms = lacks_terms and not any(terms_in(texts, config.terminology))
            translated = _counted(document, documents.translate(document.parts), bar)
            for content in document.written(translated):
                target.write(content)
            target.flush()
            lines += _lines(text, document)
            segments += len(document.segments)
            left.update(document.left)
    if segments == 0:
        print(f"{name_of(config.input)}: no text to translate was found", file=sys.stderr)
    if lacks_terms and segments > 0:
        print(f"{name_of(config.input)}: {NO_TERMS}", file=sys.stderr)
    if counts.without_terms:
        what = "1 sentence" if counts.without_terms == 1 else f"{counts.without_terms} sentences"
        print(f"{name_of(config.input)}: {what}: {WITHOUT_TERMS}", file=sys.stderr)
    if counts.doubtful:
        what = "1 sentence has" if counts.doubtful == 1 else f"{counts.doubtful} sentences have"
        message = f"{what} less confidence than {config.review_below:g}: read their translations"
        marked = f", marked by {mark}" if mark else ""
        print(f"{name_of(config.input)}: {message}{marked}", file=sys.stderr)
    return {
        "format": format,
        "lines": lines,
        "truncated": counts.truncated,
        "unfinished": counts.unfinished,
        "from_memory": counts.from_memory,
        "without_terms": counts.without_terms,
        "left": dict(+left),
        **({"doubtful": counts.doubtful, "marked_by": mark or None} if is_judged else {}),
        "seconds": round(time.monotonic() - start, 3),
        "output": config.output,
        **translator.checkpoint,
    }


def path_beside(path: str, format: str, language: str | None) -> str:
    """Returns where to write a translation next to its source: "letter.de.docx" for "letter.docx".

    Args:
        path: the source.
        format: its format, a name in FORMATS with file extensions.
        language: the language of the translation, if known.
    """
    source = to_path(path)
    name = uncompressed_name(source.name)
    ending = name.suffix
    if ending.lower() not in FORMATS[format].endings:
        ending = FORMATS[format].endings[0]
    return str(source.with_name(f"{name.name.removesuffix(ending)}.{language or UNKNOWN}{ending}"))


def _counted(document: Document, translated: Iterator[str], bar: tqdm) -> Iterator[str]:
    """Yields the translated parts of a document, and shows their number."""
    for part, text in zip(document.parts, translated, strict=True):
        yield text
        bar.update(not isinstance(part, str))


def _lines(text: str | bytes, document: Document) -> int:
    """Counts the lines of a text, or the paragraphs of an archive."""
    if isinstance(text, bytes):
        return len(document.segments)
    return text.count("\n") + (not text.endswith("\n") and text != "")


def suggest_wrapped(text: str, name: str) -> None:
    """Suggests format=wrapped on stderr if the text's paragraphs seem to span several lines."""
    if (number := continued_line(text)) is not None:
        tqdm.write(  # leaves the progress bar intact
            f"{name}:{number}: this line seems to continue on the next, but each line is "
            f"translated as a paragraph; format={WRAPPED} joins the lines of a paragraph",
            file=sys.stderr,
        )


def _read(
    text: str | bytes, language: str, config: DocumentConfig, target: str | None = None
) -> Document:
    """Reads a document; errors name the file."""
    try:
        return read_document(
            text,
            config.read_as,
            language,
            config.columns,
            target,
            review_below=config.review_below or 0.0,
        )
    except InputError as error:
        raise in_file(error, name_of(config.input)) from None


def texts_of(file: BinaryIO, name: str, format: str, size: int) -> Iterator[str | bytes]:
    """Yields the input in pieces: `size` lines of text at a time, or the whole of another file."""
    if format == TEXT:
        yield from map("".join, in_chunks(lines_of(file, name, keep_ends=True), size))
        return
    with reading(name):
        content = file.read()
    yield content if FORMATS[format].is_archive else decoded(content, format, name)
