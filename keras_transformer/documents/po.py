"""Catalogues of gettext (.po): entries without a translation are filled, all else stays as it is.

polib reads the catalogue. Its own writer would break the lines of every entry anew; so a
translation is put into the empty msgstr where it stands, and no other byte changes. An entry of a
plural has its singular in the first form and its plural in all others. Fuzzy and obsolete entries
have text of people in them and stay. What reStructuredText writes within a sentence (roles,
literals, references), as the catalogues of Sphinx have it, is no language.
"""

import dataclasses
import re
from typing import NamedTuple

import polib

from keras_transformer.documents.formats import read_document
from keras_transformer.documents.segments import Document, Mark, Segment, embedded
from keras_transformer.errors import InputError, reason, require

# ``literal``, :role:`target`, `reference`_ and |substitution|.
RST = re.compile(r"``.+?``|(?::[\w:+.-]+:)?`[^`]+`(?:__?)?|\|\w[^|]*\|_{0,2}", re.DOTALL)
EMPTY = re.compile(r'(msgstr(?:\[\d+\])?[ \t]+")("[ \t]*)$')
TAG = re.compile(r"</?[A-Za-z][^<>]*>")


class Entry(NamedTuple):
    """A message of a catalogue."""

    line: int  # the number of the first line of the entry, from 1
    source: str
    plural: str  # empty where there is none
    target: str  # empty where it is not translated; of plurals, the first form
    is_fuzzy: bool


def read(text: str, language: str) -> Document:
    """Reads a catalogue.

    The parts to be translated are the places of the translations, so their source is empty.

    Args:
        text: the catalogue.
        language: of the messages; they are not cut here, so it does not matter.

    Raises:
        InputError: for a syntax error, naming the line.
    """
    lines = text.splitlines(keepends=True)
    parts: list[str | Segment] = []
    done = 0  # lines that are in `parts`
    for entry in entries(text):
        if entry.target or entry.is_fuzzy:
            continue
        place = entry.line - 1
        while not lines[place].startswith("msgstr"):
            place += 1
        while place < len(lines) and lines[place].startswith("msgstr"):
            line = lines[place].rstrip("\r\n")
            empty = EMPTY.match(line)
            if empty is None:  # a form of a plural that has been translated
                break
            is_plural = entry.plural and not line.startswith("msgstr[0]")
            message = entry.plural if is_plural else entry.source
            parts += ["".join(lines[done:place]), empty[1]]
            parts += embedded(message_document(message, language), quoted)
            parts.append(empty[2] + lines[place][len(line) :])
            place += 1
            done = place
    parts.append("".join(lines[done:]))
    return Document(tuple(part for part in parts if part != ""))


def entries(text: str) -> list[Entry]:
    """The messages of a catalogue, without its header and obsolete ones.

    Raises:
        InputError: for a syntax error, naming the line.
    """
    try:
        catalogue = polib.pofile(text)
    except (OSError, UnicodeDecodeError, ValueError) as error:
        message = re.sub(r"^Syntax error in po file ", "", reason(error))
        raise InputError(f"a catalogue must be one of gettext. Received: {message}") from None
    found = [
        Entry(
            line=max(entry.linenum, 1),  # polib gives 0 for the first entry
            source=entry.msgid,
            plural=entry.msgid_plural,
            target=entry.msgstr or "".join(entry.msgstr_plural.values()),
            is_fuzzy=entry.fuzzy,
        )
        for entry in catalogue
        if not entry.obsolete and entry.msgid
    ]
    # polib leaves out what it cannot read in some places, without an error.
    messages = len(re.findall(r"^msgid[ \t]", text, re.MULTILINE))
    has_header = re.search(r'^msgid[ \t]+""[ \t]*\r?\n(?!")', text, re.MULTILINE) is not None
    rule = f"a catalogue with {messages} lines of msgid must have as many entries"
    require(messages == len(found) + has_header, rule, len(found) + has_header)
    return found


def message_document(message: str, language: str) -> Document:
    """A message as a document: as HTML if it has tags, or as lines of text."""
    # The target of a role is no tag: :ref:`text <target>`.
    has_tags = TAG.search(message) and not any("<" in code for code in RST.findall(message))
    document = read_document(message, "html" if has_tags else "text", language)
    parts = [part if isinstance(part, str) else with_rst(part) for part in document.parts]
    return Document(tuple(parts))


def with_rst(segment: Segment) -> Segment:
    """Marks what reStructuredText writes within a sentence."""
    marks = list(segment.marks)
    for match in RST.finditer(segment.text):
        start, end = match.span()
        if not any(start < mark.end and mark.start < end for mark in marks):
            marks.append(Mark(match[0], start, end))
    marks.sort(key=lambda mark: (mark.start, mark.end))
    return dataclasses.replace(segment, marks=tuple(marks))


def quoted(text: str) -> str:
    """Writes text as it stands between the quotes of a msgstr."""
    return polib.escape(text)
