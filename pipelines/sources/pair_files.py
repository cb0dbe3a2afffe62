"""Sentence pairs from files that contain both sides: tables, translation memories, catalogues.

    .tsv            two columns, separated by a tab
    .jsonl          {"en": "...", "de": "..."}, or the same within {"translation": ...}
    .tmx            a translation memory: units with both languages
    .po             a gettext catalogue: translated entries that are not fuzzy
    .xliff, .xlf    units with a target, and with both languages if the file names its own

Each may be compressed (.gz, .zst). A side becomes one line: runs of spaces and line ends become one
space. Pairs are in the order of the file.
"""

import contextlib
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO
from xml.etree import ElementTree

from keras_transformer.core.vocabulary.language_codes import Direction
from keras_transformer.kit.documents import formats
from keras_transformer.kit.documents.memory import tmx
from keras_transformer.kit.documents.text import encodings, po, xliff
from keras_transformer.support.errors import InputError, require
from keras_transformer.support.files.json_files import parse_json
from keras_transformer.support.files.reading import opened, require_text, uncompressed_name
from pipelines.sources.text_files import read_lines

Pair = tuple[str, str]
XML_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"


def check_pair_file(path: str, argument: str) -> None:
    """Rejects a file with an unknown suffix.

    Args:
        path: the file.
        argument: the name of the argument that named the file, for errors.

    Raises:
        InputError: if no reader is known.
    """
    rule = f"must be files with the suffix {', '.join(READERS)}"
    require(_ending(path) in READERS, argument, rule, path)


def read_pairs(path: str, argument: str, languages: Pair) -> Iterator[Pair]:
    """Streams the pairs of a file.

    Args:
        path: a file that `check_pair_file` accepts.
        argument: the name of the argument that named the file, for errors.
        languages: the source and target languages, such as "en", which includes "en-GB".

    Yields:
        (source, target), each one line, without pairs with an empty side.

    Raises:
        InputError: naming the file and the line if it cannot be read, or the file if it has no
            pairs in these languages.
    """
    has_pairs = False
    for pair in _pairs(path, argument, languages):
        has_pairs = True
        yield pair
    rule = f"must have pairs in {languages[0]} and {languages[1]}"
    require(has_pairs, argument, rule, f"{path}, which has none")


def _uncoded(text: str, direction: Direction) -> str:
    return text


def read_memory(
    path: str,
    argument: str,
    directions: Sequence[Direction],
    coded: Callable[[str, Direction], str] = _uncoded,
) -> dict[str, str]:
    """Reads a file as a translation memory.

    Args:
        path, argument: as `read_pairs` takes them.
        directions: the model's directions; none if they are unknown.
        coded: adds the codes that the model needs to a text; see languages.ModelLanguages.

    Returns:
        The translations as `TextTranslator.with_memory` takes them. If a sentence has several
        translations, the last one is used.

    Raises:
        InputError: like `read_pairs`; at least one direction must have pairs.
    """
    if not directions:
        rule = "must end in .tsv or .po for a model with unknown directions"
        require(_ending(path) in (".tsv", ".po"), argument, rule, path)
        return dict(read_pairs(path, argument, ("source", "target")))
    memory: dict[str, str] = {}
    for direction in directions:
        for source, target in _pairs(path, argument, direction):
            memory[coded(source, direction)] = target
    rule = f"must have pairs for {', '.join(map(str, directions))}"
    require(memory, argument, rule, f"{path}, which has none")
    return memory


def _pairs(path: str, argument: str, languages: Pair) -> Iterator[Pair]:
    for sides in READERS[_ending(path)](path, argument, languages):
        source, target = (" ".join(side.split()) for side in sides)
        if source and target:
            yield source, target


def _ending(path: str) -> str:
    return uncompressed_name(path).suffix.lower()


def _read_tsv(path: str, argument: str, languages: Pair) -> Iterator[Pair]:
    for number, line in enumerate(read_lines(path, argument), start=1):
        columns = line.split("\t")
        rule = "must have two columns separated by a tab"
        require(
            len(columns) == 2, None, rule, f"{len(columns)} in {line[:80]!r}", f"{path}:{number}"
        )
        yield columns[0], columns[1]


def _read_jsonl(path: str, argument: str, languages: Pair) -> Iterator[Pair]:
    for number, line in enumerate(read_lines(path, argument), start=1):
        row = parse_json(line.encode("utf-8"), f"{path}:{number}", Any)
        row = row.get("translation", row) if isinstance(row, dict) else row
        sides = [row.get(name) for name in languages] if isinstance(row, dict) else [None]
        rule = f"must have texts under {languages[0]!r} and {languages[1]!r}"
        require(
            all(isinstance(side, str) for side in sides), None, rule, line[:80], f"{path}:{number}"
        )
        require_text("".join(sides), path, number)
        yield sides[0], sides[1]


def _read_tmx(path: str, argument: str, languages: Pair) -> Iterator[Pair]:
    parser = ElementTree.XMLPullParser(["start", "end"])
    root = body = None
    for event, element in _xml_events(path, argument, parser):
        name = _local(element.tag)
        if root is None:
            root = element
            require(name == "tmx", None, "must be a translation memory, <tmx>", f"<{name}>", path)
        if name == "body":
            body = element
        elif name == "tu" and event == "end":
            texts = _unit_texts(element)
            sides = [_of_language(texts, language) for language in languages]
            if None not in sides:
                yield sides[0], sides[1]
            if body is not None:
                body.clear()  # a file may be larger than memory


def _unit_texts(unit: ElementTree.Element) -> dict[str, str]:
    """Returns a unit's texts by lowercase language: the first of each language."""
    texts: dict[str, str] = {}
    for variant in unit:
        language = variant.get(XML_LANGUAGE) or variant.get("lang")
        segment = next((each for each in variant if _local(each.tag) == "seg"), None)
        if language is not None and segment is not None:
            texts.setdefault(language.lower(), _text_of(segment))
    return texts


def _text_of(element: ElementTree.Element) -> str:
    """Returns a segment's text without the code in it."""
    text = element.text or ""
    for inner in element:
        if _local(inner.tag) not in tmx.CODE_TAGS:
            text += _text_of(inner)
        text += inner.tail or ""
    return text


def _of_language(texts: dict[str, str], language: str) -> str | None:
    """Returns the text in a language or a variety of it: "en-gb" is "en"."""
    return next((text for name, text in texts.items() if tmx.is_variety(name, language)), None)


def _xml_events(
    path: str, argument: str, parser: ElementTree.XMLPullParser
) -> Iterator[tuple[str, ElementTree.Element]]:
    try:
        with _opened_whole(path, argument) as file:
            while block := file.read(1 << 16):
                parser.feed(block)
                yield from parser.read_events()
        parser.close()
        yield from parser.read_events()
    except ElementTree.ParseError as error:
        line, _ = error.position
        raise InputError(None, "must be well-formed XML", error, f"{path}:{line}") from None
    except InputError:
        raise
    except (LookupError, ValueError) as error:  # from the XML parser, which supports few encodings
        rule = "must be XML in UTF-8 or another supported encoding"
        raise InputError(None, rule, error, path) from None


@contextlib.contextmanager
def _opened_whole(path: str, argument: str) -> Iterator[BinaryIO]:
    """Opens a file for reading to its end."""
    try:
        with opened(path) as file:
            yield file
    except (EOFError, OSError, zlib.error) as error:
        rule = "must be a complete, readable file"
        raise InputError(argument, rule, f"{path}: {error}") from None


def _local(tag: str) -> str:
    return tag.rpartition("}")[2]


def _read_po(path: str, argument: str, languages: Pair) -> Iterator[Pair]:
    for entry in _in_file(path, po.entries, _document(path, argument, "po")):
        if entry.target and not entry.is_fuzzy and not entry.plural:
            yield entry.source, entry.target


def _read_xliff(path: str, argument: str, languages: Pair) -> Iterator[Pair]:
    for unit in _in_file(path, xliff.units, _document(path, argument, "xliff")):
        if unit.languages is None or all(map(tmx.is_variety, unit.languages, languages)):
            yield unit.source.text, unit.target
        elif all(map(tmx.is_variety, unit.languages, reversed(languages))):
            yield unit.target, unit.source.text


def _document(path: str, argument: str, format: str) -> str:
    """Decodes a document by its declared encoding, without its byte order mark."""
    with _opened_whole(path, argument) as file:
        text = encodings.decoded(file.read(), format, path)
    return text.removeprefix(formats.BYTE_ORDER_MARK)


def _in_file(path: str, read: Callable[[str], list], text: str) -> list:
    """Calls a reader, and adds the file name to its errors."""
    try:
        return read(text)
    except InputError as error:
        raise formats.in_file(error, path) from None


READERS = {
    ".tsv": _read_tsv,
    ".jsonl": _read_jsonl,
    ".tmx": _read_tmx,
    ".po": _read_po,
    ".xliff": _read_xliff,
    ".xlf": _read_xliff,
}
