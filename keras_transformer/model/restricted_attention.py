"""Restricted self-attention (section 4, last row of Table 1): each position sees r around it.

Computed in blocks: a block of queries meets its own keys and r // 2 more on each side, as small
products that are all alike. Time and memory are O(r n d), and nothing of size n x n is ever made.
`masks.window_mask` says which positions are the neighbourhood.
"""

import keras
from keras import ops

from keras_transformer.model.attention import MultiHeadAttention, scaled_dot_product_attention
from keras_transformer.model.masks import all_of, window_mask

# Queries of a block at least: products of fewer rows take no less time.
MIN_BLOCK = 32


@keras.saving.register_keras_serializable(package="keras_transformer")
class RestrictedSelfAttention(MultiHeadAttention):
    """Multi-head self-attention within the neighbourhood of size r = `window` (section 4).

    Has the parameters of MultiHeadAttention, under the same names. Equals it under the mask of the
    neighbourhood, except at padding that sees nothing but padding: the one gives such a row the
    mean of all values, the other that of a block. With `attention_mask` or
    `return_attention_scores` it computes all scores, in O(n^2 d).

    Args:
        num_heads, key_dim, value_dim, dropout: as of MultiHeadAttention.
        window: r, at least 1.

    Call arguments and Returns: as of MultiHeadAttention, without `memory`.
    """

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        window: int,
        value_dim: int | None = None,
        dropout: float = 0.0,
        **kwargs,
    ):
        super().__init__(num_heads, key_dim, value_dim, dropout, **kwargs)
        self.settings["window"] = self.window = window

    def project_heads(self, inputs, memory=None):
        if memory is not None:
            raise ValueError("memory must be None: restricted attention is self-attention.")
        return super().project_heads(inputs)

    def attend(
        self, heads, attention_mask, not_padding, use_causal_mask, return_attention_scores, dropout
    ):
        if attention_mask is not None or return_attention_scores:
            positions = ops.arange(ops.shape(heads[0])[2])
            near = window_mask(positions, positions, self.window, use_causal_mask)
            mask = all_of([near, attention_mask])
            return super().attend(heads, mask, not_padding, False, return_attention_scores, dropout)
        arguments = (self.window, use_causal_mask, not_padding, dropout)
        return restricted_attention(*heads, *arguments), None


def restricted_attention(
    queries, keys, values, window, causal=False, not_padding=None, dropout=None
):
    """Equation 1 for queries that each see the neighbourhood of size `window` only.

    `queries` and `keys` are [B, H, P, d_k], `values` and the result [B, H, P, d_v]; `not_padding`
    is bool [B, P], None where there is no padding. From window = 2 P - 2 on, nothing is restricted.
    """
    length = ops.shape(queries)[2]
    block, halo = block_sizes(length, window)
    if not_padding is None:
        not_padding = ops.ones((1, length), "bool")
    keys_mask = slabs(not_padding[:, None, :, None], block, halo, causal)  # [B, 1, blocks, span, 1]
    span = ops.shape(keys_mask)[3]
    near = window_mask(ops.arange(block), ops.arange(span) - halo, window, causal)  # [block, span]
    outputs, _ = scaled_dot_product_attention(
        blocks(queries, block),
        slabs(keys, block, halo, causal),
        slabs(values, block, halo, causal),
        ops.logical_and(near, ops.swapaxes(keys_mask, 3, 4)),  # [B, 1, blocks, block, span]
        dropout,
    )  # [B, H, blocks, block, d_v]
    batch, heads, count, block, width = ops.shape(outputs)
    return ops.reshape(outputs, (batch, heads, count * block, width))[:, :, :length]


def block_sizes(length, window):
    """Chooses how many queries make a block, and how many keys it sees on each side of its own.

    A sequence that would fill two blocks or less is one block without sides, which no query pays
    for with more keys than it would see in blocks: r queries a block, 2 r keys each. If the length
    is a scalar tensor, so are both numbers.
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
    """Cuts positions into what each block sees: [B, H, P, d] -> [B, H, blocks, span, d].

    That is the block and `halo` positions, at most `block`, on each side of it; on the left alone
    where `causal`. Beyond the edges there are zeros.
    """
    edge = ((0, 0), (0, 0), (1, 1), (0, 0), (0, 0))
    padded = ops.pad(blocks(inputs, block), edge)  # [B, H, blocks + 2, block, d]
    parts = [padded[:, :, :-2, block - halo :], padded[:, :, 1:-1]]
    if not causal:
        parts.append(padded[:, :, 2:, :halo])
    return ops.concatenate(parts, axis=3)
