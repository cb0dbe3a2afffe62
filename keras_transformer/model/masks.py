"""Attention masks: boolean, True where a query may attend to a key (section 3.2.3)."""

import functools

from keras import ops

from keras_transformer.config import PAD_ID


def padding_mask(ids):
    """Marks the tokens that are not padding: int [B, S] -> bool [B, S], False where the id is 0."""
    return ops.not_equal(ids, PAD_ID)


def causal_mask(length):
    """Lets position i attend to positions up to i: bool [T, T] of T, an int or scalar tensor."""
    positions = ops.arange(length)
    return positions[:, None] >= positions[None, :]


def window_mask(queries, keys, window: int, causal: bool = False):
    """Lets a position attend to its neighbourhood of size r = `window` (section 4).

    The neighbourhood is centred: positions at most r // 2 away on either side, r in all where r
    is odd and r + 1 where it is even. Under causality its later half falls away, so that position
    i attends to i - r // 2, ..., i, as it would under both masks. `queries` and `keys` are their
    positions, int [..., Q] and [..., P]; the mask is bool [..., Q, P].
    """
    distance = queries[..., :, None] - keys[..., None, :]
    if causal:
        return ops.logical_and(distance >= 0, distance <= window // 2)
    return ops.abs(distance) <= window // 2


def all_of(masks):
    """Combines masks: True where all of those that are not None are; None if all are None."""
    given = [mask for mask in masks if mask is not None]
    return functools.reduce(ops.logical_and, given) if given else None
