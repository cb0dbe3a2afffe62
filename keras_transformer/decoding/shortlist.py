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
    prefix: tf.Tensor | None = None  # int32 [B, P], where its tokens stand in `tokens`


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

    def considered(self, source: tf.Tensor, prefix: tf.Tensor | None = None) -> Considered:
        """Finds the tokens for a batch of sources, int32 [B, S], and prefixes, int32 [B, P]."""
        batch, length = tf.unstack(tf.shape(source, tf.int64))
        found = tf.gather(self.likely, tf.reshape(source, [-1]))  # [B S, None]
        places = tf.stack([found.value_rowids() // length, tf.cast(found.values, tf.int64)], axis=1)
        ones = tf.ones_like(self.always)
        common = tf.scatter_nd(self.always[:, None], ones, [self.vocab_size])
        allowed = tf.tile(common[None] > 0, [batch, 1])  # [B, V]
        allowed = tf.tensor_scatter_nd_update(allowed, places, tf.fill(tf.shape(places)[:1], True))
        if prefix is not None:
            given = tf.where(prefix != PAD_ID)  # [prefix tokens, 2]
            token = tf.cast(tf.gather_nd(prefix, given), tf.int64)
            places = tf.stack([given[:, 0], token], axis=1)
            allowed = tf.tensor_scatter_nd_update(allowed, places, tf.fill(tf.shape(token), True))
        needed = tf.reduce_any(allowed, axis=0)  # [V]
        if prefix is not None:  # padding gets 0, the place of EOS or of less
            places = tf.cumsum(tf.cast(needed, tf.int32), exclusive=True)
            prefix = tf.gather(places, prefix)
        tokens = tf.cast(tf.where(needed)[:, 0], tf.int32)
        count = tf.size(tokens)
        # best_extensions ranks blocks, and wants as many candidates as two of them have.
        padding = tf.maximum(-(-count // BLOCK), 2) * BLOCK - count
        allowed = tf.pad(tf.gather(allowed, tokens, axis=1), [[0, 0], [0, padding]])
        penalties = tf.where(allowed, 0.0, -math.inf)
        return Considered(tf.pad(tokens, [[0, padding]]), penalties, prefix)
