"""How probable it is that a translation is good, judged by what the search knows. Not in the paper.

A model's own probabilities are no such judgement: they depend on the length and on the language,
and stay high where a clause is missing. A logistic regression weighs them against a few other
facts. evaluate/calibration.py fits it to references. Does not import TensorFlow.
"""

import dataclasses
import math
import operator
import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from keras_transformer.support.errors import require
from keras_transformer.support.fields import Size, check_fields

if TYPE_CHECKING:
    from keras_transformer.use.translate.answers import AlignedPair

SURPRISING = -3.0  # natural logarithm: a subword with a probability below 5%
# Natural logarithms, of whole translations: see is_suspicious.
IMPROBABLE = -15.0
IMPROBABLE_REPETITION = -10.0
LONGEST_REPETITION = 8  # subwords

_DIGITS = re.compile(r"\d+")
_WORD = re.compile(r"[^\W\d_]+")


class Evidence(NamedTuple):
    """What speaks for or against a translation, from its text and its search."""

    log_prob: float  # mean of its subwords' log probabilities, natural logarithm
    # How far the least probable one lies below SURPRISING, if it counts (is_suspicious); at most 0
    surprise: float
    # The share of source subwords that some subword is aligned with. The first two count as aligned
    # with each other: where a search does not align them, that would take a further pass.
    coverage: float
    length: float  # logarithm of its number of subwords
    ratio: float  # logarithm of that number, divided by the source's
    repetition: float  # 1 if it repeats subwords at once, and the source does not; otherwise 0
    copied: float  # the share of its words that are words of the source
    numbers: float  # 1 if its numbers are not the source's; otherwise 0


def evidence(source: str, translation: str, pair: "AlignedPair") -> Evidence:
    """Collects the evidence for a translation.

    Args:
        source, translation: both texts.
        pair: their subwords, with log probabilities; see search/engines/engine.py for what may be inexact.
    """
    source_pieces, target_pieces, log_probs = pair.source_pieces, pair.target_pieces, pair.log_probs
    covered = {0, *pair.alignment[1:-1]} - {len(source_pieces) - 1}
    surprise = 0.0
    if is_suspicious(sum(log_probs), target_pieces):
        surprise = min(min(log_probs) - SURPRISING, 0.0)
    repeats = _longest_repetition(target_pieces) > _longest_repetition(source_pieces)
    source_words = set(_WORD.findall(source.casefold()))
    words = _WORD.findall(translation.casefold())
    return Evidence(
        log_prob=sum(log_probs) / max(len(log_probs), 1),
        surprise=surprise,
        coverage=len(covered) / max(len(source_pieces) - 1, 1),
        length=math.log(max(len(target_pieces), 1)),
        ratio=math.log(max(len(target_pieces), 1) / max(len(source_pieces), 1)),
        repetition=float(repeats),
        copied=sum(word in source_words for word in words) / max(len(words), 1),
        numbers=float(_numbers(source) != _numbers(translation)),
    )


def is_suspicious(log_prob: float, subwords: Sequence) -> bool:
    """Whether the least probable subword of a translation counts.

    This is so for the most improbable translations, and for those that repeat subwords at once,
    since errors often do. Only for these few, an engine may need a further pass.

    Args:
        log_prob: of the translation, natural logarithm.
        subwords: its subwords, or their ids.
    """
    if log_prob >= IMPROBABLE_REPETITION:
        return False
    return log_prob < IMPROBABLE or _longest_repetition(subwords) > 0


@dataclasses.dataclass(frozen=True)
class Calibration:
    """A model's logistic regression from evidence to confidence, fitted on its validation split.

    A translation counts as good if its chrF reaches `good_chrf`, as four fifths of that split do.
    """

    weights: dict[str, float]  # a factor for each field of Evidence
    bias: float
    good_chrf: float  # in percent
    sentences: Size  # that it was fitted to
    checkpoint: dict[str, Any]  # of which weights: CheckpointInfo.to_json()

    def __post_init__(self):
        check_fields(self)
        rule = f"must have {', '.join(Evidence._fields)}"
        is_complete = set(self.weights) == set(Evidence._fields)
        require(is_complete, "weights", rule, ", ".join(self.weights) or "none")

    def confidence(self, facts: Evidence) -> float:
        """Returns the probability that a translation is good, from 0 to 1."""
        known = facts._asdict()
        logit = self.bias + sum(known[name] * weight for name, weight in self.weights.items())
        return 1 / (1 + math.exp(-min(max(logit, -50.0), 50.0)))


def _numbers(text: str) -> Counter:
    """Counts the runs of digits of a text: "1,000" and "1.000" have the same."""
    return Counter(_DIGITS.findall(text))


def _longest_repetition(pieces: Sequence) -> int:
    """Returns the length of the longest sequence that is followed by itself, as "a b" in "a b a b".

    It is 0 without any, and at most LONGEST_REPETITION.
    """
    for length in range(min(LONGEST_REPETITION, len(pieces) // 2), 0, -1):
        equal = bytes(map(operator.eq, pieces, pieces[length:]))  # 1 where a subword comes again
        if b"\x01" * length in equal:
            return length
    return 0
