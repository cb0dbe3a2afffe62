"""Attention masks: boolean, True where a query may attend to a key (section 3.2.3)."""

import functools

from keras import ops

from keras_transformer.config import PAD_ID

# Added to the scores of forbidden keys. Finite, so that a row without any allowed key (padding)
# gives uniform weights, not NaN; its square fits float32 and itself bfloat16.
FORBIDDEN_SCORE = -1e9


def padding_mask(ids):
    """Marks the tokens that are not padding.

    Args:
        ids: int [B, S].

    Returns:
        bool [B, S], False where the id is 0.
    """
    return ops.not_equal(ids, PAD_ID)


def causal_mask(length):
    """Lets position i attend to positions up to i.

    Args:
        length: T, an int or int scalar tensor.

    Returns:
        bool [T, T].
    """
    positions = ops.arange(length)
    return positions[:, None] >= positions[None, :]


def window_mask(queries, keys, window: int, causal: bool = False):
    """Lets a position attend to its neighbourhood of size r = `window` (section 4).

    The neighbourhood is centred: positions at most r // 2 away on either side, r in all where r
    is odd and r + 1 where it is even. Under causality its later half falls away, so that position
    i attends to i - r // 2, ..., i, as it would under both masks.

    Args:
        queries: int [..., Q], their positions.
        keys: int [..., P], their positions.
        window: r, at least 1.
        causal: whether later keys are forbidden too.

    Returns:
        bool [..., Q, P].
    """
    distance = queries[..., :, None] - keys[..., None, :]
    if causal:
        return ops.logical_and(distance >= 0, distance <= window // 2)
    return ops.abs(distance) <= window // 2


def score_bias(mask):
    """Turns a mask into what is added to attention scores.

    Args:
        mask: bool, any shape.

    Returns:
        float32 of that shape: 0 where True, a large negative number where False.
    """
    return ops.where(mask, 0.0, FORBIDDEN_SCORE)


def all_of(masks):
    """Combines masks: True where all of those that are not None are; None if all are None."""
    given = [mask for mask in masks if mask is not None]
    return functools.reduce(ops.logical_and, given) if given else None
