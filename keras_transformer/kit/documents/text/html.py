"""HTML: text and attributes that a browser shows are translated.

Tags keep their source, even broken ones. Block elements, such as `<p>` and `<td>`, begin a segment;
all others, such as `<b>` and `<my-icon>`, are elements within one.

Not translated: comments, scripts, styles, and the content of elements that are in _KEPT or have
translate="no" or the class notranslate. Two kinds of text in such elements are translated: text in
drawings (SVG), and what is shown in place of a film or a sound. A superscript without letters or in
square brackets is a note mark or an exponent, and stays at its word. Markup left open at the end of
a document, such as a comment, is not translated either: browsers do not show it. The attribute
`lang` stays.

A page may be XML, which has no named entities such as &nbsp;: then text is written as XML.

tree-sitter's grammar takes `a < b` for a tag, loses spaces, and finds no tags after an error;
html.parser gives no positions, and changes in patch releases.
"""

import html
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from keras_transformer.kit.documents.text import xml_source
from keras_transformer.kit.documents.tree.notes import is_note, text_of_note
from keras_transformer.kit.documents.tree.segment_builder import (
    Found,
    OpenTags,
    SegmentBuilder,
    joined,
    with_found,
)
from keras_transformer.kit.documents.tree.segments import (
    Document,
    Parts,
    Piece,
    Segment,
    has_language,
    writing_with,
)


def _names(names: str) -> frozenset[str]:
    return frozenset(names.split())


# Elements that begin and end a paragraph, and their containers.
_BLOCKS = _names(
    "address article aside blockquote body button caption center col colgroup datalist dd details "
    "dialog dir div dl dt fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 "
    "head header hgroup hr html input label legend li link main menu meta nav noframes noscript ol "
    "optgroup option p pre search section select summary table tbody td template textarea tfoot th "
    "thead title tr ul xmp"
)
# Elements without an end tag.
_VOID = _names("area base br col embed frame hr img input link meta param source track wbr")
# Elements whose content is only shown if they cannot be.
_WITH_FALLBACK = _names("applet audio canvas object video")
# Elements whose content is not translated; the first set stands for words.
_KEPT_WORDS = _names("code kbd samp tt var")
_KEPT = (
    _KEPT_WORDS
    | _WITH_FALLBACK
    | _names("iframe math noembed plaintext pre rp rt rtc script style svg textarea xmp")
)
# Kinds of untranslated text that a reader sees, for Document.left.
_LEFT_KINDS = {
    **dict.fromkeys(_KEPT_WORDS | {"pre", "xmp", "plaintext"}, "code"),
    "math": "equation",
    "textarea": "field",
    "rt": "ruby",
}
_DRAWN = _names("text title desc")  # elements of a drawing that contain only text
# Elements that only format their words, if they have no other attributes than these.
_FORMATTING = _names("b big cite em font i mark s small span strike strong sub sup u")
_LOOKS = _names("class color dir face lang size style xml:lang")
_SCRIPTS = _names("sub sup")
_NOTE_TAGS = 20  # at most, in a note mark or an exponent
# Elements whose end tag is optional, and the tags that end them.
_ENDED_BY = {
    "p": _BLOCKS,
    "li": _names("li"),
    "dt": _names("dt dd"),
    "dd": _names("dt dd"),
    "td": _names("td th tr"),
    "th": _names("td th tr"),
    "tr": _names("tr"),
    "option": _names("option optgroup"),
    **dict.fromkeys(("rt", "rp"), _names("rt rp")),
}
# Translated attributes, and elements that do not show them.
_TRANSLATED_ATTRIBUTES = ("alt", "title", "placeholder")
_WITHOUT_SHOWN_ATTRIBUTES = ("link", "style")

_S = r" \t\n\f\r"
_SPACE = re.compile(rf"[{_S}]+")
# All white space but for single spaces between words.
_SPACE_TO_COLLAPSE = re.compile(rf"(\A[{_S}]+|[{_S}]+\Z|[{_S}]{{2,}}|(?! )[{_S}])")
_VALUE = rf""""[^"]*(?:"|\Z)|'[^']*(?:'|\Z)|[^{_S}"'>][^{_S}>]*"""
_ATTRIBUTE = re.compile(rf"(?P<name>[^{_S}/>][^{_S}/>=]*)(?:[{_S}]*=[{_S}]*(?P<value>{_VALUE}))?")
# Tags and comments by the standard (WHATWG HTML, 13.2.5); the rest is text.
_MARKUP = re.compile(
    rf"""<!--(?:-?>|.*?(?:--!?>|\Z))
    | <(?:[!?]|/[^A-Za-z>])[^>]*>? | </>
    | <(?P<slash>/?)(?P<tag>[A-Za-z][^{_S}/>]*)
      (?P<attributes>(?:[{_S}/]+|{_ATTRIBUTE.pattern})*+)(?P<end>>)?
    """,
    re.VERBOSE | re.DOTALL,
)
# Elements whose content is text, without tags.
_RAW = _names("iframe noembed noframes script style textarea title xmp")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


def _writing_with(entities: dict[str, str]) -> Callable[[Sequence[Piece]], str]:
    table = str.maketrans(entities)
    return writing_with(lambda text: text.translate(table))


write_text = _writing_with(_ENTITIES | {"\N{NO-BREAK SPACE}": "&nbsp;"})
_WRITE_VALUES = {  # for attribute values, by their quotes
    '"': _writing_with(_ENTITIES | {'"': "&quot;"}),
    "'": _writing_with(_ENTITIES | {"'": "&#39;"}),
    "": _writing_with(_ENTITIES | {mark: f"&#{ord(mark)};" for mark in "\"'=` \t\n\f\r"}),
}


class Tag(NamedTuple):
    """A tag, or the text between two tags."""

    kind: str  # "start", "end", "text", or "other": a comment, a declaration
    source: str
    name: str = ""  # of the element, in lower case
    attributes: Sequence[tuple[str, str | None]] = ()

    @property
    def has_content(self) -> bool:
        """Whether an end tag follows."""
        return self.kind == "start" and self.name not in _VOID and not self.source.endswith("/>")

    @property
    def begins_kept(self) -> bool:
        """Whether it begins an element that is not translated."""
        return self.kind == "start" and (self.name in _KEPT or self._forbids_translation)

    @property
    def stands_for_words(self) -> bool:
        """Whether the untranslated element's text is part of the surrounding sentence."""
        return self.name not in _KEPT or self.name in _KEPT_WORDS

    @property
    def is_formatting(self) -> bool:
        """Whether it only formats the words in it: links and scripts do not refer to it."""
        return self.name in _FORMATTING and all(name in _LOOKS for name, _ in self.attributes)

    @property
    def _forbids_translation(self) -> bool:
        attributes = dict(self.attributes)
        translate = attributes.get("translate") or ""
        classes = attributes.get("class") or ""
        return translate.lower() == "no" or "notranslate" in classes.split()

    @property
    def has_fallback(self) -> bool:
        """Whether its content is translated, but by itself."""
        return self.name in _WITH_FALLBACK and not self._forbids_translation

    @property
    def left_kind(self) -> str | None:
        """The kind of untranslated text in the element, if a reader sees it."""
        return "protected" if self._forbids_translation else _LEFT_KINDS.get(self.name)

    def parts(self) -> Parts:
        """Returns its source in parts if it has translated attributes; otherwise ()."""
        if self._forbids_translation or self.name in _WITHOUT_SHOWN_ATTRIBUTES:
            return ()
        if not any(name in _TRANSLATED_ATTRIBUTES and value for name, value in self.attributes):
            return ()
        parts = with_found(lambda start, end: self.source[start:end], _values_in(self))
        return parts if has_language(parts) else ()


def _values_in(tag: Tag) -> Iterator[Found]:
    """Yields the values of translated attributes."""
    for match in _ATTRIBUTE.finditer(tag.source, 1 + len(tag.name)):
        if match["name"].lower() in _TRANSLATED_ATTRIBUTES and match["value"]:
            quote = _quote(match)
            start, end = match.start("value") + len(quote), match.end("value") - len(quote)
            builder = SegmentBuilder(_WRITE_VALUES[quote])
            add_text(builder, tag.source[start:end])
            yield Found(start, end, builder.parts())


def _quote(attribute: re.Match) -> str:
    """Returns the quotes around an attribute's value, or ""."""
    first = attribute["value"][0]
    return first if first in "\"'" else ""


def read(text: str, language: str) -> Document:
    """Reads an HTML page or fragment; the language does not matter."""
    left: Counter[str] = Counter()
    return Document(joined(parts_of(text, left)), left=left)


def parts_of(text: str, left: Counter[str], is_xml: bool = False) -> list[str | Segment]:
    """Reads an HTML page or fragment into the parts of a document.

    Args:
        text: the page.
        left: the counts of untranslated pieces, to which its own are added.
        is_xml: whether the page is XML even if it does not say so.
    """
    tags = tags_of(text)
    write = xml_source.write_text if is_xml or _is_xml(tags) else write_text
    return _parts_of_tags(tags, left, write)


def _parts_of_tags(
    tags: Sequence[Tag],
    left: Counter[str],
    write: Callable[[Sequence[Piece]], str],
    is_fallback: bool = False,
) -> list[str | Segment]:
    """Returns the parts of a page, or of what is shown in place of an element in it.

    In the latter, further such elements are blocks, so the depth of the recursion is two.
    """
    blocks = _BLOCKS | _WITH_FALLBACK if is_fallback else _BLOCKS
    parts: list[str | Segment] = []
    builder = SegmentBuilder(write, has_lists=True)
    open_tags = OpenTags()
    number = 0
    while number < len(tags):
        tag = tags[number]
        end = number + 1
        is_kept = tag.begins_kept and not (is_fallback and tag.has_fallback)
        if tag.name in blocks:
            parts.extend(builder.parts())
            builder = SegmentBuilder(write, has_lists=True)
        note_end = end_of_note(tags, number)
        if note_end is not None:
            end = note_end
            note = tags[number:end]
            source = "".join(inner.source for inner in note)
            builder.kept(source, text_of_note(shown(note), builder.last_character))
        elif is_kept:
            end = end_of_kept(tags, number, open_tags)
            inner = tags[number + 1 : end]
            if tag.left_kind is not None and any(map(str.isalpha, shown(inner))):
                left[tag.left_kind] += 1
            within = _parts_within(tags[number:end], left, write)
            if has_language(within):
                builder.kept("".join(one.source for one in tags[number:end]), parts=within)
            elif tag.name in blocks:
                rest = "".join(one.source for one in inner)
                parts.extend([*(tag.parts() or [tag.source]), rest])
            else:
                add_kept(builder, tags[number:end])
        elif tag.name in blocks:
            parts.extend(tag.parts() or [tag.source])
        elif tag.kind == "text":
            add_text(builder, tag.source)
        else:
            add_tag(builder, tag)
        if tag.has_content and not is_kept and note_end is None:
            open_tags.begin(tag.name)
        elif tag.kind == "end":
            open_tags.end(tag.name)
        number = end
    return parts + builder.parts()


def _is_xml(tags: Sequence[Tag]) -> bool:
    """Whether a page is XML: it declares that, or the namespace of its root element."""
    roots = (tag for tag in tags if tag.kind == "start")
    root = next(roots, None)
    is_declared = bool(tags) and tags[0].source.startswith("<?xml")
    return is_declared or (root is not None and "xmlns" in dict(root.attributes))


def _parts_within(
    element: Sequence[Tag], left: Counter[str], write: Callable[[Sequence[Piece]], str]
) -> Parts:
    """Returns the source of a drawing, or of an element with fallback, in parts; otherwise ()."""
    first, *inner = element
    if first.has_fallback:
        fallback = _parts_of_tags(inner, left, write, is_fallback=True)
        return joined([*(first.parts() or [first.source]), *fallback])
    if first.name == "svg" and first.left_kind is None:
        return _parts_of_drawing(element, write)
    return ()


def _parts_of_drawing(tags: Sequence[Tag], write: Callable[[Sequence[Piece]], str]) -> Parts:
    """Returns the source of a drawing in parts."""
    parts: list[str | Segment] = []
    number = 0
    while number < len(tags):
        parts.append(tags[number].source)
        end = number + 1
        if tags[number].name in _DRAWN and tags[number].has_content:
            end = end_of_kept(tags, number, OpenTags())
            builder = SegmentBuilder(write)
            for tag in tags[number + 1 : end]:
                if tag.kind == "text":
                    add_text(builder, tag.source)
                else:
                    add_tag(builder, tag)
            parts += builder.parts()
        number = end
    return joined(parts)


def add_tag(builder: SegmentBuilder, tag: Tag) -> None:
    """Adds a tag to a segment."""
    if tag.name == "br":
        builder.space(tag.source)
    elif tag.has_content:
        is_script = tag.is_formatting and tag.name in _SCRIPTS
        builder.begin(tag.name, tag.source, tag.parts(), tag.is_formatting, is_script)
    elif tag.kind == "end":
        builder.end(tag.name, tag.source)
    else:
        builder.kept(tag.source, parts=tag.parts())


def add_kept(builder: SegmentBuilder, element: Sequence[Tag]) -> None:
    """Adds an element that is not translated to a segment."""
    first, *rest = element
    inner = "".join(tag.source for tag in rest)
    text = _SPACE.sub(" ", shown(rest)).strip(" ") if first.stands_for_words else ""
    parts = (*first.parts(), inner) if first.parts() else ()
    builder.kept(first.source + inner, text, parts)


def end_of_kept(tags: Sequence[Tag], first: int, open_tags: OpenTags) -> int:
    """Returns the index after an untranslated element.

    Args:
        tags: the document's tags.
        first: the index of the tag that begins the element.
        open_tags: the elements around it, whose ends also end this one.
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
    """Returns the index after a note mark or an exponent; None if none begins here.

    Args:
        tags: the document's tags.
        first: the index of the tag that may begin it.
    """
    if tags[first].name != "sup" or not tags[first].has_content:
        return None
    element = tags[first : first + _NOTE_TAGS]
    element = element[: end_of_kept(element, 0, OpenTags())]
    text = shown(element)
    is_whole = (element[-1].kind, element[-1].name) == ("end", "sup")
    has_block = any(tag.name in _BLOCKS for tag in element)
    end = first + len(element)
    before, after = shown(tags[max(first - 1, 0) : first])[-1:], shown(tags[end : end + 1])[:1]
    return end if is_whole and not has_block and is_note(text, before, after) else None


def shown(tags: Sequence[Tag]) -> str:
    """Returns the visible text among tags."""
    return "".join(html.unescape(tag.source) for tag in tags if tag.kind == "text")


def add_text(builder: SegmentBuilder, source: str) -> None:
    """Adds text, collapsing white space."""
    for number, piece in enumerate(_SPACE_TO_COLLAPSE.split(source)):
        if number % 2:
            builder.space(piece)
        elif piece:
            builder.word(piece, html.unescape(piece))


def tags_of(text: str) -> list[Tag]:
    """Splits HTML into tags and the text between them. Their sources add up to the input.

    Equal tags share their strings, as a book has very many.
    """
    tags: list[Tag] = []
    end = 0
    while (match := _MARKUP.search(text, end)) is not None:
        if end < match.start():
            tags.append(Tag("text", text[end : match.start()]))
        end = match.end()
        if match["end"] is None:
            tags.append(Tag("other", match[0]))
            continue
        name = sys.intern(match["tag"].lower())
        kind = "end" if match["slash"] else "start"
        attributes = _attributes(match["attributes"]) or ()
        tags.append(Tag(kind, sys.intern(match[0]), name, attributes))
        if name in _RAW and kind == "start" and not match[0].endswith("/>"):
            close = re.compile(rf"</{name}(?=[{_S}/>])|\Z", re.IGNORECASE).search(text, end)
            if end < close.start():
                tags.append(Tag("text" if close[0] else "other", text[end : close.start()]))
            end = close.start()
    if end < len(text):
        tags.append(Tag("text", text[end:]))
    return tags


def _attributes(source: str) -> list[tuple[str, str | None]]:
    """Returns the names and values of attributes; None for a name without a value."""
    return [
        (match["name"].lower(), match["value"] and html.unescape(_unquoted(match["value"])))
        for match in _ATTRIBUTE.finditer(source)
    ]


def _unquoted(value: str) -> str:
    return value[1:-1] if value[0] in "\"'" else value
