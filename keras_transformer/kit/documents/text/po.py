"""Gettext catalogues (.po): fills in missing translations, and leaves the rest unchanged.

A translation is written into the empty msgstr, and no other byte changes. A plural entry gets its
singular in the first form and its plural in all others, or in the only one. Fuzzy and obsolete
entries contain human translations, and stay. Inline reStructuredText (roles, literals, references),
as in Sphinx catalogues, is not language. An entry with a doubtful translation is flagged as fuzzy.

polib treats text as a path if such a file exists, and drops entries that it cannot read; its writer
and Babel's wrap lines again.
"""

import dataclasses
import functools
import re
from collections.abc import Iterator

from keras_transformer.kit.documents.formats import read_document
from keras_transformer.kit.documents.tree.placeholders import with_conversions
from keras_transformer.kit.documents.tree.segment_builder import joined
from keras_transformer.kit.documents.tree.segments import (
    Document,
    Part,
    ReviewUnit,
    Segment,
    embedded,
)
from keras_transformer.support.errors import InputError, require

# ``literal``, :role:`target`, `reference`_ and |substitution|.
RST = re.compile(r"``.+?``|(?::[\w:+.-]+:)?`[^`]+`(?:__?)?|\|\w[^|]*\|_{0,2}", re.DOTALL)
LINE = re.compile(r'(?:(?P<key>msg\w+)(?P<form>\[\d+\])?\s*)?"(?P<text>(?:[^"\\]|\\.)*)"')
EMPTY = re.compile(r'(\s*msgstr(?:\[\d+\])?\s*")("\s*)')
# The keywords that may follow each part of a message; None is the beginning of an entry.
FOLLOWING = {
    None: ("msgctxt", "msgid"),
    "msgctxt": ("msgid",),
    "msgid": ("msgid_plural", "msgstr"),
    "msgid_plural": ("msgstr",),
    "msgstr": ("msgstr",),
}
ESCAPES = {"\\": "\\", '"': '"', "\t": "t", "\r": "r", "\n": "n", "\v": "v", "\b": "b", "\f": "f"}
_CHARACTERS = {letter: character for character, letter in ESCAPES.items()}
_WRITTEN = str.maketrans({character: f"\\{letter}" for character, letter in ESCAPES.items()})
FORMATS = {"c-format", "objc-format", "python-format", "php-format", "perl-format"}
TAG = re.compile(r"</?[A-Za-z][^<>]*>")


@dataclasses.dataclass
class Entry:
    """A message in a catalogue."""

    line: int  # the number of the first line of the entry, from 1
    flags: set[str] = dataclasses.field(default_factory=set)  # "fuzzy", "c-format"
    source: str = ""
    plural: str = ""  # empty if there is none
    target: str = ""  # empty if not translated; for plurals, all forms
    forms: list[int] = dataclasses.field(default_factory=list)  # line numbers of its msgstr

    @property
    def is_fuzzy(self) -> bool:
        """Whether its translation is marked as uncertain."""
        return "fuzzy" in self.flags

    @property
    def is_format(self) -> bool:
        """Whether it is a C or Python format string, in which each %s is a placeholder."""
        return not FORMATS.isdisjoint(self.flags)


def read(text: str, language: str) -> Document:
    """Reads a catalogue.

    The segments are the places of the translations, so their source is empty.

    Args:
        text: the catalogue.
        language: the language of the messages, which does not matter here.

    Raises:
        InputError: for a syntax error, naming the line.
    """
    lines = re.split(r"(?<=\n)", text)
    parts: list[Part] = []
    done = 0  # lines already in `parts`
    for entry in entries(text):
        if entry.target or entry.is_fuzzy:
            continue
        first, form = entry.line - 1, entry.forms[0] - 1
        head = "".join(lines[first:form])
        forms: list[Part] = []
        for number, line in enumerate(lines[form : entry.forms[-1]], start=form + 1):
            forms += _form(entry, number, line, language)
        unit = ReviewUnit(joined(forms), functools.partial(_written, head))
        parts += ["".join(lines[done:first]), unit]
        done = entry.forms[-1]
    parts.append("".join(lines[done:]))
    return Document(joined(parts))


def _form(entry: Entry, number: int, line: str, language: str) -> list[Part]:
    """Returns the parts of a line, which has a place for a translation if it is an empty msgstr."""
    empty = EMPTY.fullmatch(line)
    if empty is None or number not in entry.forms:
        return [line]
    # With several forms, the first is the singular; the only form of a language is the plural.
    is_singular = number == entry.forms[0] and (len(entry.forms) > 1 or not entry.plural)
    message = message_document(
        entry.source if is_singular else entry.plural, language, entry.is_format
    )
    return [empty[1], *embedded(message, quoted), empty[2]]


def _written(head: str, forms: str, doubt: float | None) -> str:
    """Writes an entry: the lines before its translations, and these."""
    return f"{head if doubt is None else _fuzzy(head)}{forms}"


def _fuzzy(head: str) -> str:
    """Adds the flag to the lines before the translations of an entry."""
    flags = re.search(r"^[ \t]*#,", head, re.MULTILINE)
    if flags is not None:
        return f"{head[: flags.end()]} fuzzy,{head[flags.end() :]}"
    place = re.search(r"^[ \t]*msg", head, re.MULTILINE).start()
    line_end = "\r\n" if "\r\n" in head else "\n"
    return f"{head[:place]}#, fuzzy{line_end}{head[place:]}"


def entries(text: str) -> list[Entry]:
    """Returns a catalogue's messages, except the header and obsolete ones.

    Raises:
        InputError: for a syntax error, naming the line.
    """
    return [entry for entry in _entries(text) if entry.source]


def _entries(text: str) -> Iterator[Entry]:
    entry, part = Entry(1), None
    for number, line in enumerate(map(str.strip, text.split("\n")), start=1):
        match = LINE.fullmatch(line)
        is_new = line.startswith("#") or (match and match["key"] in FOLLOWING[None])
        if part == "msgstr" and is_new:
            yield entry
            entry, part = Entry(number), None
        if line == "" or line.startswith("#"):
            if line.startswith("#~"):
                entry = Entry(number + 1)
            elif part is None and line == "":
                entry.line = number + 1
            elif line.startswith("#,"):
                entry.flags.update(map(str.strip, line[2:].split(",")))
            continue
        place = f"line {number}"
        if match is None:
            is_text = line.startswith(("msg", '"'))
            rule = "must have a text in quotes" if is_text else "must be a gettext catalogue"
            raise InputError(None, rule, line[:80] if is_text else repr(line[:80]), place)
        key = match["key"] or part
        fits = key in FOLLOWING[part] if match["key"] else part is not None
        require(fits, None, "must be a gettext catalogue", repr(line[:80]), place)
        part = key
        found = re.sub(r"\\(.)", _unescaped, match["text"])
        if part == "msgid":
            entry.source += found
        elif part == "msgid_plural":
            entry.plural += found
        elif part == "msgstr":
            entry.target += found
            entry.forms += [number] if match["key"] else []
    if part is not None:
        rule = "must begin a message with a msgstr"
        require(part == "msgstr", None, rule, "none", f"line {entry.line}")
        yield entry


def _unescaped(match: re.Match) -> str:
    return _CHARACTERS.get(match[1], match[0])


def message_document(message: str, language: str, is_format: bool) -> Document:
    """Reads a message as HTML if it has tags, and as lines of text otherwise."""
    # The target of a role is not a tag: :ref:`text <target>`.
    has_tags = TAG.search(message) and not any("<" in code for code in RST.findall(message))
    document = read_document(message, "html" if has_tags else "text", language)
    return Document(
        tuple(
            part if isinstance(part, str) else _with_code(part, is_format)
            for part in document.parts
        )
    )


def _with_code(segment: Segment, is_format: bool) -> Segment:
    """Marks inline reStructuredText, and the conversions in a format string.

    The segment has no source: it is the place of a translation.
    """
    segment = segment.with_marks([match.span() for match in RST.finditer(segment.text)])
    segment = with_conversions(segment) if is_format else segment
    return dataclasses.replace(segment, source="")


def quoted(text: str) -> str:
    """Escapes text for the quotes of a msgstr."""
    return text.translate(_WRITTEN)
