"""HTML: what a browser shows as text, and the attributes that it shows, are translated.

Python's own parser finds the tags; they are never written anew, but come back as they are in the
document, broken ones too. Elements that begin a block, such as `<p>` and `<td>`, begin a segment;
all others, such as `<b>` and `<my-icon>`, are marks within one.

Not translated: comments, scripts, styles, and all in elements of _KEPT and those with
translate="no" or the class notranslate. A superscript without letters or in square brackets, which
is the sign of a note or an exponent, stays at its word. What a document leaves open at its end,
such as a comment without an end, is not translated either: a browser does not show it. The
attribute `lang` stays.
"""

import html
import re
from collections.abc import Callable, Sequence
from html.parser import HTMLParser
from itertools import pairwise
from typing import NamedTuple

from keras_transformer.documents.segment_builder import OpenTags, SegmentBuilder, joined
from keras_transformer.documents.segments import Document, Parts, Piece, Segment, writing_with


def _names(names: str) -> frozenset[str]:
    return frozenset(names.split())


# Elements that begin and end a paragraph, and elements that only contain such ones.
_BLOCKS = _names(
    "address article aside blockquote body button caption center col colgroup datalist dd details "
    "dialog dir div dl dt fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 "
    "head header hgroup hr html input label legend li link main menu meta nav noframes noscript ol "
    "optgroup option p pre search section select summary table tbody td template textarea tfoot th "
    "thead title tr ul xmp"
)
# Elements that have no end tag.
_VOID = _names("area base br col embed frame hr img input link meta param source track wbr")
# Elements whose content is not translated; the first ones stand for words.
_KEPT_WORDS = _names("code kbd samp tt var")
_KEPT = _KEPT_WORDS | _names(
    "applet audio canvas iframe math noembed object plaintext pre script style svg textarea video "
    "xmp"
)
# The sign of a note, or an exponent: "1", "*", "[a]", "[note 2]", "-1". It is in few tags.
_NOTE = re.compile(r"[\W\d_]+|\s*\[[^\[\]]{1,20}\]\s*")
_NOTE_TAGS = 20
# The end tags of these may be left out: they end where one of those begins.
_ENDED_BY = {
    "p": _BLOCKS,
    "li": _names("li"),
    "dt": _names("dt dd"),
    "dd": _names("dt dd"),
    "td": _names("td th tr"),
    "th": _names("td th tr"),
    "tr": _names("tr"),
    "option": _names("option optgroup"),
}
# Attributes that are translated, and elements where they are not shown.
_TRANSLATED_ATTRIBUTES = ("alt", "title", "placeholder")
_WITHOUT_SHOWN_ATTRIBUTES = ("link", "style")

_SPACE = re.compile(r"([ \t\n\f\r]+)")
_ATTRIBUTE = re.compile(
    r"""(?P<name>[^\s"'<>/=]+)(?:\s*=\s*(?P<value>"[^"]*"|'[^']*'|[^\s"'=<>`]+))?"""
)
_TAG_NAME = re.compile(r"<[^\s/>]*")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "\N{NO-BREAK SPACE}": "&nbsp;"}


def _writing_with(entities: dict[str, str]) -> Callable[[Sequence[Piece]], str]:
    table = str.maketrans(entities)
    return writing_with(lambda text: text.translate(table))


_write_text = _writing_with(_ENTITIES)
_WRITE_VALUES = {  # of attributes, by their quotes
    '"': _writing_with(_ENTITIES | {'"': "&quot;"}),
    "'": _writing_with(_ENTITIES | {"'": "&#39;"}),
    "": _writing_with(_ENTITIES | {mark: f"&#{ord(mark)};" for mark in "\"'=` \t\n\f\r"}),
}


class Tag(NamedTuple):
    """A tag, or what stands between two tags."""

    kind: str  # "start", "end", "text", or "other": a comment, a declaration
    source: str
    name: str = ""  # of the element, in small letters
    attributes: Sequence[tuple[str, str | None]] = ()

    @property
    def has_content(self) -> bool:
        """Whether an end tag follows."""
        return self.kind == "start" and self.name not in _VOID and not self.source.endswith("/>")

    @property
    def begins_kept(self) -> bool:
        """Whether it begins what is not translated."""
        return self.kind == "start" and (self.name in _KEPT or self._forbids_translation)

    @property
    def stands_for_words(self) -> bool:
        """Whether the text in an element that is kept is a part of the sentence around it."""
        return self.name not in _KEPT or self.name in _KEPT_WORDS

    @property
    def _forbids_translation(self) -> bool:
        attributes = dict(self.attributes)
        translate = attributes.get("translate") or ""
        classes = attributes.get("class") or ""
        return translate.lower() == "no" or "notranslate" in classes.split()

    def parts(self) -> Parts:
        """Its source in parts, if it has attributes that are translated; () otherwise."""
        if self._forbids_translation or self.name in _WITHOUT_SHOWN_ATTRIBUTES:
            return ()
        if not any(name in _TRANSLATED_ATTRIBUTES and value for name, value in self.attributes):
            return ()
        parts = _parts_of_tag(self)
        return tuple(parts) if any(isinstance(part, Segment) for part in parts) else ()


def _parts_of_tag(tag: Tag) -> list[str | Segment]:
    matches = list(_ATTRIBUTE.finditer(tag.source, _TAG_NAME.match(tag.source).end()))
    names = [match["name"].lower() for match in matches]
    if names != [name for name, _ in tag.attributes]:  # a broken tag
        return [tag.source]
    parts: list[str | Segment] = []
    end = 0
    for match, name in zip(matches, names, strict=True):
        if name in _TRANSLATED_ATTRIBUTES and match["value"]:
            quote = _quote(match)
            start = match.start("value") + len(quote)
            parts.append(tag.source[end:start])
            end = match.end("value") - len(quote)
            builder = SegmentBuilder(_WRITE_VALUES[quote])
            _add_text(builder, tag.source[start:end])
            parts.extend(builder.parts())
    return [*parts, tag.source[end:]]


def _quote(attribute: re.Match) -> str:
    """The quotes of an attribute's value, if it has any."""
    first = attribute["value"][0]
    return first if first in "\"'" else ""


def read(text: str, language: str) -> Document:
    """Reads HTML, a page or a piece of one; the language does not matter."""
    return Document(joined(parts_of(text)))


def parts_of(text: str) -> list[str | Segment]:
    """Reads HTML, a page or a piece of one, into the parts of a document."""
    tags = tags_of(text)
    parts: list[str | Segment] = []
    builder = SegmentBuilder(_write_text)
    open_tags = OpenTags()
    number = 0
    while number < len(tags):
        tag = tags[number]
        end = number + 1
        if tag.name in _BLOCKS:
            parts.extend(builder.parts())
            builder = SegmentBuilder(_write_text)
        note_end = end_of_note(tags, number)
        if note_end is not None:
            end = note_end
            note = tags[number:end]
            source = "".join(inner.source for inner in note)
            builder.kept(source, text_of_note(note, builder.last_character))
        elif tag.begins_kept:
            end = end_of_kept(tags, number, open_tags)
            rest = "".join(inner.source for inner in tags[number + 1 : end])
            if tag.name in _BLOCKS:
                parts.extend([*(tag.parts() or [tag.source]), rest])
            else:
                add_kept(builder, tags[number:end])
        elif tag.name in _BLOCKS:
            parts.extend(tag.parts() or [tag.source])
        elif tag.kind == "text":
            _add_text(builder, tag.source)
        else:
            add_tag(builder, tag)
        if tag.has_content and not tag.begins_kept and note_end is None:
            open_tags.begin(tag.name)
        elif tag.kind == "end":
            open_tags.end(tag.name)
        number = end
    return parts + builder.parts()


def add_tag(builder: SegmentBuilder, tag: Tag) -> None:
    """Adds a tag to a segment."""
    if tag.name == "br":
        builder.space(tag.source)
    elif tag.has_content:
        builder.begin(tag.name, tag.source, tag.parts())
    elif tag.kind == "end":
        builder.end(tag.name, tag.source)
    else:
        builder.kept(tag.source, parts=tag.parts())


def add_kept(builder: SegmentBuilder, element: Sequence[Tag]) -> None:
    """Adds an element that is not translated to a segment."""
    first, *rest = element
    inner = "".join(tag.source for tag in rest)
    text = ""
    if first.stands_for_words:
        shown = "".join(html.unescape(tag.source) for tag in rest if tag.kind == "text")
        text = _SPACE.sub(" ", shown).strip(" ")
    parts = (*first.parts(), inner) if first.parts() else ()
    builder.kept(first.source + inner, text, parts)


def end_of_kept(tags: Sequence[Tag], first: int, open_tags: OpenTags) -> int:
    """The place after an element that is not translated.

    Args:
        tags: of a document.
        first: the place of the tag that begins the element.
        open_tags: the elements around it. The end of one of them ends this one, too.
    """
    name = tags[first].name
    within = OpenTags()
    for number in range(first, len(tags)):
        tag = tags[number]
        if tag.kind == "end" and tag.name in within:
            within.end(tag.name)
        elif tag.kind == "end" and tag.name in open_tags:
            return number
        elif tag.has_content:
            if within.names == [name] and tag.name in _ENDED_BY.get(name, ()):
                return number
            within.begin(tag.name)
        if not within.names:
            return number + 1
    return len(tags)


def end_of_note(tags: Sequence[Tag], first: int) -> int | None:
    """The place after the sign of a note or an exponent; None if none begins here.

    Args:
        tags: of a document.
        first: the place of the tag that may begin it.
    """
    if tags[first].name != "sup" or not tags[first].has_content:
        return None
    text = ""
    within = OpenTags()
    for number in range(first, min(first + _NOTE_TAGS, len(tags))):
        tag = tags[number]
        if tag.kind == "text":
            text += html.unescape(tag.source)
        elif tag.has_content and tag.name not in _BLOCKS:
            within.begin(tag.name)
        elif tag.kind == "end" and tag.name in within:
            within.end(tag.name)
        else:
            return None
        if not within.names:
            return number + 1 if _NOTE.fullmatch(text) else None
    return None


def text_of_note(element: Sequence[Tag], before: str) -> str:
    """What the sign of a note or an exponent reads as.

    A number directly after a word is read, as an exponent is a part of its word. All else is not:
    a sign after a full stop would hide where the sentence ends.

    Args:
        element: the superscript.
        before: the character before it; "" if there is none.
    """
    text = "".join(html.unescape(tag.source) for tag in element if tag.kind == "text").strip()
    return text if before.isalnum() and text.lstrip("+-−").isdigit() else ""


def _add_text(builder: SegmentBuilder, source: str) -> None:
    for number, piece in enumerate(_SPACE.split(source)):
        if number % 2:
            builder.space(piece)
        elif piece:
            builder.word(piece, html.unescape(piece))


def tags_of(text: str) -> list[Tag]:
    """Cuts HTML into tags and what is between them. Their sources together are the text."""
    return _Parser(text).tags()


class _Found(NamedTuple):
    """What the parser found."""

    start: int
    kind: str
    name: str = ""
    attributes: Sequence[tuple[str, str | None]] = ()
    text: str = ""  # what it reads as


class _Parser(HTMLParser):
    """Notes where everything begins."""

    def __init__(self, text: str):
        super().__init__(convert_charrefs=True)
        self._text = text
        # With a line end, the parser does not wait for the rest of an entity.
        self._fed = text + "\n"
        self._line_starts = [0, *(match.end() for match in re.finditer("\n", self._fed))]
        self._found = [_Found(0, "other")]

    def tags(self) -> list[Tag]:
        # `close` is not called: it would look for an end from every tag that has none, anew.
        self.feed(self._fed)
        self._note("other")  # what is left: a tag or a comment without an end
        self._found.append(_Found(len(self._text), "other"))
        tags = []
        for found, following in pairwise(self._found):
            source = self._text[found.start : following.start]
            if found.kind == "text":
                text = _without_silent_markup(source, found.text)
                tags += [Tag("text", text), Tag("other", source[len(text) :])]
            else:
                tags.append(Tag(found.kind, source, found.name, found.attributes))
        return [tag for tag in tags if tag.source]

    def _note(self, kind: str, name: str = "", attributes: Sequence = (), text: str = "") -> None:
        line, column = self.getpos()
        start = self._line_starts[line - 1] + column
        self._found.append(_Found(min(start, len(self._text)), kind, name, attributes, text))

    def handle_starttag(self, tag, attrs):
        self._note("start", tag, attrs)

    def handle_endtag(self, tag):
        self._note("end", tag)

    def handle_startendtag(self, tag, attrs):
        self._note("start", tag, attrs)

    def handle_data(self, data):
        self._note("text", text=data)

    def handle_comment(self, data):
        self._note("other")

    def handle_decl(self, decl):
        self._note("other")

    def handle_pi(self, data):
        self._note("other")

    def parse_html_declaration(self, i):
        """A comment up to the next >: but for <!doctype>, HTML has no declarations."""
        return self.parse_bogus_comment(i)


def _without_silent_markup(source: str, text: str) -> str:
    """Text without what follows it and is not reported by the parser, as </> is not."""
    end = source.find("<", 1)
    return source if end < 0 or html.unescape(source) == text else source[:end]
