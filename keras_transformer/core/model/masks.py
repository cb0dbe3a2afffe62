"""Attention masks: boolean, True where a query may attend to a key (section 3.2.3).

Keras would cast a float mask to a layer's dtype, and -1e9 in float16 is minus infinity.
"""

from keras import ops

from keras_transformer.core.config import EOS_ID, PAD_ID


def padding_mask(ids):
    """Masks padding: int [B, S] -> bool [B, S], False where the id is 0."""
    return ops.not_equal(ids, PAD_ID)


def source_mask(ids, reads_eos: bool):
    """Masks what an encoder does not read: padding, and EOS without `reads_eos`.

    Args:
        ids: int [B, S].
        reads_eos: `encoder_reads_eos` of the configuration.

    Returns:
        bool [B, S].
    """
    mask = padding_mask(ids)
    return mask if reads_eos else ops.logical_and(mask, ops.not_equal(ids, EOS_ID))


def causal_mask(query_length, key_length=None):
    """Lets each position attend to itself and to earlier positions.

    Args:
        query_length: T, an int or scalar tensor.
        key_length: P, an int or scalar tensor; None for T, as in self-attention.

    Returns:
        bool [T, P], True at [i, j] where j is at most i.
    """
    if key_length is None:
        key_length = query_length
    return ops.arange(query_length)[:, None] >= ops.arange(key_length)[None, :]


def window_mask(query_length, key_length, window: int):
    """Lets each position attend to its neighbourhood of size r = `window` (section 4).

    The neighbourhood is centred: it contains the positions at most r // 2 away on either side,
    which is r positions if r is odd, and r + 1 if it is even.

    Args:
        query_length: Q, an int or scalar tensor.
        key_length: P, an int or scalar tensor.
        window: r, at least 1.

    Returns:
        bool [Q, P].
    """
    distance = ops.arange(query_length)[:, None] - ops.arange(key_length)[None, :]  # [Q, P]
    return ops.abs(distance) <= window // 2


def segment_mask(query_segments, key_segments):
    """Lets each position attend to its own segment: a sentence in a packed row (packing.py).

    Args:
        query_segments: int [B, Q], the segment of each query.
        key_segments: int [B, P], the segment of each key.

    Returns:
        bool [B, Q, P].
    """
    return ops.equal(query_segments[:, :, None], key_segments[:, None, :])


def combine_masks(masks):
    """Combines masks, broadcasting them against each other.

    Args:
        masks: bool tensors; None allows everything.

    Returns:
        bool, True where all masks are True; None if all masks are None.
    """
    combined = None
    for mask in masks:
        if mask is None:
            continue
        combined = mask if combined is None else ops.logical_and(combined, mask)
    return combined
