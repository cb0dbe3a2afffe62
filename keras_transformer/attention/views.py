"""The three attentions of one sentence pair with its subwords, and what each head does in numbers.

All pictures and tables of attention are made of these. The heads of Figure 3 attend far away: a
large distance. The heads of Figure 4 attend sharply: a low entropy. Heads that follow positions
rather than words have a large share on the diagonal or beside it; heads that rest have theirs on
the sentence's boundary or on punctuation.
"""

from collections import namedtuple
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from keras_transformer.errors import InputError
from keras_transformer.text_table import text_table

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


# Numbers of one head, each a mean over the queries. Shares are of weight 1. Query i of Q stands at
# key i in self-attention, where key i of the decoder is the last word written; between languages,
# at i (P - 1) / (Q - 1) of P keys, on the straight line from the first words to the last.
MEASURES = {
    "entropy": "of the weights, in nats: 0 for one key, log n for n equal ones",
    "distance": "mean |i − j|, i being where the subword stands among the keys j",
    "diagonal": "share of the nearest key, j = i",
    "previous": "share of j = i − 1, over the subwords that have it",
    "following": "share of j = i + 1, over the subwords that have it",
    "boundary": "share of </s>; in decoder self-attention, of <s>",
    "punctuation": "share of keys without letter or digit, </s> and <s> left out",
}
HeadSummary = namedtuple("HeadSummary", ("kind", "layer", "head", *MEASURES))  # both from 1


def head_summary(views: Sequence[AttentionView]) -> list[HeadSummary]:
    """Measures every head of every view, in their order."""
    return [
        HeadSummary(view.kind, n + 1, h + 1, *_numbers(view, view.weights[n, h]))
        for view in views
        for n, h in np.ndindex(view.weights.shape[:2])
    ]


def _numbers(view: AttentionView, weights: np.ndarray) -> list[float]:
    """The MEASURES of one head, [Q, P]."""
    weights = weights.astype(np.float64)
    queries, keys = weights.shape
    places = np.arange(queries) * (keys - 1) / max(queries - 1, 1)  # i
    nearest = np.floor(places + 0.5).astype(int)
    logs = np.log(np.where(weights > 0, weights, 1.0))
    distances = np.abs(places[:, None] - np.arange(keys))
    boundary = np.array([key in (BEGIN, END) for key in view.keys])
    marks = np.array([not any(map(str.isalnum, key)) for key in view.keys]) & ~boundary
    numbers = [
        -(weights * logs).sum(axis=1).mean(),
        (weights * distances).sum(axis=1).mean(),
        *(_share(weights, nearest + offset) for offset in (0, -1, 1)),
        weights[:, boundary].sum(axis=1).mean(),
        weights[:, marks].sum(axis=1).mean(),
    ]
    return [float(number) + 0.0 for number in numbers]  # -0.0 is 0


def _share(weights: np.ndarray, places: np.ndarray) -> float:
    """Mean weight of each query's key at `places`, int [Q], over those that are there."""
    there = (places >= 0) & (places < weights.shape[1])
    return weights[there, places[there]].mean() if there.any() else 0.0


def summary_table(rows: Sequence[HeadSummary]) -> str:
    """Formats rows as a table of text."""
    cells = [(*row[:3], *(round(number, 3) for number in row[3:])) for row in rows]
    return text_table(HeadSummary._fields, cells)
