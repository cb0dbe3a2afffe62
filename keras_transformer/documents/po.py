"""Catalogues of gettext (.po): entries without a translation are filled, all else stays as it is.

polib reads the catalogue. Its own writer would break the lines of every entry anew; so a
translation is put into the empty msgstr where it stands, and no other byte changes. An entry of a
plural has its singular in the first form and its plural in all others, or in the only one. Fuzzy
and obsolete entries have text of people in them and stay. What reStructuredText writes within a
sentence (roles, literals, references), as the catalogues of Sphinx have it, is no language.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

import polib

from keras_transformer.documents.formats import read_document
from keras_transformer.documents.placeholders import with_conversions
from keras_transformer.documents.segments import Document, Segment, embedded
from keras_transformer.errors import InputError, reason, require

# ``literal``, :role:`target`, `reference`_ and |substitution|.
RST = re.compile(r"``.+?``|(?::[\w:+.-]+:)?`[^`]+`(?:__?)?|\|\w[^|]*\|_{0,2}", re.DOTALL)
FORM = "msgstr"  # begins a translation, or a form of one: msgstr[0]
EMPTY = re.compile(rf'(\s*{FORM}(?:\[\d+\])?\s*")("\s*)')
QUOTED = re.compile(r'(?:msg[\w\[\]]+\s*)?"(?:[^"\\]|\\.)*"')
FORMATS = {"c-format", "objc-format", "python-format", "php-format", "perl-format"}
TAG = re.compile(r"</?[A-Za-z][^<>]*>")


class Entry(NamedTuple):
    """A message of a catalogue."""

    line: int  # the number of the first line of the entry, from 1
    source: str
    plural: str  # empty where there is none
    target: str  # empty where it is not translated; of plurals, the first form
    forms: tuple[int, ...]  # the numbers of its lines of msgstr; of plurals, several
    is_fuzzy: bool
    is_format: bool  # of C or Python: each %s in it is a placeholder


def read(text: str, language: str) -> Document:
    """Reads a catalogue.

    The parts to be translated are the places of the translations, so their source is empty.

    Args:
        text: the catalogue.
        language: of the messages; they are not cut here, so it does not matter.

    Raises:
        InputError: for a syntax error, naming the line.
    """
    lines = re.split(r"(?<=\n)", text)
    parts: list[str | Segment] = []
    done = 0  # lines that are in `parts`
    for entry in entries(text):
        if entry.target or entry.is_fuzzy:
            continue
        for number in entry.forms:
            place = number - 1
            empty = EMPTY.fullmatch(lines[place])
            if empty is None:  # a form that has been translated
                continue
            # The first form of several is the singular; a language with one form has plurals only.
            is_singular = number == entry.forms[0] and (len(entry.forms) > 1 or not entry.plural)
            message = entry.source if is_singular else entry.plural
            parts += ["".join(lines[done:place]), empty[1]]
            parts += embedded(message_document(message, language, entry.is_format), quoted)
            parts.append(empty[2])
            done = number
    parts.append("".join(lines[done:]))
    return Document(tuple(part for part in parts if part != ""))


class _Lines(str):
    """A catalogue as polib takes one as a text: by its lines, which end at "\\n" only.

    polib opens the file whose path is the text, if there is one. So this is the text "\\0" for all
    who do not ask for its lines: no path has this character in it.
    """

    def __new__(cls, text: str):
        self = super().__new__(cls, "\0")
        self.lines = text.split("\n")
        return self

    def splitlines(self, keepends: bool = False) -> list[str]:
        return self.lines


def entries(text: str) -> list[Entry]:
    """The messages of a catalogue, without its header and obsolete ones.

    Raises:
        InputError: for a syntax error, naming the line.
    """
    try:
        catalogue = polib.pofile(_Lines(text), encoding="utf-8")
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise _syntax_error(reason(error), text) from None
    lines = [line.strip() for line in text.split("\n")]
    for number, line in enumerate(lines, start=1):
        if line.startswith(("msg", '"')):  # polib takes any characters for the quotes
            is_quoted = QUOTED.fullmatch(line)
            require(is_quoted, None, "must have a text in quotes", line[:80], f"line {number}")
    found: list[Entry] = []
    starts = [max(entry.linenum, 1) for entry in catalogue]  # polib gives 0 for the first entry
    ends = [*starts[1:], len(lines) + 1]
    for entry, start, end in zip(catalogue, starts, ends, strict=True):
        if entry.obsolete or not entry.msgid:
            continue
        forms = _forms(lines, start, end)
        require(forms, None, f"must begin a message that has a {FORM}", "none", f"line {start}")
        target = entry.msgstr or "".join(entry.msgstr_plural.values())
        is_format = not FORMATS.isdisjoint(entry.flags)
        texts = (entry.msgid, entry.msgid_plural, target)
        found.append(Entry(start, *texts, tuple(forms), entry.fuzzy, is_format))
    # polib leaves out what it cannot read in some places, without an error.
    messages = sum(re.match(r"msgid\s", line) is not None for line in lines)
    has_header = re.search(r'^msgid\s+""\n(?!")', "\n".join(lines), re.MULTILINE) is not None
    count = len(found) + has_header
    rule = f"must have as many entries as lines of msgid, {messages}"
    require(count == messages, None, rule, count, "the document")
    return found


def _syntax_error(message: str, text: str) -> InputError:
    """An error of polib: "Syntax error in po file (line 7): WHY", or without why, or another."""
    rule = "must be a catalogue of gettext"
    found = re.search(r"\(line (\d+)\)(?:: (.+))?$", message)
    if found is None:
        return InputError(None, rule, message, "the document")
    line = text.split("\n")[int(found[1]) - 1]
    return InputError(None, rule, found[2] or repr(line[:80]), f"line {found[1]}")


def _forms(lines: Sequence[str], start: int, end: int) -> list[int]:
    """The numbers of the lines of msgstr of an entry, which are all before its next other line.

    Args:
        lines: of the catalogue, without spaces around them.
        start: the number of the first line of the entry.
        end: the number of the first line of the next one.
    """
    forms: list[int] = []
    for number in range(start, end):
        line = lines[number - 1]
        if line.startswith(FORM):
            forms.append(number)
        elif forms and line and not line.startswith('"'):
            break
    return forms


def message_document(message: str, language: str, is_format: bool) -> Document:
    """A message as a document: as HTML if it has tags, or as lines of text."""
    # The target of a role is no tag: :ref:`text <target>`.
    has_tags = TAG.search(message) and not any("<" in code for code in RST.findall(message))
    document = read_document(message, "html" if has_tags else "text", language)
    return Document(
        tuple(
            part if isinstance(part, str) else _with_code(part, is_format)
            for part in document.parts
        )
    )


def _with_code(segment: Segment, is_format: bool) -> Segment:
    """Marks what reStructuredText writes within a sentence, and the conversions of a format."""
    segment = segment.with_marks([match.span() for match in RST.finditer(segment.text)])
    return with_conversions(segment) if is_format else segment


def quoted(text: str) -> str:
    """Writes text as it stands between the quotes of a msgstr."""
    return polib.escape(text)
