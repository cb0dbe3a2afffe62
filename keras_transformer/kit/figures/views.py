"""The three kinds of attention for a sentence pair with its subwords, and measures of each head.

All pictures and tables of attention are made from these. The heads in Figure 3 attend far away: a
large distance. The heads in Figure 4 attend sharply: a low entropy. Heads that follow positions
rather than words have a large share on or next to the diagonal; idle heads attend to the sentence
boundary or to punctuation.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from keras_transformer.support.errors import InputError
from keras_transformer.support.text_table import text_table

if TYPE_CHECKING:  # it imports TensorFlow
    from keras_transformer.use.translate.answers import PairAttention

KINDS = ("encoder", "decoder", "cross")
BEGIN, END = "<s>", "</s>"


class AttentionView(NamedTuple):
    """One kind of attention, in every layer and head."""

    kind: str  # one of KINDS
    queries: list[str]  # Q subwords that attend
    keys: list[str]  # P subwords attended to
    weights: np.ndarray  # float32 [N, H, Q, P], rows summing to 1


def attention_views(pair: "PairAttention") -> list[AttentionView]:
    """Pairs the attention for a sentence pair with its subwords, in the order of KINDS.

    A decoder with SSRUs has no self-attention, and so no view "decoder".

    A target subword as a query stands for its prediction: it attends to the preceding subwords, the
    first of which is "<s>".

    Raises:
        InputError: if a weight is not finite, as with damaged models.
    """
    source = pair.source_pieces
    target = pair.target_pieces
    written = [BEGIN, *target[:-1]]  # the decoder's input when it predicts each of `target`
    views = [
        AttentionView("encoder", source, source, pair.encoder),
        AttentionView("decoder", target, written, pair.decoder),
        AttentionView("cross", target, source, pair.memory),
    ]
    for view in views:
        if not np.isfinite(view.weights).all():
            bad = view.weights[~np.isfinite(view.weights)][0]
            received = f"{bad} in the {view.kind} attention"
            raise InputError("attention", "must have finite weights", received)
    return [view for view in views if len(view.weights) > 0]


def word_labels(pieces: Sequence[str]) -> list[str]:
    """Formats subwords for readers: without marks, but with "·" before word continuations.

    SentencePiece's ["▁reg", "ister", ".", "</s>"] and WordPiece's ["reg", "##ister", ".", "</s>"]
    both become ["reg", "·ister", ".", "</s>"].
    """
    is_sentencepiece = any(piece.startswith("▁") for piece in pieces)
    labels = []
    for piece in pieces:
        if is_sentencepiece:  # marks pieces that begin a word
            text = piece.removeprefix("▁")
            continues_a_word = not piece.startswith("▁")
        else:  # WordPiece marks the others
            text = piece.removeprefix("##")
            continues_a_word = piece.startswith("##")
        has_spaces = text[:1].isalnum() and text < "\u2e80"  # most later scripts have no spaces
        if continues_a_word and has_spaces:
            text = "·" + text
        labels.append(text or piece)
    return labels


# Measures of a head, averaged over the queries. Shares are fractions of the total weight 1. Query i
# of Q is at key i in self-attention, where the decoder's key i is the last word written; in
# cross-attention, at i (P - 1) / (Q - 1) of P keys, on the straight line from first to last words.
MEASURES = {
    "entropy": "of the weights, in nats: 0 for one key, log n for n equal ones",
    "distance": "mean |i − j|, where i is the subword's position among the keys j",
    "diagonal": "share of the nearest key, j = i",
    "previous": "share of j = i − 1, over the subwords that have it",
    "following": "share of j = i + 1, over the subwords that have it",
    "boundary": "share of </s>; in decoder self-attention, of <s>",
    "punctuation": "share of keys without letter or digit, </s> and <s> left out",
}


class HeadSummary(NamedTuple):
    """The MEASURES of one head."""

    kind: str  # one of KINDS
    layer: int  # from 1
    head: int  # from 1
    entropy: float
    distance: float
    diagonal: float
    previous: float
    following: float
    boundary: float
    punctuation: float

    @property
    def measures(self) -> list[float]:
        """The numbers, in the order of MEASURES."""
        return list(self[3:])


def head_summary(views: Sequence[AttentionView]) -> list[HeadSummary]:
    """Measures every head in every view, in order."""
    summaries = []
    for view in views:
        layers, heads = view.weights.shape[:2]
        for layer, head in np.ndindex(layers, heads):
            summaries.append(_summary_of_head(view, layer, head))
    return summaries


def _summary_of_head(view: AttentionView, layer: int, head: int) -> HeadSummary:
    """Returns the measures of one head; layer and head are counted from 0."""
    weights = view.weights[layer, head].astype(np.float64)  # [Q, P]
    queries, keys = weights.shape
    diagonal = np.arange(queries) * (keys - 1) / max(queries - 1, 1)  # i
    nearest = np.floor(diagonal + 0.5).astype(int)
    logs = np.log(np.where(weights > 0, weights, 1.0))
    distances = np.abs(diagonal[:, None] - np.arange(keys))
    boundary = np.array([key in (BEGIN, END) for key in view.keys])
    marks = np.array([not any(map(str.isalnum, key)) for key in view.keys]) & ~boundary
    return HeadSummary(
        kind=view.kind,
        layer=layer + 1,
        head=head + 1,
        entropy=_number(-(weights * logs).sum(axis=1).mean()),
        distance=_number((weights * distances).sum(axis=1).mean()),
        diagonal=_number(_share(weights, nearest)),
        previous=_number(_share(weights, nearest - 1)),
        following=_number(_share(weights, nearest + 1)),
        boundary=_number(weights[:, boundary].sum(axis=1).mean()),
        punctuation=_number(weights[:, marks].sum(axis=1).mean()),
    )


def _number(value: float) -> float:
    """Converts to a Python number; -0.0 becomes 0.0."""
    return float(value) + 0.0


def _share(weights: np.ndarray, columns: np.ndarray) -> float:
    """Returns the mean weight of each query's key at `columns`, int [Q], over existing ones."""
    exists = (columns >= 0) & (columns < weights.shape[1])
    return weights[exists, columns[exists]].mean() if exists.any() else 0.0


def summary_table(rows: Sequence[HeadSummary]) -> str:
    """Formats rows as a text table."""
    cells = []
    for row in rows:
        numbers = [round(number, 3) for number in row.measures]
        cells.append([row.kind, row.layer, row.head, *numbers])
    return text_table(["kind", "layer", "head", *MEASURES], cells)
