"""Measures what becomes of office documents and books that other programs have made.

    python benchmarks/foreign_documents.py --folder=documents/

Translates each document three times without a model: unchanged; with each letter replaced by a
Cherokee one; and the same with the words in reverse order and no-break spaces between them. Prints
one JSON line with these counts for each format:

- `documents`, `refused` (by reason), `failed` (with another exception).
- `unreadable`: translated members that are not XML, although their originals are.
- `damaged`: members that kept their text because their translation would have been damaged.
- `members`: documents whose members have other names or another order.
- `letters`: visible letters, and the percentage that stayed, apart from web and e-mail addresses,
  numbers such as 1E5, and errors of formulas.
- `left`: pieces that stayed, by kind, as the program itself reports them.
- `seconds`: the time of the slowest document.
"""

import argparse
import io
import json
import re
import time
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

from timing import log, run

from keras_transformer.kit.documents.formats import FORMATS, read_document
from keras_transformer.kit.documents.tree.alignment import units
from keras_transformer.kit.documents.tree.translation import AlignedText, DocumentTranslator, Model
from keras_transformer.support.errors import InputError
from keras_transformer.use.translate.answers import Link

FIRST, LETTERS = 0x13A0, 80  # Cherokee
NO_LANGUAGE = re.compile(
    r"\b\w+://\S+|www\.\S+|(?<!\S)\S+@\S+|(?<![\d.])\d[\d.]*E[-+]?\d+|#N/A|#\w+[!?]"
)
# Elements whose text is visible, in members with these names; by formats. Masters and layouts have
# prompts for authors, and external links have values of other workbooks.
VISIBLE = {
    **dict.fromkeys(
        ("docx", "pptx", "xlsx"),
        (
            r"(word|ppt|xl)/(?!glossary|theme|slideLayouts|\w+Masters|externalLinks).*\.xml",
            ("t", "v"),
        ),
    ),
    **dict.fromkeys(("odt", "odp", "ods"), (r"(.*/)?(content|styles)\.xml", ("p", "h"))),
    "epub": (r".*\.x?html?", ("body",)),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, required=True)
    counts: dict[str, Counter] = defaultdict(Counter)
    slowest: Counter[str] = Counter()
    for path in sorted(parser.parse_args().folder.rglob("*")):
        for name, format in FORMATS.items():
            if format.is_archive and path.suffix.lower() in format.endings and path.is_file():
                start = time.monotonic()
                measure(path, name, counts[name])
                slowest[name] = max(slowest[name], round(time.monotonic() - start, 1))
    for name, found in counts.items():
        stayed = found.pop("letters that stayed", 0)
        found["percentage that stayed"] = round(100 * stayed / max(found["letters"], 1), 2)
        found["seconds"] = slowest[name]
    print(json.dumps(counts))


def measure(path: Path, format: str, counts: Counter) -> None:
    """Translates a document in three ways, and adds to the counts of its format."""
    content = path.read_bytes()
    counts["documents"] += 1
    for way in (unchanged, replaced, reversed_words):
        try:
            document = read_document(content, format, "en", target="chr")
            (result,) = document.written(translator(way).translate(document.parts))
        except InputError as error:
            counts["refused"] += 1
            log(f"{path}: {error}")
            return
        except Exception as error:
            counts["failed"] += 1
            log(f"{path}: {error!r}")
            return
        compare(path, content, result, counts)
        counts["damaged"] += document.left.get("damaged", 0)
        if way is replaced:
            for kind, number in document.left.items():
                counts[f"left: {kind}"] += number
            for text in visible_texts(result, format):
                text = NO_LANGUAGE.sub("", text)
                stayed = sum(c.isalpha() and not is_replaced(c) for c in text)
                counts["letters that stayed"] += stayed
                counts["letters"] += stayed + sum(map(is_replaced, text))


def unchanged(text: str) -> AlignedText:
    return AlignedText(text, [Link(unit, unit) for unit in units(text)])


def replaced(text: str) -> AlignedText:
    return AlignedText(other_letters(text), [Link(unit, unit) for unit in units(text)])


def reversed_words(text: str) -> AlignedText:
    words, links, length = [], [], 0
    for start, end in reversed(units(text)):
        words.append(other_letters(text[start:end]))
        links.append(Link((start, end), (length, length + end - start)))
        length += end - start + 1
    return AlignedText("\N{NO-BREAK SPACE}".join(words), links)


def other_letters(text: str) -> str:
    return "".join(chr(FIRST + ord(c) % LETTERS) if c.isalpha() else c for c in text)


def is_replaced(character: str) -> bool:
    return FIRST <= ord(character) < FIRST + LETTERS


def translator(way) -> DocumentTranslator:
    def translate(texts, aligned):
        return [way(text) for text in texts]

    def count_subwords(texts):
        return [len(text.split()) for text in texts]

    return DocumentTranslator(Model(translate, count_subwords, 200), "en", "keep", "chr")


def compare(path: Path, content: bytes, result: bytes, counts: Counter) -> None:
    """Counts members that moved, and members that are no longer XML."""
    with (
        zipfile.ZipFile(io.BytesIO(content)) as source,
        zipfile.ZipFile(io.BytesIO(result)) as target,
    ):
        if source.namelist() != target.namelist():
            counts["members"] += 1
            return
        for one, other in zip(source.infolist(), target.infolist(), strict=True):
            before, after = source.read(one), target.read(other)
            if before != after and is_xml(before) and not is_xml(after):
                counts["unreadable"] += 1
                log(f"{path}: {one.filename} is not XML")


def is_xml(content: bytes) -> bool:
    try:
        ElementTree.fromstring(content)
    except ElementTree.ParseError:
        return False
    return True


def visible_texts(content: bytes, format: str) -> Iterator[str]:
    """Yields the visible texts of a document, tracked deletions included in OpenDocument."""
    members, names = VISIBLE[format]
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for name in archive.namelist():
            text = archive.read(name) if re.fullmatch(members, name) else b""
            if text and is_xml(text):
                yield from texts_in(ElementTree.fromstring(text), names)


def texts_in(element: ElementTree.Element, names: tuple[str, ...]) -> Iterator[str]:
    for child in element:
        if child.tag.rpartition("}")[2] in names:
            yield "".join(_shown(child))
        else:
            yield from texts_in(child, names)


def _shown(element: ElementTree.Element) -> Iterator[str]:
    """Yields the text in an element, without scripts and styles of web pages."""
    if element.tag.rpartition("}")[2] not in ("script", "style"):
        yield element.text or ""
        for child in element:
            yield from _shown(child)
            yield child.tail or ""


if __name__ == "__main__":
    run(main)
