r"""Markdown: CommonMark with tables, ~~strikethrough~~ and common extensions.

markdown-it-py parses the document, and everything not translated keeps its source. As
markdown-it-py reports a block's lines, but not the positions within them, its rules are wrapped
here to note where the content of each line begins, after "> " and the like, and where each inline
token ends. Everything else is text, character by character.

Paragraphs, headings, table cells and alternative texts of images are segments. Emphasis, links,
code spans, tags and line breaks are marks within them. HTML blocks are read as HTML. Code blocks,
link definitions, titles of links, and front matter (between lines of --- or +++ at the beginning)
stay as they are, and so do common extensions: [^1], the [x] of a task, [!NOTE], $formulas$,
{#names}, {{templates}}, :smile:, [[Wiki Link]], lines with ::: or !!!, and imports.
"""

import dataclasses
import functools
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from markdown_it import MarkdownIt, rules_block, rules_inline
from markdown_it.common.utils import normalizeReference
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from keras_transformer.kit.documents.text import html
from keras_transformer.kit.documents.tree.notes import text_of_note
from keras_transformer.kit.documents.tree.segment_builder import (
    Found,
    OpenTags,
    SegmentBuilder,
    with_found,
)
from keras_transformer.kit.documents.tree.segments import (
    Document,
    Mark,
    MarkKind,
    Parts,
    Piece,
    Segment,
)

_MAX_NESTING = 40  # blocks and brackets; anything deeper is not translated

_LINE_END = re.compile(r"\r\n?|\n")
# White space but for single spaces between words; a URL.
_SPACE_OR_URL = re.compile(
    r"(\A[ \t]+|[ \t]+\Z|[ \t]{2,}|\t|(?:https?://|www\.)[^\s<>\[\]`*|]*[\w/])"
)
_FRONT_MATTER = re.compile(r"\ufeff?(?:(---|\+\+\+)[ \t]*\n(?:.*\n)*?\1[ \t]*(?:\n|\Z))?")

# Extensions that are not language; the first pattern's stand for words.
_ADDED_WORDS = re.compile(
    r"""\{\{[^{}\n]*\}\} | \$\{[^{}\n]*\}  # a template
    | \[\[[^\[\]\n]+\]\](?![\[(])  # a link of a wiki
    | \$\$[^$`]+\$\$ | \$(?![\s$])[^$`\n]*(?<![\s\\])\$(?!\d)  # a formula
    """,
    re.VERBOSE,
)
_ADDED = re.compile(
    r"""\[\^[^\[\]\s]+\]:?  # a footnote
    | \{[:\#.%][^{}\n]*\}  # {#name}, {% tag %}
    | (?<![\w:]):[a-z+-][\w+-]*:(?![\w:])  # :smile:
    """,
    re.VERBOSE,
)
_ADDED_AT_LINE_START = re.compile(
    r"""\[[ xX]\](?=\s)  # a task
    | \[![A-Za-z]+\][+-]?  # > [!NOTE]
    | (?:import|export)[ ][^\n]*\bfrom[ ]*["'][^\n]* | import[ ]*["'][^\n]*  # MDX
    | export[ ](?:const|let|default|function)\b[^\n]*
    | :::[^\n]* | (?:!!!|\?\?\?\+?)[ ]\w[^\n]*  # around a box
    """,
    re.VERBOSE,
)


def read(text: str, language: str) -> Document:
    """Reads Markdown; the language does not matter."""
    source = _Source(text)
    begin = _FRONT_MATTER.match(source.text).end()
    found: dict[str, dict] = {}
    tokens = _parser().parse(source.text[begin:], found)
    left = Counter(code=sum(map(_is_code, _with_children(tokens))))
    blocks = _blocks(tokens, source, begin, found.get("references", {}), left)
    return Document(with_found(source.original, blocks, end=len(source.text)), left=left)


def _with_children(tokens: Sequence[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from token.children or ()


def _is_code(token: Token) -> bool:
    is_code = token.type in ("fence", "code_block", "code_inline")
    return is_code and any(map(str.isalpha, token.content))


class _Source:
    """A document, and its text for the parser: with uniform line ends, and without NUL."""

    def __init__(self, document: str):
        self._document = document
        self.text = _LINE_END.sub("\n", document).replace("\0", "\ufffd")
        self._line_starts = [0, *(match.end() for match in re.finditer("\n", self.text))]
        self._document_starts = [0, *(match.end() for match in _LINE_END.finditer(document))]

    def line(self, place: int) -> int:
        """Returns the line number of a place in the text."""
        return bisect_right(self._line_starts, place) - 1

    def line_start(self, line: int) -> int:
        """Returns where a line begins; the end of the text for the line after the last."""
        return self._line_starts[line] if line < len(self._line_starts) else len(self.text)

    def original(self, begin: int, end: int) -> str:
        """Returns the document's source for text[begin:end]."""
        return self._document[self._place(begin) : self._place(end)]

    def _place(self, place: int) -> int:
        line = self.line(place)
        return self._document_starts[line] + place - self._line_starts[line]


# ---- Positions of tokens ----------------------------------------------------------------------


@functools.cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"maxNesting": _MAX_NESTING})
    parser.enable(["table", "strikethrough"])
    parser.disable("text_join")  # it would merge \\* and &amp; into the text around them
    for name, rule, terminated in (
        ("table", rules_block.table, ["paragraph", "reference"]),
        ("heading", rules_block.heading, ["paragraph", "reference", "blockquote"]),
        ("lheading", rules_block.lheading, []),
        ("paragraph", rules_block.paragraph, []),
    ):
        parser.block.ruler.at(name, _noting_lines(rule), {"alt": terminated})
    for name, rule in (
        ("newline", rules_inline.newline),
        ("escape", rules_inline.escape),
        ("backticks", rules_inline.backtick),
        ("link", rules_inline.link),
        ("image", rules_inline.image),
        ("autolink", rules_inline.autolink),
    ):
        parser.inline.ruler.at(name, _noting_end(rule))
    parser.inline.ruler.before("text", "added", _noting_end(_added))
    return parser


def _noting_lines(rule: Callable) -> Callable:
    """Wraps a block rule to set `meta["starts"]`: where each line's content begins."""

    def noting(state: StateBlock, first_line: int, last_line: int, silent: bool) -> bool:
        before = len(state.tokens)
        matched = rule(state, first_line, last_line, silent)
        for token in state.tokens[before:]:
            if token.type == "inline":
                lines = range(*token.map)
                token.meta["starts"] = [state.bMarks[line] + state.tShift[line] for line in lines]
        return matched

    return noting


def _noting_end(rule: Callable) -> Callable:
    """Wraps an inline rule to set `meta["end"]` of its last token: where the rule stopped."""

    def noting(state: StateInline, silent: bool) -> bool:
        before = len(state.tokens)
        matched = rule(state, silent)
        if len(state.tokens) > before:
            state.tokens[-1].meta["end"] = state.pos
        return matched

    return noting


def _added(state: StateInline, silent: bool) -> bool:
    """An inline rule for extensions."""
    words = _ADDED_WORDS.match(state.src, state.pos, state.posMax)
    match = words or _ADDED.match(state.src, state.pos, state.posMax)
    if not match and _at_line_start(state):
        match = _ADDED_AT_LINE_START.match(state.src, state.pos, state.posMax)
    if not match:
        return False
    if not silent:
        token = state.push("added", "", 0)
        token.content = match[0] if words else ""
    state.pos = match.end()
    return True


def _at_line_start(state: StateInline) -> bool:
    if state.pos == 0:
        return True
    after_break = state.tokens and state.tokens[-1].type in ("softbreak", "hardbreak")
    return bool(after_break and not state.pending)


# ---- Blocks -----------------------------------------------------------------------------------


def _blocks(
    tokens: Sequence[Token],
    source: _Source,
    begin: int,
    references: dict[str, Any],
    left: Counter[str],
) -> Iterator[Found]:
    """Returns the blocks that contain language, in order.

    Args:
        tokens: the parser's tokens.
        source: the document.
        begin: where the parser began in the text.
        references: the link definitions by normalized name.
        left: the counts of untranslated pieces, to which those in HTML are added.
    """
    first_line = source.line(begin)
    cell_end = 0  # of the previous table cell
    for opening, token in zip([None, *tokens], tokens, strict=False):
        if token.type == "html_block":
            first, last = (source.line_start(first_line + line) for line in token.map)
            if _without_indentation(source.text[first:last]) == _without_indentation(token.content):
                yield Found(first, last, html.parts_of(source.original(first, last), left))
        elif token.type == "inline" and token.content:
            starts = [begin + start for start in token.meta["starts"]]
            if opening.type in ("th_open", "td_open"):
                places = _places_in_cell(token.content, source.text, max(cell_end, starts[0]))
                cell_end = places(len(token.content))
                write = _Writer(references, in_cell=True)
            else:
                if opening.markup.startswith("#"):
                    starts[0] += len(opening.markup)
                places = _places_in_lines(
                    token.content, _starts_of_content(token.content, starts, source)
                )
                write = _Writer(references)
            inline = _Inline(token.content, places, source, write)
            yield Found(places(0), places(len(token.content)), inline.parts(token.children))


def _without_indentation(lines: str) -> str:
    return re.sub(r"^[ \t]+", "", lines, flags=re.MULTILINE).rstrip("\n")


def _starts_of_content(content: str, starts: Sequence[int], source: _Source) -> list[int]:
    """Finds where the lines of a block's content begin in the text.

    The parser strips white space before the content, including Unicode's and whole lines. Which
    characters it strips depends on its version, but the content never begins with one.

    Args:
        content: the block's content.
        starts: where each line of the block begins in the text, without indentation.
        source: the document.
    """
    for number, start in enumerate(starts):
        line_end = source.line_start(source.line(start) + 1)
        first = source.text.find(content[0], start, line_end)
        if first >= 0:
            return [first, *starts[number + 1 :]]
    raise AssertionError("the content of a block is in its lines")


def _places_in_lines(content: str, starts: Sequence[int]) -> Callable[[int], int]:
    """Returns a function from offsets in a block's content to places in the text.

    Args:
        content: the block's content, with its line ends.
        starts: where each of its lines begins in the text, without indentation.
    """
    offsets = [0, *(match.end() for match in re.finditer(r"\n[ \t]*", content))]
    return functools.partial(_place, offsets, starts)


def _places_in_cell(content: str, text: str, begin: int) -> Callable[[int], int]:
    """Like `_places_in_lines`, for a table cell, whose | is written \\|.

    Args:
        content: the cell's content.
        text: the document's text.
        begin: a place in the text with only spaces and | before the cell.
    """
    start = text.index(content.replace("|", "\\|"), begin)
    offsets = [0, *(match.end() for match in re.finditer(r"\|", content))]
    starts = [start + offset + number for number, offset in enumerate(offsets)]
    return functools.partial(_place, offsets, starts)


def _place(offsets: Sequence[int], starts: Sequence[int], offset: int) -> int:
    """Returns the place of an offset, given the places of some offsets."""
    number = bisect_right(offsets, offset) - 1
    return starts[number] + offset - offsets[number]


# ---- Translated text --------------------------------------------------------------------------

_SPACES = re.compile(r"[ \t\n\r]+")
_MEANINGFUL = re.compile(
    r"""(?=[\\`*~_<&\[\]])  # skips all other characters fast
    (?: \\(?=[!-/:-@\[-`{-~]|\Z)  # before punctuation
    | `
    | (?<!\s)\*+ | \*+(?!\s)
    | ~(?=~) | (?<=\S)~
    | (?<![^\W_])_+ | _+(?![^\W_])
    | <(?=[A-Za-z/!?]|\Z)
    | &(?=\#|[A-Za-z][A-Za-z0-9]*;)
    | \[(?P<label>[^\[\]\\]*)\](?![\[(:])
    | [\[\]]
    )""",
    re.VERBOSE,
)
# The beginning of a block, or the second line of a table; a backslash belongs after the match.
_BLOCK_START = re.compile(
    r" ?(?:\d{1,9}(?=[.)](?:\s|\Z))|(?=(?:\#{1,6}|[-+*])(?:\s|\Z)|>|=+\s*\Z|[-:|][-:|\s]*\Z))"
)
_HEADING_END = re.compile(r"(?<=\s)(?=#+\s*\Z)")
_LINE_START = re.compile(r"[\r\n][ \t>]*\Z")  # the text before it
_LINE_END_AFTER = re.compile(r"[ \t]*\\?[\r\n]")
_BREAK = re.compile(r"[ \t]*\\?(?:\r\n?|\n)[ \t>]*")
_TAGS = {"*": "em", "_": "em", "**": "strong", "__": "strong", "~~": "s"}


class _Writer:
    """Writes translated text, escaping whatever Markdown would interpret.

    Args:
        references: the link definitions by normalized name: [text] is a link if defined.
        in_cell: whether the text is in a table cell.
    """

    def __init__(self, references: dict[str, Any], in_cell: bool = False):
        self._references = references
        self._in_cell = in_cell

    def __call__(self, pieces: Sequence[Piece]) -> str:
        """Writes text and marks.

        Emphasis marks that would not be recognized in their new place, as in `**a.**b`, are written
        as tags.
        """
        pieces = _without_blank_lines(pieces)
        written = self._joined(pieces)
        if not any(map(_sign, pieces)):
            return written
        wanted: list[tuple[str, MarkKind]] = []
        for piece in pieces:
            if _sign(piece):
                wanted.append((_sign(piece), piece.kind))
            elif isinstance(piece, Mark) and piece.kind is MarkKind.WHOLE:
                wanted.extend(self._emphasis_in(piece.source))
        if self._emphasis_in(written) == wanted:
            return written
        return self._joined([_with_tag(piece) for piece in pieces])

    def _emphasis_in(self, written: str) -> list[tuple[str, MarkKind]]:
        (block,) = _parser().parseInline(written, {"references": self._references})
        return [
            (token.markup, MarkKind.OPEN if token.nesting > 0 else MarkKind.CLOSE)
            for token in block.children
            if token.tag in _TAGS.values()
        ]

    def _joined(self, pieces: Sequence[Piece]) -> str:
        written: list[str] = []
        for is_text, group in groupby(pieces, key=lambda piece: isinstance(piece, str)):
            members = list(group)
            written.append("".join(members) if is_text else _marks_joined(members))
        # Texts and marks alternate.
        for number in range(0 if pieces and isinstance(pieces[0], str) else 1, len(written), 2):
            before = written[number - 1] if number > 0 else "\n"
            after = written[number + 1] if number + 1 < len(written) else "\n"
            written[number] = self._escaped(written[number], before, after)
        return "".join(written)

    def _escaped(self, text: str, before: str, after: str) -> str:
        """Escapes a text, given the output before and after it."""
        text = _MEANINGFUL.sub(self._escaped_match, _SPACES.sub(" ", text))
        ends_line = _LINE_END_AFTER.match(after)
        if text.endswith("!") and after.startswith("["):
            text = f"{text[:-1]}\\!"
        if _LINE_START.search(before):
            block = _BLOCK_START.match(text if ends_line else f"{text}{after}x")
            if block:
                text = f"{block[0]}\\{text[block.end() :]}"
        if ends_line:
            text = _HEADING_END.sub(r"\\", text)
        return text.replace("|", "\\|") if self._in_cell else text

    def _escaped_match(self, match: re.Match) -> str:
        label = match["label"]
        if label is None:
            return "".join(f"\\{character}" for character in match[0])
        within = _MEANINGFUL.sub(self._escaped_match, label)
        is_task = match.start() == 0 and label in "xX "
        if normalizeReference(label) in self._references or label[:1] in "^!" or is_task:
            return f"\\[{within}\\]"
        return f"[{within}]"


def _without_blank_lines(pieces: Sequence[Piece]) -> list[Piece]:
    """Removes line breaks at either end and after another one."""
    result: list[Piece] = []
    at_line_start = True
    for piece in pieces:
        if isinstance(piece, str):
            at_line_start = at_line_start and not piece.strip()
        elif at_line_start and _BREAK.fullmatch(piece.source):
            continue
        else:
            at_line_start = _LINE_START.search(piece.source) is not None
        result.append(piece)
    while result and isinstance(result[-1], Mark) and _BREAK.fullmatch(result[-1].source):
        result.pop()
    return result


def _marks_joined(marks: Sequence[Mark]) -> str:
    """Joins consecutive marks; without a space, `a` and `b` would be one code span."""
    written = ""
    for mark in marks:
        between = " " if written.endswith("`") and mark.source.startswith("`") else ""
        written += between + mark.source
    return written


def _sign(piece: Piece) -> str:
    """Returns the emphasis mark at the beginning of a piece, or ""."""
    if isinstance(piece, str) or piece.kind is MarkKind.WHOLE:
        return ""
    sign = piece.source[: len(piece.source) - len(piece.source.lstrip("*_~"))]
    return sign if sign in _TAGS else ""


def _with_tag(piece: Piece) -> Piece:
    """Replaces a piece's emphasis mark, if any, by a tag."""
    sign = _sign(piece)
    if not sign:
        return piece
    tag = f"</{_TAGS[sign]}>" if piece.kind is MarkKind.CLOSE else f"<{_TAGS[sign]}>"
    return dataclasses.replace(piece, source=tag + piece.source[len(sign) :])


# ---- Inline content ---------------------------------------------------------------------------


_NAMED_BY_TEXT = ("]", "][]")  # ends a link or an image whose text names a link definition


class _Span(NamedTuple):
    """A token, and its position in the content of its block."""

    token: Token
    begin: int
    end: int


class _Inline:
    """Makes segments from the tokens within a block.

    Args:
        content: the block's content.
        places: from offsets in it to places in the document's text.
        source: the document.
        write: the `write` of its segments.
    """

    def __init__(self, content: str, places: Callable[[int], int], source: _Source, write: _Writer):
        self._content = content
        self._places = places
        self._source = source
        self._write = write

    def parts(self, tokens: Sequence[Token], begin: int = 0) -> list[str | Segment]:
        """Returns the parts for tokens.

        Args:
            tokens: of the whole content, or of an image in it.
            begin: where the first one begins.
        """
        spans = list(_spans(tokens, begin))
        tags = [_tag(span.token) for span in spans]
        builder = SegmentBuilder(self._write, has_lists=True)
        labels: list[int] = []  # where the texts of the open links begin
        number = 0
        while number < len(spans):
            last = number + 1
            if tags[number].begins_kept:
                last = html.end_of_kept(tags, number, OpenTags())
                self._add_kept(builder, spans[number:last], tags[number])
            elif (note_end := html.end_of_note(tags, number)) is not None:
                last = note_end
                text = text_of_note(html.shown(tags[number:last]), builder.last_character)
                builder.kept(self._original(spans[number].begin, spans[last - 1].end), text)
            elif spans[number].token.markup == "autolink":
                last = number + 3
                self._add_kept(builder, spans[number:last], tags[number])
            else:
                self._add(builder, spans[number], tags[number], labels)
            number = last
        return builder.parts()

    def _original(self, begin: int, end: int) -> str:
        return self._source.original(self._places(begin), self._places(end))

    def _add(self, builder: SegmentBuilder, span: _Span, tag: html.Tag, labels: list[int]) -> None:
        """Adds a token; `labels` are the places where the texts of open links begin."""
        token, begin, end = span
        source = self._original(begin, end)
        if token.type == "text":
            self._add_text(builder, source, begin, end)
        elif token.type == "text_special" and token.content not in " \t\n":
            builder.word(source, token.content)
        elif token.type in ("text_special", "softbreak", "hardbreak"):
            builder.space(source)
        elif token.type == "html_inline":
            html.add_tag(builder, tag._replace(source=source))
        elif token.type == "image":
            builder.kept(source, parts=self._image_parts(span))
        elif token.type == "link_open":
            labels.append(end)
            builder.begin(token.tag, source)
        elif token.type == "link_close":
            written = self._with_label(source, labels.pop(), begin)
            builder.end(token.tag, source, written if written != source else "")
        elif token.nesting > 0:
            builder.begin(token.type.removesuffix("_open"), source, is_formatting=True)
        elif token.nesting < 0:
            builder.end(token.type.removesuffix("_close"), source)
        else:  # a code span or an extension
            builder.kept(source, token.content)

    def _add_text(self, builder: SegmentBuilder, original: str, begin: int, end: int) -> None:
        text = self._content[begin:end]
        is_original = original == text  # not where a table escapes |
        for number, piece in enumerate(_SPACE_OR_URL.split(text)):
            source = piece if is_original else self._original(begin, begin + len(piece))
            begin += len(piece)
            if number % 2 and piece[0] in " \t":
                builder.space(source)
            elif number % 2:
                builder.kept(source, piece)
            elif piece:
                builder.word(source, piece)

    def _add_kept(self, builder: SegmentBuilder, spans: Sequence[_Span], tag: html.Tag) -> None:
        """Adds tokens that are not translated: a code element, an address in < >."""
        texts = (span.token.content for span in spans if span.token.type.startswith("text"))
        text = "".join(texts) if tag.stands_for_words else ""
        builder.kept(self._original(spans[0].begin, spans[-1].end), text)

    def _image_parts(self, span: _Span) -> Parts:
        """Returns an image with its alternative text as a segment; () if nothing is translated."""
        begin = span.begin + len("![")
        end = begin + len(span.token.content)
        source = self._original(end, span.end)
        if source in _NAMED_BY_TEXT:
            return ()
        parts = self.parts(span.token.children or [], begin)
        if all(isinstance(part, str) for part in parts):
            return ()
        return (self._original(span.begin, begin), *parts, source)

    def _with_label(self, source: str, begin: int, end: int) -> str:
        """Returns the source that ends a link with the text content[begin:end].

        If the text names the target, as in [text] and [text][], the name is added, as translation
        changes the text.
        """
        if source not in _NAMED_BY_TEXT:
            return source
        label = self._content[begin:end]
        label = " ".join(label.split()) if "\n" in label else self._original(begin, end)
        return f"][{label}]"


def _spans(tokens: Sequence[Token], begin: int) -> Iterator[_Span]:
    """Yields consecutive tokens with their positions.

    Args:
        tokens: the tokens of a block, or of an image in it.
        begin: where the first one begins.
    """
    start = begin
    in_autolink = False
    for token in tokens:
        if "end" in token.meta:
            end = begin + token.meta["end"]
        elif in_autolink or token.markup == "autolink":
            end = start  # the last token stands for all of it
        elif token.type == "link_open":
            end = start + len("[")
        elif token.type in ("text", "html_inline"):
            end = start + len(token.content)
        else:
            end = start + len(token.markup)
        yield _Span(token, start, end)
        start = end
        in_autolink = token.markup == "autolink" and token.nesting > 0


def _tag(token: Token) -> html.Tag:
    """Converts a token to a tag, or to text if it is not one."""
    tags = html.tags_of(token.content) if token.type == "html_inline" else []
    return tags[0] if len(tags) == 1 else html.Tag("text", token.content)
