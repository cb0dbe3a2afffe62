"""Where sentences begin and end, and where one is cut that is too long for a model.

sentencex knows the abbreviations and quotation marks of some hundred languages; what it finds is
mended where news text showed clear errors (docs/measurements/documents.md).
"""

import re
from collections.abc import Callable, Collection, Iterable, Sequence

import sentencex

from keras_transformer.errors import require
from keras_transformer.translate.answers import Span

# In these languages "am 3. Mai" means "on the third of May".
_DOTTED_ORDINALS = (
    *("cs", "da", "de", "et", "fi", "hr", "hu", "is"),
    *("lv", "nb", "nn", "no", "pl", "sk", "sl", "tr"),
)
_INITIAL = re.compile(r"(?<!\w)[^\W\d_]\.$")
_ORDINAL = re.compile(r"(?<![\w.,])\d{1,3}\.$")
_OPENING_QUOTES = re.compile(r"\s+([\"'“‘(\[]+|[«‹„]+\s*)$")  # which a space may follow
_CLOSING_QUOTES = re.compile(r"[\"'”“»›’)\]]+(?=\s|$)")
# Scripts without spaces, and their punctuation: Thai to Myanmar, CJK, full width.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3000-\u9fff\uf900-\ufaff\uff00-\uffef"
_ENDS_UNSPACED = re.compile(f"[{_UNSPACED}][\"'”’]*$")

# A word that begins a sentence although no full stop is before it: "A man walks A dog runs". It is
# in no name, as the words beside it are in small letters; "a plan of type A" has one before it.
_BEGINS_IN_ENGLISH = re.compile(
    r"""(?<![\w'’-])(?!(?:the|a|an|of|to|and|or|in|for|by|with|from|vitamin|type|class|plan)[ ])
    [a-z]{2,}[ ](?=An?[ ](?!is|was|and|or)[A-Za-z][a-z]+[ ]|(?:The|Two|Three|Four|Five|Several|Some
    |There|This|These|He|She|It|They|We|People|Men|Women|Children|Kids|Man|Woman|Boy|Girl|His|Her
    |Their|Young|Old|Group)[ ][a-z]{2,})""",
    re.VERBOSE,
)

# Where a sentence is cut that is too long, the best places first.
_CLAUSE_ENDS = re.compile(r"(?<=[;:])\s|\s(?=[—–-]\s)|(?<=[；：])")
_COMMAS = re.compile(r"(?<=,)\s|(?<=[，、])")
_SPACES = re.compile(r"\s+")
# No subword is this long: a text of more characters for each is cut before subwords are counted.
MOST_CHARACTERS = 64


def check_language(language: str | None) -> None:
    """Raises an InputError for what is no code of a language, such as "english"."""
    is_code = language is None or re.fullmatch(r"[A-Za-z]{2,3}([-_][A-Za-z\d]+)*", language)
    require(is_code, "language", 'must be a code as "en" or "pt-BR"', repr(language))


def split(text: str, language: str, starts: Iterable[int] = ()) -> list[Span]:
    """Finds the sentences of a text.

    Args:
        text: a paragraph.
        language: of the text, as "en", "de-AT" or "pt_BR"; an unknown one is read as English.
        starts: places where sentences begin in any case.

    Returns:
        The spans of the sentences in their order. Only spaces are outside of them.
    """
    language = re.split("[-_]", language.lower())[0]
    encodable = text.encode("utf-8", "replace").decode("utf-8")  # half a surrogate pair becomes "?"
    found = sentencex.get_sentence_boundaries(language, encodable)
    ends = [_mended(text, sentence["end_index"], language) for sentence in found]
    starts = {0, *starts, *(end for end in ends[:-1] if end is not None)}
    if language == "en":
        starts.update(match.end() for match in _BEGINS_IN_ENGLISH.finditer(text))
    return trimmed(text, sorted(starts))


def is_unspaced(character: str) -> bool:
    """Whether a character is of a script without spaces between words, or of its punctuation."""
    return re.match(f"[{_UNSPACED}]", character) is not None


def trimmed(text: str, starts: Sequence[int]) -> list[Span]:
    """Makes spans of the places in a text at which they begin, without the spaces around them."""
    spans = []
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        part = text[start:end]
        begin = start + len(part) - len(part.lstrip())
        if part.strip():
            spans.append((begin, start + len(part.rstrip())))
    return spans


def _mended(text: str, end: int, language: str) -> int | None:
    """Where a sentence ends that sentencex lets end at `end`; None if it does not end there."""
    before = text[max(end - 80, 0) : end]  # what is looked at is short
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
    """Cuts a sentence into parts that are no longer than a model's limit.

    It is cut in two near its middle, and so are parts that are still too long: at the end of a
    clause, else at a comma, else at a space, else anywhere.

    Args:
        text: that holds the sentence.
        span: of the sentence.
        limit: the most subwords of a part.
        count_subwords: gives the number of subwords of each of several spans.
        kept_whole: places at which nothing is cut.

    Returns:
        The spans of the parts in their order. One that cannot be cut may be too long.
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
    """Cuts a span in two near its middle, if it can be cut."""
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
