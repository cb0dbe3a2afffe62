"""Splits text into sentences, and sentences that are too long for a model.

sentencex knows the abbreviations and quotation marks of some hundred languages; its results are
corrected where news text showed clear errors (docs/diary.md).
"""

import re
from collections.abc import Callable, Collection, Iterable, Sequence

import sentencex

from keras_transformer.support.errors import require
from keras_transformer.use.translate.answers import Span

# In these languages "am 3. Mai" means "on the third of May".
_DOTTED_ORDINALS = (
    *("cs", "da", "de", "et", "fi", "hr", "hu", "is"),
    *("lv", "nb", "nn", "no", "pl", "sk", "sl", "tr"),
)
_INITIAL = re.compile(r"(?<!\w)[^\W\d_]\.$")
_ORDINAL = re.compile(r"(?<![\w.,])\d{1,3}\.$")
_OPENING_QUOTES = re.compile(r"\s+([\"'“‘(\[]+|[«‹„]+\s*)$")  # may be followed by a space
_CLOSING_QUOTES = re.compile(r"[\"'”“»›’)\]]+(?=\s|$)")
# Scripts without spaces, and their punctuation: Thai to Myanmar, CJK, full width.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3000-\u9fff\uf900-\ufaff\uff00-\uffef"
_ENDS_UNSPACED = re.compile(f"[{_UNSPACED}][\"'”’]*$")

# A word that begins a sentence without a full stop before it: "A man walks A dog runs". It is not
# in a name, as the words around it are in lower case; the listed words exclude "a plan of type A".
_BEGINS_IN_ENGLISH = re.compile(
    r"""(?<![\w'’-])(?!(?:the|a|an|of|to|and|or|in|for|by|with|from|vitamin|type|class|plan)[ ])
    [a-z]{2,}[ ](?=An?[ ](?!is|was|and|or)[A-Za-z][a-z]+[ ]|(?:The|Two|Three|Four|Five|Several|Some
    |There|This|These|He|She|It|They|We|People|Men|Women|Children|Kids|Man|Woman|Boy|Girl|His|Her
    |Their|Young|Old|Group)[ ][a-z]{2,})""",
    re.VERBOSE,
)

# Places to split long sentences, the best first.
_CLAUSE_ENDS = re.compile(r"(?<=[;:])\s|\s(?=[—–-]\s)|(?<=[；：])")
_COMMAS = re.compile(r"(?<=,)\s|(?<=[，、])")
_SPACES = re.compile(r"\s+")
# No subword is this long: texts with more characters per subword are split before counting.
MOST_CHARACTERS = 64


def check_language(language: str | None) -> None:
    """Raises an InputError unless the language is a code; "english" is not."""
    is_code = language is None or re.fullmatch(r"[A-Za-z]{2,3}([-_][A-Za-z\d]+)*", language)
    require(is_code, "language", 'must be a code such as "en" or "pt-BR"', repr(language))


def split(text: str, language: str, starts: Iterable[int] = ()) -> list[Span]:
    """Finds the sentences of a text.

    Args:
        text: a paragraph.
        language: the language of the text, such as "en", "de-AT" or "pt_BR"; unknown ones are
            treated like English.
        starts: places where sentences must begin.

    Returns:
        The spans of the sentences in order. Only spaces are outside them.
    """
    language = re.split("[-_]", language.lower())[0]
    encodable = text.encode("utf-8", "replace").decode("utf-8")  # half a surrogate pair becomes "?"
    found = sentencex.get_sentence_boundaries(language, encodable)
    ends = [_mended(text, sentence["end_index"], language) for sentence in found[:-1]]
    starts = {0, *starts, *(end for end in ends if end is not None)}
    if language == "en":
        starts.update(match.end() for match in _BEGINS_IN_ENGLISH.finditer(text))
    return trimmed(text, sorted(starts))


def is_unspaced(character: str) -> bool:
    """Whether a character belongs to a script without spaces, or to its punctuation."""
    return re.match(f"[{_UNSPACED}]", character) is not None


def trimmed(text: str, starts: Sequence[int]) -> list[Span]:
    """Returns the spans that begin at the given places, without surrounding spaces."""
    spans = []
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        part = text[start:end]
        begin = start + len(part) - len(part.lstrip())
        if part.strip():
            spans.append((begin, start + len(part.rstrip())))
    return spans


def _mended(text: str, end: int, language: str) -> int | None:
    """Corrects a sentence end found by sentencex; None if no sentence ends there."""
    before = text[max(end - 80, 0) : end]  # enough context
    if opening := _OPENING_QUOTES.search(before):  # 'transport. "|You must', "Bretagne. « |Nous"
        end -= len(opening[1])
    elif end < len(text) and not before[-1:].isspace():
        if closing := _CLOSING_QUOTES.match(text, end):  # 'prices.|" The news'
            end = closing.end()
        elif not text[end].isspace() and not _ENDS_UNSPACED.search(before):  # "U.|S."
            return None
    sentence = text[max(end - 80, 0) : end].rstrip()
    initial = _INITIAL.search(sentence)
    if initial and initial[0].isupper():  # "M.| Blair"
        return None
    if language in _DOTTED_ORDINALS and _ORDINAL.search(sentence):
        return None
    return end


def cut(
    text: str,
    span: Span,
    limit: int,
    count_subwords: Callable[[list[Span]], list[int]],
    kept_whole: Collection[int] = (),
) -> list[Span]:
    """Splits a sentence into parts within a model's limit.

    It is split near its middle, as are parts that are still too long: at the end of a clause, else
    at a comma, else at a space, else anywhere.

    Args:
        text: the text that contains the sentence.
        span: the span of the sentence.
        limit: the most subwords in a part.
        count_subwords: counts the subwords of each of several spans.
        kept_whole: places that must not be split.

    Returns:
        The spans of the parts in order. A part that cannot be split may be too long.
    """
    parts, fitting = [span], set()
    while True:
        unknown = [part for part in parts if part not in fitting]
        short = [part for part in unknown if part[1] - part[0] <= limit * MOST_CHARACTERS]
        counts = zip(short, count_subwords(short), strict=True)
        fitting.update(part for part, count in counts if count <= limit)
        halves = {part: _halves(text, part, kept_whole) for part in set(unknown) - fitting}
        fitting.update(part for part in halves if len(halves[part]) == 1)
        if fitting.issuperset(parts):
            return parts
        parts = [half for part in parts for half in halves.get(part, [part])]


def _halves(text: str, span: Span, kept_whole: Collection[int]) -> list[Span]:
    """Splits a span in two near its middle, if possible."""
    start, end = span
    middle, length = (start + end) / 2, end - start
    for pattern, reach in ((_CLAUSE_ENDS, length / 3), (_COMMAS, length / 3), (_SPACES, length)):
        places = (match.end() for match in pattern.finditer(text, start, end))
        near = [place for place in places if abs(place - middle) < reach]
        near = [place for place in near if place not in kept_whole]
        if near:
            break
    else:
        near = [place for place in range(start + 1, end) if place not in kept_whole]
    if not near:
        return [span]
    place = min(near, key=lambda place: abs(place - middle))
    halves = trimmed(text[start:end], [0, place - start])
    return [(start + first, start + last) for first, last in halves]
