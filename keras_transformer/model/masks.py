"""Attention masks: boolean, True where a query may attend to a key (section 3.2.3)."""

from keras import ops

from keras_transformer.config import PAD_ID

# Added to the scores of forbidden keys. Finite, so that a row without any allowed key (padding)
# gives uniform weights, not NaN; its square fits float32 and itself bfloat16.
FORBIDDEN_SCORE = -1e9


def padding_mask(ids):
    """Marks real tokens.

    Args:
        ids: int [B, S].

    Returns:
        bool [B, S], True where the id is not padding.
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


def score_bias(mask):
    """Turns a mask into what is added to attention scores.

    Args:
        mask: bool, any shape.

    Returns:
        float32 of that shape: 0 where True, a large negative number where False.
    """
    return ops.where(mask, 0.0, FORBIDDEN_SCORE)
