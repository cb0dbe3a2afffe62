r"""Subtitles (.srt, .vtt): translates the text of cues and keeps their times.

    7                                       its number or name
    00:00:21,000 --> 00:00:23,500           its times, in .vtt also settings
    <i>She had seen the man</i>             its text, up to an empty line
    <i>who lived</i>

A sentence continues in the next cue if a cue ends with a comma, or ends with a word and the next
one begins with a lower-case letter. The lines of a cue are translated together, unless a line
begins with the sign of another speaker: "- Yes.", ">> Yes.".

The source between two lines of a paragraph, a line break or the times of the next cue, reads as a
space, and returns near its old position. Everything else, such as notes and styles, stays.
"""

import dataclasses
import html
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from keras_transformer.kit.documents.tree.segment_builder import Found, SegmentBuilder, with_found
from keras_transformer.kit.documents.tree.segments import (
    Document,
    Mark,
    MarkKind,
    Parts,
    Piece,
    Segment,
)
from keras_transformer.support.errors import require

_LINES = re.compile(r"[^\r\n]*(?:\r\n?|\n|\Z)")
_TIMES = re.compile(r"\s*\d[\d:.,]*\s*-->\s*\d")
_TAG = re.compile(r"<(?P<slash>/?)(?P<name>[A-Za-z]+)[^<>]*>")
_FORMATTING = ("b", "i", "u")
# Tags, times within a cue <00:00:21.500>, and positions {\an8}.
_MARKUP = re.compile(rf"{_TAG.pattern}|<\d[\d:.]*>|{{\\[^{{}}]*}}")
_SPEAKER = re.compile(r"\s*(?:[-–—]+(?!\d)|(?:>|&gt;)+)\s*")
_SIGNS = re.compile(r"(?:(?:\{\\[^{}]*\}|<v\b[^<>]*>|<\d[\d:.]*>)[ \t]*)+")
_END_TAGS = re.compile(r"(?<!>)(?:</[A-Za-z]+>)+\Z")
_START_TAGS = re.compile(r"(?:<[A-Za-z][^<>]*>)+")
# The source between two lines: tags that end and begin again, and the rest, which keeps its order.
_BREAK = re.compile(r"([ \t]*(?:</[A-Za-z]+>[ \t]*)*)(.*?)((?:<[A-Za-z][^<>]*>[ \t]*)*)", re.DOTALL)


@dataclasses.dataclass
class _Line:
    """A line of text in a cue."""

    cue: int  # number, from 1
    start: int  # where its content begins and ends in the file
    end: int
    visible: str  # its visible text


def read_srt(text: str, language: str) -> Document:
    """Reads SubRip subtitles, in which only tags have a meaning.

    Args:
        text: the file.
        language: the language of the cues, which does not matter here.

    Raises:
        InputError: if it contains no times.
    """
    return _read(text, str, str)


def read_vtt(text: str, language: str) -> Document:
    """Reads WebVTT, in which characters may be written as entities; see `read_srt`."""
    return _read(text, html.unescape, lambda words: html.escape(words, quote=False))


def _read(text: str, unescape: Callable[[str], str], escape: Callable[[str], str]) -> Document:
    found = (
        Found(paragraph[0].start, paragraph[-1].end, _parts_of(paragraph, text, unescape, escape))
        for paragraph in _paragraphs(_lines(text))
    )
    return Document(with_found(lambda start, end: text[start:end], found))


def _lines(text: str) -> list[_Line]:
    """Returns the lines of cue text with visible letters or digits."""
    found: list[_Line] = []
    cue = place = 0
    is_text = False
    for line in _LINES.findall(text):
        content = line.strip()
        if _TIMES.match(line):
            cue += 1
            if is_text and found and found[-1].visible.isdecimal():
                found.pop()  # the number of this cue, without an empty line before it
            is_text = True
        elif not line.rstrip("\r\n"):
            is_text = False
        elif is_text:
            visible = _MARKUP.sub("", content).strip()
            if any(map(str.isalnum, visible)):
                start = place + line.index(content)
                found.append(_Line(cue, start, start + len(content), visible))
        place += len(line)
    rule = "must have cues with times, such as 00:00:21,000 --> 00:00:23,500"
    has_cues = cue or not text.strip() or text.startswith("WEBVTT")
    require(has_cues, None, rule, "none", "the document")
    return found


def _paragraphs(lines: Sequence[_Line]) -> Iterator[list[_Line]]:
    """Yields groups of lines that are translated together."""
    paragraph = list(lines[:1])
    for line, following in pairwise(lines):
        if _goes_on(line, following):
            paragraph.append(following)
        else:
            yield paragraph
            paragraph = [following]
    if paragraph:
        yield paragraph


def _goes_on(line: _Line, following: _Line) -> bool:
    """Whether a line's sentence may continue on the next line."""
    if _SPEAKER.match(following.visible):
        return False
    is_within_sentence = line.visible[-1].isalnum() and following.visible[0].islower()
    return line.cue == following.cue or is_within_sentence or line.visible[-1] == ","


def _parts_of(
    paragraph: Sequence[_Line],
    text: str,
    unescape: Callable[[str], str],
    escape: Callable[[str], str],
) -> Parts:
    """Returns the parts of a paragraph's lines, and of the source between them."""
    for line, following in pairwise(paragraph):
        _move_between(line, following, text)
    builder = SegmentBuilder(str)
    end = paragraph[0].start
    for line in paragraph:
        if end < line.start:
            builder.space(text[end : line.start])
        _add(builder, text[line.start : line.end], unescape, line is paragraph[0])
        end = line.end
    return tuple(
        dataclasses.replace(part, write=_writing(part.pieces, escape))
        if isinstance(part, Segment)
        else part
        for part in builder.parts()
    )


def _move_between(line: _Line, following: _Line, text: str) -> None:
    """Excludes from two lines the markup between them.

    That is the position or voice of the second line, and tags that end with the first and begin
    again with the second: "</i>", "<i>".
    """
    if sign := _SIGNS.match(text, following.start, following.end):
        following.start = sign.end()
    ending = _END_TAGS.search(text, line.start, line.end)
    beginning = _START_TAGS.match(text, following.start, following.end)
    if ending is None or beginning is None:
        return
    names = [tag["name"] for tag in _TAG.finditer(ending[0])]
    if names[::-1] == [tag["name"] for tag in _TAG.finditer(beginning[0])]:
        line.end -= len(ending[0])
        following.start += len(beginning[0])


def _add(
    builder: SegmentBuilder, content: str, unescape: Callable[[str], str], is_first: bool
) -> None:
    """Adds the content of a line, with a speaker's sign only at the beginning of a paragraph."""
    place = 0
    for markup in [*_MARKUP.finditer(content), None]:
        words = content[place : len(content) if markup is None else markup.start()]
        if is_first and words and (sign := _SPEAKER.match(words)):
            builder.kept(sign[0])
            words = words[sign.end() :]
        is_first = is_first and not words.strip()
        for word in re.findall(r"[ \t]+|[^ \t]+", words):
            if word.strip(" \t"):
                builder.word(word, unescape(word))
            else:
                builder.space(word)
        if markup is None:
            break
        if markup["name"] is None:
            builder.kept(markup[0])
        elif markup["slash"]:
            builder.end(markup["name"], markup[0])
        else:
            is_formatting = markup["name"].lower() in _FORMATTING
            builder.begin(markup["name"], markup[0], is_formatting=is_formatting)
        place = markup.end()


def _is_break(piece: Piece) -> bool:
    is_mark = isinstance(piece, Mark) and piece.kind is MarkKind.WHOLE
    return is_mark and re.search("[\r\n]", piece.source) is not None


def _writing(
    source: Sequence[Piece], escape: Callable[[str], str]
) -> Callable[[Sequence[Piece]], str]:
    """Returns a segment's `write`, which keeps cues in order and their lines non-empty.

    Args:
        source: the segment's pieces.
        escape: escapes text.
    """
    breaks = [_BREAK.fullmatch(piece.source)[2] for piece in source if _is_break(piece)]

    def write(pieces: Sequence[Piece]) -> str:
        remaining = iter(breaks)
        written: list[str] = []
        begins_line = True
        for piece in pieces:
            if _is_break(piece):
                ends, _, begins = _BREAK.fullmatch(piece.source).groups()
                between = next(remaining)
                is_kept = not begins_line or not between.isspace()
                written += [ends, between, begins] if is_kept else [ends, begins]
                begins_line = True
                continue
            source = piece.source if isinstance(piece, Mark) else escape(piece)
            written.append(source)
            begins_line = begins_line and not source.strip()
        return "".join(written)

    return write
