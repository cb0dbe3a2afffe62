"""Translations that are probably bad: improbable ones, and those that repeat subwords at once."""

import operator
from collections.abc import Sequence

# Natural logarithms, of whole translations: see is_suspicious.
IMPROBABLE = -15.0
IMPROBABLE_REPETITION = -10.0
LONGEST_REPETITION = 8  # subwords


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
    return log_prob < IMPROBABLE or longest_repetition(subwords) > 0


def longest_repetition(pieces: Sequence) -> int:
    """Returns the length of the longest sequence that is followed by itself, as "a b" in "a b a b".

    It is 0 without any, and at most LONGEST_REPETITION.
    """
    for length in range(min(LONGEST_REPETITION, len(pieces) // 2), 0, -1):
        equal = bytes(map(operator.eq, pieces, pieces[length:]))  # 1 where a subword comes again
        if b"\x01" * length in equal:
            return length
    return 0
