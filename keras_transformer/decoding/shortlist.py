"""A lexical shortlist: the target tokens that a search considers for a source, of all V.

Most of the time of a step goes to the logits of tokens that no translation of the source contains.
A shortlist says for each source token which target tokens may come of it, and which are always
possible; pipelines/shortlist.py learns it. The softmax matrix is gathered once per batch, for what
its sentences need together. The logits of what a sentence itself does not need are -inf, so that
its translation does not depend on the others; log-probabilities are of the tokens that are left.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_transformer.config import PAD_ID
from keras_transformer.decoding.candidates import BLOCK


class Considered(NamedTuple):
    """What the searches of a batch consider: C tokens, C a multiple of BLOCK."""

    tokens: tf.Tensor  # int32 [C], ascending, padding after them
    penalties: tf.Tensor  # float32 [B, C], added to logits: 0 where a sentence may use a token
    places: tf.Tensor  # int32 [V], where a token stands in `tokens`, if it does

    def places_of(self, ids: tf.Tensor) -> tf.Tensor:
        """Where tokens stand in `tokens`: int32 [...] -> int32 [...]; 0, or EOS's, for padding."""
        return tf.gather(self.places, ids)


class Shortlist(tf.Module):
    """The tables of a shortlist, which a SavedModel can contain.

    Args:
        likely: for each source token, the ids of what may come of it.
        always: ids of what every sentence may use, EOS included.
        vocab_size: V, of the target.
    """

    def __init__(self, likely: Sequence[Sequence[int]], always: Sequence[int], vocab_size: int):
        super().__init__(name="shortlist")
        self.vocab_size = vocab_size
        splits = np.cumsum([0, *map(len, likely)])
        values = np.concatenate([np.asarray(row, np.int32) for row in likely])
        self.values = tf.Variable(values, trainable=False)
        self.splits = tf.Variable(splits, trainable=False, dtype=tf.int64)
        self.always = tf.Variable(np.asarray(always, np.int32), trainable=False)

    @property
    def likely(self) -> tf.RaggedTensor:
        """int32 [source tokens, None], as they were given."""
        return tf.RaggedTensor.from_row_splits(self.values, self.splits, validate=False)

    @property
    def sizes(self) -> dict[str, int]:
        """For a model card: the most tokens of a source token, and how many are always possible."""
        return {"likely": int(self.likely.bounding_shape(1)), "always": self.always.shape[0]}

    def considered(self, source: tf.Tensor, given: tf.Tensor | None = None) -> Considered:
        """Finds the tokens that the translations of a batch may consist of.

        Args:
            source: int32 [B, S], padded.
            given: int32 [B, P], padded: tokens that a translation may have in any case, such as
                those that it must begin with.
        """
        batch, length = tf.unstack(tf.shape(source, tf.int64))
        likely = tf.gather(self.likely, tf.reshape(source, [-1]))  # [B S, None]
        sentences = likely.value_rowids() // length
        likely_places = tf.stack([sentences, tf.cast(likely.values, tf.int64)], axis=1)
        always = tf.scatter_nd(
            self.always[:, None], tf.ones_like(self.always), [self.vocab_size]
        )  # [V]
        allowed = tf.tile(always[None] > 0, [batch, 1])  # [B, V]
        allowed = _set_true(allowed, likely_places)
        if given is not None:
            given_places = tf.where(given != PAD_ID)  # [given tokens, 2]
            given_tokens = tf.cast(tf.gather_nd(given, given_places), tf.int64)
            allowed = _set_true(allowed, tf.stack([given_places[:, 0], given_tokens], axis=1))
        needed = tf.reduce_any(allowed, axis=0)  # [V]
        tokens = tf.cast(tf.where(needed)[:, 0], tf.int32)
        count = tf.size(tokens)
        # best_extensions ranks blocks, and needs at least two of them.
        padding = tf.maximum(-(-count // BLOCK), 2) * BLOCK - count
        allowed = tf.pad(tf.gather(allowed, tokens, axis=1), [[0, 0], [0, padding]])
        return Considered(
            tokens=tf.pad(tokens, [[0, padding]]),
            penalties=tf.where(allowed, 0.0, -math.inf),
            places=tf.cumsum(tf.cast(needed, tf.int32), exclusive=True),
        )


def _set_true(mask: tf.Tensor, places: tf.Tensor) -> tf.Tensor:
    """bool [B, V] with True at places, int64 [N, 2]."""
    return tf.tensor_scatter_nd_update(mask, places, tf.fill(tf.shape(places)[:1], True))
