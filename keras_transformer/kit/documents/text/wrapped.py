r"""Plain text with paragraphs wrapped over several lines, as in e-mails, READMEs and PDFs.

    > The committee met on Tuesday, and it
    > decided nothing. It will meet again.

is one quoted paragraph with two sentences. A line continues on the next one if it was wrapped: if
the first word of the next line did not fit, or if a long line ends within a sentence and the next
one begins with a lowercase letter. A short line, such as one in an address, does not continue. Nor
does a line continue into a list item, an empty line, a line with more indentation, or a line with
more or fewer quote markers (>).

Each line break within a paragraph reads as a space, and is restored near its original place. A word
hyphenated at the end of a line reads as one word, and the line break is restored after it:

    The committee met in the build-
    ing of the bank.                    reads as "The committee met in the building of the bank."
"""

import dataclasses
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise

from keras_transformer.kit.documents.tree.placeholders import ITEM_SIGN
from keras_transformer.kit.documents.tree.segment_builder import SegmentBuilder, joined
from keras_transformer.kit.documents.tree.segments import Document, Segment, as_written

WIDTHS = range(40, 121)  # possible widths of wrapped text, in characters
_QUOTATION = re.compile(r"(?:\s*>)+\s?")
_ITEM = re.compile(rf"{ITEM_SIGN}\s+")
# The parts of a word before a hyphen at the end of a line. Hyphens in URLs do not divide words.
_DIVIDED = re.compile(
    r"(?:\A|[\s(\[\"'„“‚‘«»–—])(?P<before>(?:[^\W\d_]+-)*)(?P<part>[^\W\d_]+)[-\u2010\u00ad]\Z"
)
SOFT_HYPHEN = "\u00ad"
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
# Before these, a hyphen stands for part of a later compound: "Haupt- und Nebensatz".
_CONJUNCTIONS = (
    *("and", "or", "to", "und", "oder", "bzw", "bis", "sowie"),
    *("et", "ou", "en", "of", "och", "eller"),
)
# A text looks wrapped if at least one in this many lines continues, judging by its words alone.
_LINES_FOR_ONE = 10


@dataclasses.dataclass(frozen=True)
class _Line:
    """A line, split into parts."""

    before: str  # quote markers and spaces
    content: str
    end: str  # trailing spaces
    depth: int  # number of quote markers
    indentation: int  # spaces before the content, not counting those of the quote markers
    hanging: int  # the same plus an item's bullet or number: the most for the lines after it
    is_item: bool

    @property
    def width(self) -> int:
        """Returns the width in characters, without quote markers."""
        return self.indentation + len(self.content)

    @property
    def has_letters(self) -> bool:
        """Whether the line contains language, unlike a ruled line."""
        return any(map(str.isalpha, self.content))


def read(text: str, language: str) -> Document:
    """Reads a text; the language does not matter."""
    lines = [_line(line) for line in text.split("\n")]
    width = _width(lines)
    words = frozenset(_WORD.findall(text))
    parts: list[str | Segment] = []
    for paragraph in _paragraphs(lines, width):
        if parts:
            parts.append("\n")
        parts.append(paragraph[0].before)
        parts += [*_segment(paragraph, words), paragraph[-1].end]
    return Document(joined(parts))


def _segment(paragraph: Sequence[_Line], words: Collection[str]) -> list[str | Segment]:
    """Returns the segment of a paragraph, and the parts beside it.

    Args:
        paragraph: the lines of the paragraph.
        words: the words of the whole text, including those hyphenated within a line.
    """
    builder = SegmentBuilder(as_written)
    content = paragraph[0].content  # the rest of a line
    for line, following in pairwise(paragraph):
        line_break = f"{line.end}\n{following.before}"
        divided = _divided(content, following.content, words)
        if divided is None:
            if content:
                builder.word(content, content)
            builder.space(line_break)
            content = following.content
            continue
        rest, *others = re.split(r"(\s+)", following.content, maxsplit=1)
        builder.word(content + line_break + rest, divided + rest)
        content = ""
        if others:
            builder.space(others[0], written=line_break)
            content = others[1]
    if content:
        builder.word(content, content)
    return builder.parts()


def _divided(content: str, following: str, words: Collection[str]) -> str | None:
    """Returns how a line reads if it ends in a hyphenated word that the next line continues.

    The hyphen is kept before a capital ("Baden-Baden"), if the word has another hyphen, or if it is
    written with the hyphen elsewhere in the text.

    Returns:
        The line, or None if it does not end in a hyphenated word.
    """
    divided, rest = _DIVIDED.search(content), _WORD.match(following)
    if divided is None or rest is None or rest[0] in _CONJUNCTIONS:
        return None
    part, is_in_capitals = divided["part"], (divided["part"] + rest[0]).isupper()
    is_written_so = f"{part}-{rest[0]}" in words and part + rest[0] not in words
    is_name = rest[0][0].isupper() and not is_in_capitals
    has_hyphen = divided["before"] != "" or is_written_so or is_name
    return content if has_hyphen and content[-1] != SOFT_HYPHEN else content[:-1]


def continued_line(text: str) -> int | None:
    """Returns the number, from 1, of the first line that continues, if a text looks wrapped.

    This is judged by words alone: a long line ends within a sentence, and the next one begins with
    a lowercase letter. Returns None if the text does not look wrapped.
    """
    lines = [_line(line) for line in text.split("\n")]
    continued = [
        number
        for number, pair in enumerate(pairwise(lines), start=1)
        if _are_together(*pair) and _goes_on_by_words(*pair)
    ]
    written = sum(line.content != "" for line in lines)
    return continued[0] if len(continued) * _LINES_FOR_ONE >= max(written, 1) else None


def _line(text: str) -> _Line:
    quotation = _QUOTATION.match(text)
    quoted = text[quotation.end() :] if quotation else text
    content = quoted.strip()
    indentation = quoted.index(content)
    item = _ITEM.match(content)
    return _Line(
        before=text[: len(text) - len(quoted) + indentation],
        content=content,
        end=quoted[indentation + len(content) :],
        depth=quotation[0].count(">") if quotation else 0,
        indentation=indentation,
        hanging=indentation + (len(item[0]) if item else 0),
        is_item=item is not None,
    )


def _width(lines: Sequence[_Line]) -> int | None:
    """Returns the width at which a text was wrapped: the one that explains the most line ends.

    A width explains the end of a line if the line fits into it, but not together with the first
    word of the next line.

    Returns:
        The width in characters, or None if no width explains a quarter of the line ends.
    """
    votes: Counter[int] = Counter()
    pairs = [pair for pair in pairwise(lines) if _are_together(*pair)]
    for line, following in pairs:
        votes.update(_explaining(line, following))
    width = max(WIDTHS, key=votes.__getitem__)
    return width if votes[width] * 4 >= max(len(pairs), 1) else None


def _explaining(line: _Line, following: _Line) -> Sequence[int]:
    """Returns the widths that explain why a line ends where it does."""
    first_word = following.content.split(maxsplit=1)[0]
    return range(max(line.width, WIDTHS.start), min(line.width + 1 + len(first_word), WIDTHS.stop))


def _are_together(line: _Line, following: _Line) -> bool:
    """Whether two lines may belong to the same paragraph, regardless of their lengths."""
    return (
        line.has_letters
        and following.has_letters
        and not following.is_item
        and line.depth == following.depth
        and following.indentation <= line.hanging
    )


def _goes_on_by_words(line: _Line, following: _Line) -> bool:
    """Whether a long line ends within a sentence and the next begins with a lowercase letter."""
    is_within_sentence = line.content[-1].isalnum() or line.content[-1] == ","
    is_within_sentence |= _DIVIDED.search(line.content) is not None
    return line.width in WIDTHS and is_within_sentence and following.content[0].islower()


def _goes_on(line: _Line, following: _Line, width: int | None) -> bool:
    """Whether a line continues on the next one, in a text wrapped at `width`."""
    if not _are_together(line, following):
        return False
    if _goes_on_by_words(line, following):
        return True
    if width is None:
        return False
    is_one_word = not re.search(r"\s", line.content)  # a URL may be wider than the text
    return width in _explaining(line, following) or (is_one_word and line.width >= width)


def _paragraphs(lines: Sequence[_Line], width: int | None) -> Iterator[list[_Line]]:
    """Yields the lines of each paragraph; an empty line is a paragraph of its own."""
    paragraph = [lines[0]]
    for line, following in pairwise(lines):
        if _goes_on(line, following, width):
            paragraph.append(following)
        else:
            yield paragraph
            paragraph = [following]
    yield paragraph
