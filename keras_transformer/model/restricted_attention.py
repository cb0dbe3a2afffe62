"""Restricted self-attention (section 4, last row of Table 1): each position sees r around it.

Computed in blocks: a block of queries meets its own keys and r // 2 more on each side, as small
products that are all alike. Time and memory are O(r n d), and nothing of size n x n is ever made.
`masks.window_mask` says which positions are the neighbourhood.
"""

import functools

from keras import ops

from keras_transformer.config import TransformerConfig
from keras_transformer.model.attention import MultiHeadAttention, scaled_dot_product_attention
from keras_transformer.model.masks import window_mask

# Queries of a block at least: products of fewer rows take no less time.
MIN_BLOCK = 32


def self_attention(config: TransformerConfig, causal: bool = False, **kwargs) -> MultiHeadAttention:
    """Makes the self-attention that `config` asks for, restricted or not.

    Args:
        config: the model's.
        causal: whether a restricted one hides later positions; the other is told by its mask.
    """
    if config.attention_window is None:
        return MultiHeadAttention(config, **kwargs)
    return RestrictedSelfAttention(config, causal, **kwargs)


class RestrictedSelfAttention(MultiHeadAttention):
    """Multi-head self-attention within the neighbourhood of size r = `config.attention_window`.

    Has the parameters of MultiHeadAttention, under the same names. Equals it under the mask of the
    neighbourhood, except at padding that sees nothing but padding: the one gives such a row the
    mean of all values, the other that of a block.

    Args:
        causal: whether positions see no later ones.

    Call arguments:
        queries: [B, P, D].
        attention_mask: bool [B, 1, 1, P], True at real tokens; None where all are.
        training: whether to drop out attention weights.

    Returns:
        [B, P, D].
    """

    def __init__(self, config: TransformerConfig, causal: bool = False, **kwargs):
        super().__init__(config, **kwargs)
        self.causal = causal

    def call(self, queries, attention_mask=None, training=False):
        real = None if attention_mask is None else attention_mask[:, 0, 0]
        outputs = restricted_attention(
            *self.project_queries_keys_values(queries),
            window=self.config.attention_window,
            causal=self.causal,
            real=real,
            dropout=functools.partial(self.dropout, training=training),
        )
        return self.project_outputs(outputs)

    def attend(self, queries, attention_mask=None, memory=None, training=False):
        """What `call` does, with the attention weights: [B, P, D], [B, H, P, P].

        To have all weights at once it computes all scores, in O(n^2 d).
        """
        positions = ops.arange(ops.shape(queries)[1])
        mask = window_mask(positions, positions, self.config.attention_window, self.causal)
        if attention_mask is not None:
            mask = ops.logical_and(mask, attention_mask)
        return super().attend(queries, mask, memory, training)


def restricted_attention(queries, keys, values, window, causal=False, real=None, dropout=None):
    """Equation 1 for queries that each see the neighbourhood of size `window` only.

    Args:
        queries, keys: [B, H, P, d_k].
        values: [B, H, P, d_v].
        window: r, at least 1; from 2 P - 2 on, nothing is restricted.
        causal: whether later keys are forbidden too.
        real: bool [B, P], True at real tokens; None where all are.
        dropout: applied to the weights where given.

    Returns:
        [B, H, P, d_v].
    """
    length = ops.shape(queries)[2]
    block, halo = block_sizes(length, window)
    if real is None:
        real = ops.ones((1, length), "bool")
    real = slabs(real[:, None, :, None], block, halo, causal)  # [B, 1, blocks, span, 1]
    span = ops.shape(real)[3]
    near = window_mask(ops.arange(block), ops.arange(span) - halo, window, causal)  # [block, span]
    outputs, _ = scaled_dot_product_attention(
        blocks(queries, block),
        slabs(keys, block, halo, causal),
        slabs(values, block, halo, causal),
        ops.logical_and(near, ops.swapaxes(real, 3, 4)),  # [B, 1, blocks, block, span]
        dropout,
    )  # [B, H, blocks, block, d_v]
    batch, heads, count, block, width = ops.shape(outputs)
    return ops.reshape(outputs, (batch, heads, count * block, width))[:, :, :length]


def block_sizes(length, window):
    """Chooses how many queries make a block, and how many keys it sees on each side of its own.

    A sequence that would fill two blocks or less is one block without sides, which no query pays
    for with more keys than it would see in blocks: r queries a block, 2 r keys each.

    Args:
        length: P, an int or int scalar tensor.
        window: r.

    Returns:
        Two ints, or int scalar tensors where `length` is one.
    """
    block, halo = max(window, MIN_BLOCK), window // 2
    alone = length <= 2 * block
    if isinstance(alone, bool):
        return (max(length, 1), 0) if alone else (block, halo)
    return ops.where(alone, ops.maximum(length, 1), block), ops.where(alone, 0, halo)


def blocks(inputs, block):
    """Cuts positions into blocks, the last filled up: [B, H, P, d] -> [B, H, blocks, block, d]."""
    batch, heads, length, width = ops.shape(inputs)
    count = -(-length // block)
    inputs = ops.pad(inputs, ((0, 0), (0, 0), (0, count * block - length), (0, 0)))
    return ops.reshape(inputs, (batch, heads, count, block, width))


def slabs(inputs, block, halo, causal):
    """Cuts positions into what the queries of each block see.

    Args:
        inputs: [B, H, P, d].
        block: positions of a block.
        halo: positions on each side of it, at most `block`; on the left alone where `causal`.

    Returns:
        [B, H, blocks, span, d], with span = halo + block (+ halo); zeros beyond the edges.
    """
    edge = ((0, 0), (0, 0), (1, 1), (0, 0), (0, 0))
    padded = ops.pad(blocks(inputs, block), edge)  # [B, H, blocks + 2, block, d]
    parts = [padded[:, :, :-2, block - halo :], padded[:, :, 1:-1]]
    if not causal:
        parts.append(padded[:, :, 2:, :halo])
    return ops.concatenate(parts, axis=3)
