"""The three attentions of one sentence pair, each with the subwords at its two sides.

All pictures and tables of attention are made of these.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from keras_transformer.errors import InputError

if TYPE_CHECKING:  # it imports TensorFlow
    from keras_transformer.decoding.translator import PairAttention

# Field of PairAttention of each kind.
FIELDS = {"encoder": "encoder", "decoder": "decoder", "cross": "memory"}
KINDS = tuple(FIELDS)
BEGIN, END = "<s>", "</s>"


class AttentionView(NamedTuple):
    """One kind of attention: who attends to whom in every layer and head."""

    kind: str  # one of KINDS
    queries: list[str]  # Q subwords that attend
    keys: list[str]  # P subwords attended to
    weights: np.ndarray  # float32 [N, H, Q, P], rows summing to 1


def attention_views(found: "PairAttention") -> list[AttentionView]:
    """Pairs the attention of a sentence pair with its subwords, in the order of KINDS.

    A target subword as a query stands for its prediction: it attends to the subwords written
    before it, of which the first is "<s>".

    Raises:
        InputError: if a weight is not finite, as the weights of the model may not be.
    """
    source, target = found.source_pieces, found.target_pieces
    sides = [(source, source), (target, [BEGIN, *target[:-1]]), (target, source)]
    views = []
    for (kind, field), (queries, keys) in zip(FIELDS.items(), sides, strict=True):
        weights = getattr(found, field)
        for bad in weights[~np.isfinite(weights)]:
            raise InputError(f"weights of the {kind} attention must be finite. Received: {bad}")
        views.append(AttentionView(kind, queries, keys, weights))
    return views


def word_labels(pieces: Sequence[str]) -> list[str]:
    """Writes subwords for a reader: without marks, but "·" before one that continues a word.

    ["▁reg", "ister", ".", "</s>"] of SentencePiece and ["reg", "##ister", ".", "</s>"] of WordPiece
    are both ["reg", "·ister", ".", "</s>"].
    """
    marked = any(piece.startswith("▁") for piece in pieces)
    labels = []
    for piece in pieces:
        text = piece.removeprefix("▁" if marked else "##")
        continues = (text == piece) == marked
        spaced = text[:1].isalnum() and text < "\u2e80"  # most later scripts have no spaces
        labels.append(("·" + text if continues and spaced else text) or piece)
    return labels
