"""The interface of an engine, which searches, scores and explains sequences of ids.

Everything above search/ uses an engine through these four functions and does not know which one it
is. TensorFlow's engine is tensorflow_engine.py. This file does not import TensorFlow.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from keras_transformer.config import EOS_ID

Rows = Sequence[np.ndarray]  # int32 each: the ids of B sentences, of any lengths


class Request(NamedTuple):
    """A batch to search."""

    ids: Rows  # of the sources, each with EOS; EOS alone stands for an empty sentence
    prefix: Rows | None = None  # what the target of each source begins with, without EOS
    phrases: Sequence[Rows] | None = None  # what the target of each source must contain
    exact: int = 1  # how many hypotheses must be the best ones; an engine may leave out others
    alpha: float = 0.6  # of the length penalty (section 6.1)


class Found(NamedTuple):
    """K hypotheses for each of B sources, best first.

    Where there are fewer than K, the rest have length 0 and score -inf. An empty sentence has the
    hypothesis without ids, with score 0.
    """

    ids: np.ndarray  # int32 [B, K, T], with EOS, padded
    lengths: np.ndarray  # int32 [B, K], EOS counted
    scores: np.ndarray | None  # float32 [B, K], log-probability / length penalty (section 6.1)
    log_probs: np.ndarray | None  # float32 [B, K], natural logarithm

    @property
    def unfinished(self) -> np.ndarray:
        """Whether a hypothesis reached its length limit before EOS, bool [B, K]."""
        return (self.lengths > 0) & ~(self.ids == EOS_ID).any(axis=2)


class Explained(NamedTuple):
    """How probable each token of given targets is, and where it comes from."""

    # float32 [B, T], natural logarithm, 0 at padding; None if it is not asked for and takes time
    log_probs: np.ndarray | None
    alignment: np.ndarray  # int32 [B, T], a source position for each target token
    # The attention of all heads, if it was asked for; see alignment.AttentionMaps.
    encoder: np.ndarray | None = None  # float32 [B, N, H, S, S]
    decoder: np.ndarray | None = None  # float32 [B, N, H, T, T]
    memory: np.ndarray | None = None  # float32 [B, N, H, T, S]


class Engine(Protocol):
    """A model, and the options of its search.

    Attributes:
        streams: how many batches it computes fastest at a time, each in a thread of its caller.
        functions: the names of what it can be asked for, in the words of an export's signatures.
    """

    streams: int
    functions: Sequence[str]

    def search(self, request: Request) -> Found:
        """Finds the best hypotheses."""

    def search_greedily(self, request: Request) -> Found:
        """Finds the one hypothesis of greedy search; it may leave out scores, which take time."""

    def score(self, source: Rows, target: Rows) -> np.ndarray:
        """Computes the log-probabilities of targets, which end in EOS: float32 [B]."""

    def explain(
        self, source: Rows, target: Rows, attention: bool = False, log_probs: bool = True
    ) -> Explained:
        """Aligns targets with their sources; with `attention`, for all heads."""


def penalized(log_prob: float, length: int, alpha: float) -> float:
    """The score of a target of `length` tokens, EOS counted: log P / lp (beam_search.py)."""
    return log_prob / ((5 + length) / 6) ** alpha
