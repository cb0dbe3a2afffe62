"""The evidence for and against a translation, from its text and its search."""

import math
import re
from collections import Counter

from keras_transformer.core.search.hypotheses import is_suspicious, longest_repetition
from keras_transformer.use.store.calibration import Evidence
from keras_transformer.use.translate.answers import AlignedPair

SURPRISING = -3.0  # natural logarithm: a subword with a probability below 5%

_DIGITS = re.compile(r"\d+")
_WORD = re.compile(r"[^\W\d_]+")


def evidence(source: str, translation: str, pair: AlignedPair) -> Evidence:
    """Collects the evidence for a translation.

    Args:
        source, translation: both texts.
        pair: their subwords, with log probabilities; see Request.evidence for what may be inexact.
    """
    source_pieces, target_pieces, log_probs = pair.source_pieces, pair.target_pieces, pair.log_probs
    covered = {0, *pair.alignment[1:-1]} - {len(source_pieces) - 1}
    surprise = 0.0
    if is_suspicious(sum(log_probs), target_pieces):
        surprise = min(min(log_probs) - SURPRISING, 0.0)
    repeats = longest_repetition(target_pieces) > longest_repetition(source_pieces)
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


def _numbers(text: str) -> Counter:
    """Counts the runs of digits of a text: "1,000" and "1.000" have the same."""
    return Counter(_DIGITS.findall(text))
