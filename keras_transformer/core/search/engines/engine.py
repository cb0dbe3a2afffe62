"""The interface of an engine, which searches, scores and explains sequences of ids.

Everything above search/ uses an engine through these four functions, without knowing which one it
is. TensorFlow's engine is in tensorflow_engine.py. This file does not import TensorFlow.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from keras_transformer.core.search.hypotheses import Hypotheses

Rows = Sequence[np.ndarray]  # int32 each: the ids of B sentences of any length


def select(rows: Sequence | None, indices: Sequence[int]) -> Sequence | None:
    """Returns some of the rows; None or an empty list stays as it is."""
    return [rows[index] for index in indices] if rows else rows


class Request(NamedTuple):
    """A batch to search."""

    ids: Rows  # sources, each with EOS; EOS alone stands for an empty sentence
    prefix: Rows | None = None  # a prefix for each source's target, without EOS
    phrases: Sequence[Rows] | None = None  # phrases that each source's target must contain
    guaranteed: int = 1  # how many hypotheses must be the best ones; an engine may omit others
    alpha: float = 0.6  # for the length penalty (section 6.1)
    # Which sources need alignments; none if empty. An engine may not have them.
    aligned: Sequence[bool] = ()
    token_scores: bool = False  # whether these sources also need the scores of tokens, likewise
    # Whether all sources need alignments and the scores of tokens as evidence (confidence.py). For
    # sources that do not need them otherwise, the first token may be aligned with any position, and
    # the tokens of a hypothesis that is not suspicious may have their mean as the score of each.
    evidence: bool = False

    @property
    def needs_alignment(self) -> Sequence[bool]:
        """Whether each source needs an alignment, for the caller or as evidence."""
        return [True] * len(self.ids) if self.evidence else self.aligned

    def select(self, indices: Sequence[int]) -> "Request":
        """Returns the request for some of the sources."""
        return self._replace(
            ids=select(self.ids, indices),
            prefix=select(self.prefix, indices),
            phrases=select(self.phrases, indices),
            aligned=select(self.aligned, indices),
        )


class Explained(NamedTuple):
    """The log probability and the alignment of each token in given targets."""

    # float32 [B, T], natural logarithm, 0 at padding; None if only aligned, by the search
    log_probs: np.ndarray | None
    alignment: np.ndarray  # int32 [B, T], a source position for each target token
    # The attention of all heads, if requested; see alignment.AttentionMaps.
    encoder: np.ndarray | None = None  # float32 [B, N, H, S, S]
    decoder: np.ndarray | None = None  # float32 [B, N, H, T, T]
    memory: np.ndarray | None = None  # float32 [B, N, H, T, S]


class Engine(Protocol):
    """A model and its search options.

    Attributes:
        name: "tensorflow" or "ctranslate2".
        streams: the optimal number of concurrent batches, each in one of the caller's threads.
        functions: the names of its functions, as in an export's signatures.
    """

    name: str
    streams: int
    functions: Sequence[str]

    def search(self, request: Request) -> Hypotheses:
        """Finds the best hypotheses."""

    def search_greedily(self, request: Request) -> Hypotheses:
        """Finds the single hypothesis of greedy search; may omit scores, which take time."""

    def search_alphas(self, ids: Rows, alphas: Sequence[float]) -> Hypotheses:
        """Finds the best hypothesis for each length penalty, in their order.

        Only engines with the function `alpha_ids` can.
        """

    def score(self, source: Rows, target: Rows) -> np.ndarray:
        """Computes the log probabilities of targets, which end in EOS: float32 [B]."""

    def explain(self, source: Rows, target: Rows, attention: bool = False) -> Explained:
        """Aligns targets with their sources; with `attention`, also returns all heads' weights."""
