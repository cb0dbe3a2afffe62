"""Terms written into a source, for models that were trained with them (Dinu et al. 2019).

    The teacher reads the <term> book <as> Buch </term> .

The three marks are ids of the source vocabulary that no text is encoded as, so a user who types
"<term>" gets letters. Marks and targets are inserted into encoded sources: pipelines/ does it for
training, and translate/ for translation.

Marks are inserted into ids, not into text, so no text can forge one, and every engine of ids
translates with terms.
"""

import itertools
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from keras_transformer.core.vocabulary.spans import piece_spans
from keras_transformer.core.vocabulary.subwords import Subwords, spelled
from keras_transformer.support.fields import from_json

_word = re.compile(r"\w+")
MIN_STEM = 4  # letters that forms of a word have in common
_MAX_ENDING = 3  # letters after these, of which there are at least twice as many


class Term(NamedTuple):
    """The characters [start, end) of a text, and how to translate them."""

    start: int
    end: int
    target: str


def options_of_terms(has_terms: bool) -> dict[str, Any]:
    """Returns the task options that say whether a model was trained with terms."""
    return {"terms": True} if has_terms else {}


def has_terms(task_options: Mapping[str, Any]) -> bool:
    """Whether a model was trained with terms.

    Raises:
        InputError: if the options are invalid for such a model.
    """
    return from_json({"terms?": bool}, task_options, "task_options").get("terms", False)


def has_form_of(text: str, phrase: str) -> bool:
    """Whether each word of a phrase, or another form of it, is in a text."""
    words = set(_word.findall(text))
    return phrase in text or all(
        any(word == other or have_one_stem(word, other) for other in words)
        for word in _word.findall(phrase)
    )


def have_one_stem(word: str, other: str) -> bool:
    """Whether two words begin alike, and differ in a short ending at most.

    Example:
        >>> have_one_stem("Hunde", "Hundes"), have_one_stem("Hund", "Hundehalsband")
        (True, False)
    """
    same = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(word, other, strict=False))
    common = len(list(same))
    ending = max(len(word), len(other)) - common
    return common >= MIN_STEM and ending <= min(common // 2, _MAX_ENDING)


def encode_with_terms(
    vocabulary: Subwords,
    text: str,
    row: Sequence[int],
    terms: Sequence[Term],
    limit: int | None = None,
) -> list[int]:
    """Inserts terms into an encoded source.

    A term that begins or ends inside a subword includes all of it. A term is left out if none of
    its subwords are in the row, or if the row would become too long.

    Args:
        vocabulary: has marks for terms.
        text: the source.
        row: its ids, possibly with a language code, with EOS, or truncated.
        terms: terms in the text that do not overlap, in order.
        limit: maximum number of ids in the result; None for any.
    """
    if not terms:
        return list(row)
    begin, translated_as, end = vocabulary.term_ids
    spans = piece_spans(text, spelled(vocabulary, row), vocabulary.words(row))
    annotated: list[int] = []
    copied = 0  # how many ids of the row are in the result
    targets = vocabulary.encode([term.target.strip() for term in terms])
    room = None if limit is None else limit - len(row)
    for term, target in zip(terms, targets, strict=True):
        positions = [
            position
            for position, span in enumerate(spans)
            if span is not None and span[0] < term.end and span[1] > term.start
        ]
        length = len(target) + len(vocabulary.term_ids)
        if not positions or positions[0] < copied or (room is not None and length > room):
            continue
        if room is not None:
            room -= length
        first, after = positions[0], positions[-1] + 1
        annotated += [*row[copied:first], begin, *row[first:after], translated_as, *target, end]
        copied = after
    return [*annotated, *row[copied:]]


def remove_terms(vocabulary: Subwords, row: Sequence[int]) -> tuple[list[int], list[int]]:
    """Removes the terms from an encoded source.

    Returns:
        The source's own ids, and for each position in `row` one in them: for a target, that of the
        term's last subword.
    """
    if not vocabulary.term_ids or vocabulary.term_ids[0] not in row:
        return list(row), list(range(len(row)))
    begin, translated_as, end = vocabulary.term_ids
    own: list[int] = []
    positions = []
    is_target = False
    for id_ in row:
        if id_ == translated_as:
            is_target = True
        if id_ not in vocabulary.term_ids and not is_target:
            own.append(id_)
        if id_ == end:
            is_target = False
        positions.append(len(own) - (id_ != begin))
    return own, positions
