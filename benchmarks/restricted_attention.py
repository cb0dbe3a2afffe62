"""Restricted self-attention in O(r n d), for benchmarks/layers.py (section 4, last row of Table 1).

Each position attends to positions at most r // 2 away. The library computes this with a mask, in
O(n^2 d). Here the positions are split into blocks: the queries of a block attend to the keys of the
block and r // 2 more on each side. The products are small and all of the same size, and no n x n
tensor is ever created.
"""

from keras import ops

from keras_transformer.model.attention import MultiHeadAttention, scaled_dot_product_attention

# The smallest number of queries in a block: products with fewer rows are no faster.
MIN_BLOCK = 32


class RestrictedSelfAttention(MultiHeadAttention):
    """MultiHeadAttention with a window, with the same weights but computed in blocks.

    It supports neither padding nor dropout.
    """

    def call(self, query):
        queries = self._split_heads(self.query_dense(query), self.key_dim)  # [B, H, n, d_k]
        keys = self._split_heads(self.key_dense(query), self.key_dim)  # [B, H, n, d_k]
        values = self._split_heads(self.value_dense(query), self.value_dim)  # [B, H, n, d_v]
        heads = restricted_attention(queries, keys, values, self.window)
        return self.output_dense(self._concatenate_heads(heads))


def restricted_attention(queries, keys, values, window: int):
    """Computes equation 1 where each query attends only to a neighbourhood of size r = `window`.

    Args:
        queries: [B, H, n, d_k].
        keys: [B, H, n, d_k].
        values: [B, H, n, d_v].
        window: r, at least 1.

    Returns:
        [B, H, n, d_v].
    """
    length = queries.shape[2]
    block, halo = block_sizes(length, window)
    outputs, _ = scaled_dot_product_attention(
        in_blocks(queries, block),
        with_neighbours(keys, block, halo),
        with_neighbours(values, block, halo),
        neighbourhood(length, window, block, halo),
    )  # [B, H, blocks, block, d_v]
    batch, heads, blocks, block, width = ops.shape(outputs)
    return ops.reshape(outputs, (batch, heads, blocks * block, width))[:, :, :length]


def block_sizes(length: int, window: int) -> tuple[int, int]:
    """Chooses the number of queries in a block, and of further keys on each side of it.

    A sequence of at most two blocks becomes a single block without further keys. No query then sees
    more keys than in blocks, where r queries see 2 r keys.
    """
    block = max(window, MIN_BLOCK)
    if length <= 2 * block:
        return length, 0
    return block, window // 2


def in_blocks(inputs, block: int):
    """Splits positions into blocks; the last one is padded with zeros.

    [B, H, n, d] -> [B, H, blocks, block, d].
    """
    batch, heads, length, width = ops.shape(inputs)
    blocks = -(-length // block)
    inputs = ops.pad(inputs, ((0, 0), (0, 0), (0, blocks * block - length), (0, 0)))
    return ops.reshape(inputs, (batch, heads, blocks, block, width))


def with_neighbours(inputs, block: int, halo: int):
    """Extends each block by `halo` positions on each side, zeros where there are none.

    [B, H, n, d] -> [B, H, blocks, halo + block + halo, d].
    """
    one_more = ((0, 0), (0, 0), (1, 1), (0, 0), (0, 0))  # one block at each end
    padded = ops.pad(in_blocks(inputs, block), one_more)  # [B, H, blocks + 2, block, d]
    left = padded[:, :, :-2, block - halo :]
    own = padded[:, :, 1:-1]
    right = padded[:, :, 2:, :halo]
    return ops.concatenate([left, own, right], axis=3)


def neighbourhood(length: int, window: int, block: int, halo: int):
    """Marks the keys in each query's neighbourhood: bool [blocks, block, halo + block + halo].

    The zeros before the first and after the last position are in no neighbourhood.
    """
    starts = ops.arange(0, length, block)[:, None]  # [blocks, 1]
    queries = starts + ops.arange(block)[None]  # [blocks, block], positions
    keys = starts + ops.arange(-halo, block + halo)[None]  # [blocks, halo + block + halo]
    near = ops.abs(queries[:, :, None] - keys[:, None, :]) <= window // 2
    exists = ops.logical_and(keys >= 0, keys < length)
    return ops.logical_and(near, exists[:, None, :])
