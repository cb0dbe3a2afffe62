"""The hypotheses that a search keeps and an engine returns, and which of them are suspicious.

Does not import TensorFlow.
"""

import operator
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from keras_transformer.core.config import EOS_ID

# Natural logarithms, of whole translations: see is_suspicious.
IMPROBABLE = -15.0
IMPROBABLE_REPETITION = -10.0
LONGEST_REPETITION = 8  # subwords


class Hypotheses(NamedTuple):
    """K hypotheses for each of B sentences: tensors in a graph, and arrays outside.

    They are the best first. Missing ones have length 0 and score -inf. An empty sentence has the
    empty hypothesis, with score 0. What is not computed is () in a search, and None in arrays.

    The names are those of a graph's outputs. Exports contain them, so they stay.
    """

    ids: Any  # int32 [B, K, T], with EOS, padded
    length: Any = None  # int32 [B, K], EOS included
    score: Any = None  # float32 [B, K], log probability / length penalty (section 6.1)
    log_prob: Any = None  # float32 [B, K], natural logarithm
    # For each token, if requested: its source position, int32 [B, K, T]; and its log probability,
    # float32 [B, K, T], natural logarithm, 0 at padding.
    alignment: Any = None
    token_log_prob: Any = None
    is_finite: Any = None  # bool [B, K], False if a logit was NaN; of greedy search alone

    @classmethod
    def of(cls, outputs: Mapping[str, np.ndarray]) -> "Hypotheses":
        """Returns the hypotheses with these arrays; exports of earlier versions may lack some."""
        return cls(*[outputs.get(name) for name in cls._fields])

    @property
    def outputs(self) -> dict[str, Any]:
        """The tensors by name: a graph's outputs."""
        return {name: part for name, part in self._asdict().items() if not isinstance(part, tuple)}

    @property
    def unfinished(self) -> np.ndarray:
        """Whether a hypothesis reached its length limit before EOS, bool [B, K]."""
        return (self.length > 0) & ~(self.ids == EOS_ID).any(axis=2)


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
