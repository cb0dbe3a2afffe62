"""Translates a file or a stream in any format listed in documents/formats.py.

Text is read, translated and written in parts: a stream of any length needs bounded memory, and on a
terminal each line is answered before the next is read. Files in other formats are read whole.
"""

import dataclasses
import sys
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

from tqdm import tqdm

from keras_transformer.kit.documents.file_translation import (
    CHUNK_LINES,
    WITHOUT_TERMS,
    FileConfig,
    FileTranslation,
    in_chunks,
    lines_of,
    reading,
)
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

if TYPE_CHECKING:  # it imports TensorFlow, which is not needed to check flags
    from keras_transformer.use.translate.translator import Translator

FIRST_BYTES = 16  # enough to recognize file types
UNKNOWN = "translation"  # in a file's name, in place of the language


@dataclasses.dataclass(frozen=True)
class DocumentConfig(FileConfig):
    """The input, output and options for translating a document."""

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

    def __post_init__(self):
        check_fields(self)
        super().__post_init__()
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
        {"format", "lines" (of the input; paragraphs of an archive)}, the report of a
        FileTranslation, whose counts are of sentences, equal ones once, and "left" (the numbers of
        pieces with letters that stay as they are, by kind; see Document.left). With `review_below`,
        also {"doubtful": the number of distinct sentences below it, "marked_by": what marks them in
        the output, or None for a format without marks}.

    Raises:
        InputError: names a line that is not in the document's encoding. For text (UTF-8), the lines
            before it are written if the output is stdout. An output file is written whole or not at
            all.
    """
    lines, segments, left = 0, 0, Counter()
    format = config.read_as
    is_judged = config.review_below is not None
    if is_judged:
        translator.require_calibration("review_below", config.review_below)
    counts = translator.new_counts(config.review_below or 0.0)
    file = FileTranslation(config, counts, translator.checkpoint)
    documents = translator.document_translator(
        config.language,
        config.case,
        config.terminology,
        to=config.to,
        counts=counts,
        review_below=config.review_below,
    )
    with file.opened("segments") as (source, target, bar, is_terminal):
        size = 1 if is_terminal else CHUNK_LINES
        for text in texts_of(source, config.name, format, size):
            if lines == 0 and config.format is None and format == TEXT:
                suggest_wrapped(text, config.name)
            document = _read(text, documents.language, config, documents.target)
            file.look_for_terms(segment.text for segment in document.segments)
            translated = _counted(document, documents.translate(document.parts), bar)
            for content in document.written(translated):
                target.write(content)
            target.flush()
            lines += _lines(text, document)
            segments += len(document.segments)
            left.update(document.left)
    if segments == 0:
        file.warn("no text to translate was found")
    else:
        file.warn_without_terms()
    if counts.without_terms:
        what = "1 sentence" if counts.without_terms == 1 else f"{counts.without_terms} sentences"
        file.warn(f"{what}: {WITHOUT_TERMS}")
    review = _review(file, config, counts.doubtful) if is_judged else {}
    return file.result({"format": format, "lines": lines}, {"left": dict(+left), **review})


def _review(file: FileTranslation, config: DocumentConfig, doubtful: int) -> dict[str, Any]:
    """Warns of doubtful sentences, and returns what the report says of them."""
    mark = FORMATS[config.read_as].review_mark
    if doubtful:
        what = "1 sentence has" if doubtful == 1 else f"{doubtful} sentences have"
        message = f"{what} less confidence than {config.review_below:g}: read their translations"
        file.warn(f"{message}, marked by {mark}" if mark else message)
    return {"doubtful": doubtful, "marked_by": mark or None}


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
            is_reviewed=bool(config.review_below),
        )
    except InputError as error:
        raise in_file(error, config.name) from None


def texts_of(file: BinaryIO, name: str, format: str, size: int) -> Iterator[str | bytes]:
    """Yields the input in pieces: `size` lines of text at a time, or the whole of another file."""
    if format == TEXT:
        yield from map("".join, in_chunks(lines_of(file, name, keep_ends=True), size))
        return
    with reading(name):
        content = file.read()
    yield content if FORMATS[format].is_archive else decoded(content, format, name)
