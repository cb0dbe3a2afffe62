"""The three attentions of one sentence pair, each with the words at its two sides.

All pictures and tables of attention are made of these: attention_heads, attention_page,
attention_pictures.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from keras_transformer.errors import InputError

if TYPE_CHECKING:  # it imports TensorFlow
    from keras_transformer.decoding.attention_maps import AttentionMaps

# The field of AttentionMaps that holds each kind of attention.
FIELDS = {"encoder": "encoder", "decoder": "decoder", "cross": "memory"}
KINDS = tuple(FIELDS)
BEGIN, END = "<s>", "</s>"
WORD_BEGIN, JOINER = "▁", "##"  # of SentencePiece, and of WordPiece
UNSPACED = 0x2E80  # from this character on, most scripts are written without spaces
CONTINUES = "·"  # stands before a piece that continues a word


class AttentionView(NamedTuple):
    """One kind of attention: who attends to whom in every layer and head."""

    kind: str  # one of KINDS
    queries: list[str]  # Q subwords that attend
    keys: list[str]  # P subwords attended to
    weights: np.ndarray  # float32 [N, H, Q, P], rows summing to 1


def attention_views(
    source_pieces: Sequence[str], target_pieces: Sequence[str], maps: "AttentionMaps"
) -> list[AttentionView]:
    """Pairs the attention maps of one sentence pair with their subwords, in the order of KINDS.

    A target subword as a query stands for its prediction: it attends to the subwords written
    before it, of which the first is "<s>".

    Args:
        source_pieces: the S subwords of the source, "</s>" included.
        target_pieces: the T subwords of the target, "</s>" included.
        maps: the attention maps of that pair, B = 1.

    Raises:
        InputError: if the shape of a map does not fit the pieces, or a value is not a weight.
    """
    source, target = list(source_pieces), list(target_pieces)
    sides = [(source, source), (target, [BEGIN, *target[:-1]]), (target, source)]
    views = []
    for kind, (queries, keys), weights in zip(KINDS, sides, maps, strict=True):
        weights = np.asarray(weights, np.float32)
        wanted = (1, len(queries), len(keys))
        if weights.ndim != 5 or weights.shape[::3] + weights.shape[4:] != wanted:
            rule = f"the {kind} attention map must be [1, N, H, {len(queries)}, {len(keys)}]"
            raise InputError(f"{rule}. Received: {list(weights.shape)}")
        if not (np.isfinite(weights).all() and weights.min(initial=0) >= 0):
            rule = f"weights of the {kind} attention map must be finite and not negative"
            bad = weights[~(np.isfinite(weights) & (weights >= 0))][0]
            raise InputError(f"{rule}. Received: {bad}")
        views.append(AttentionView(kind, queries, keys, weights[0]))
    return views


def word_labels(pieces: Sequence[str]) -> list[str]:
    """Writes subwords for a reader: without marks, but CONTINUES before one inside a word.

    ["▁reg", "ister", ".", "</s>"] and ["reg", "##ister", ".", "</s>"] are both
    ["reg", "·ister", ".", "</s>"].
    """
    wordpiece = any(piece.startswith(JOINER) for piece in pieces)
    sentencepiece = not wordpiece and any(piece.startswith(WORD_BEGIN) for piece in pieces)
    labels = []
    for piece in pieces:
        text = piece.removeprefix(JOINER if wordpiece else WORD_BEGIN)
        goes_on = len(text) < len(piece) if wordpiece else sentencepiece and text == piece
        spaced = text[:1].isalnum() and ord(text[0]) < UNSPACED
        labels.append((CONTINUES + text if goes_on and spaced else text) or piece)
    return labels
