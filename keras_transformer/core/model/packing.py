"""Rows of several sentences, packed so that batches have one shape and hardly any padding.

In a packed row, each sentence ends in EOS, the next one follows at once, and padding ends the row.
The sentences of a source row and a target row are pairs, in the same order. A segment is one
sentence in a row. Attention stays within a segment, positions begin at 0 in each, and so the model
computes for each sentence what it computes for the sentence in a row of its own.

Only training compiled by XLA uses such rows (training/step.py).
"""

from keras import ops

from keras_transformer.core.config import BOS_ID, EOS_ID


def segment_ids(ids):
    """Numbers the sentences in packed rows.

    Args:
        ids: int32 [B, L].

    Returns:
        int32 [B, L], ascending from 0 in each row. Padding at its end is another segment.
    """
    ends = ops.cast(ops.equal(ids, EOS_ID), "int32")
    return ops.cumsum(ends, axis=1) - ends


def segment_starts(segments, wanted):
    """Finds where segments start.

    Args:
        segments: int32 [B, L], ascending in each row.
        wanted: int32 [B, T], segments to look for.

    Returns:
        int32 [B, T], the column in `segments` where the wanted segment starts, or would start.
    """
    is_earlier = ops.less(segments[:, None, :], wanted[:, :, None])  # [B, T, L]
    return ops.sum(ops.cast(is_earlier, "int32"), axis=2)


def positions_in_segments(segments):
    """Counts positions from 0 in each segment.

    Args:
        segments: int32 [B, L], ascending in each row.

    Returns:
        int32 [B, L].
    """
    columns = ops.arange(ops.shape(segments)[1], dtype="int32")
    return columns[None, :] - segment_starts(segments, segments)


def shift_segments_right(target, segments):
    """Makes the decoder's input from packed targets: each segment begins with BOS.

    Args:
        target: int32 [B, T].
        segments: int32 [B, T], the segments of the target.

    Returns:
        int32 [B, T].
    """
    shifted = ops.pad(target[:, :-1], ((0, 0), (1, 0)))
    return ops.where(ops.equal(positions_in_segments(segments), 0), BOS_ID, shifted)


def packed_inputs(source, target, has_codes: bool, reads_eos: bool = True):
    """Makes the inputs of `Transformer.packed_states`.

    If the decoder reads language codes, each source begins with its code, as in plain rows, and
    each target begins with a 0, which makes room for the code in the decoder's input. There is no
    label at this place.

    Args:
        source: int32 [B, S].
        target: int32 [B, T], not yet shifted right.
        has_codes: whether sources begin with a code for the decoder.
        reads_eos: whether the encoder reads the EOS of sources, which otherwise become segments of
            their own.

    Returns:
        The segments of both, int32 [B, S] and [B, T], and the decoder's input, int32 [B, T].
    """
    source_segments, target_segments = segment_ids(source), segment_ids(target)
    target_inputs = shift_segments_right(target, target_segments)
    if has_codes:
        return _move_codes(source, source_segments, target_inputs, target_segments)
    if not reads_eos:
        is_eos = ops.cast(ops.equal(source, EOS_ID), "int32")
        return 2 * source_segments + is_eos, 2 * target_segments, target_inputs
    return source_segments, target_segments, target_inputs


def _move_codes(source, source_segments, target_inputs, target_segments):
    """Hides the codes in the sources from the encoder, and puts them after BOS in the targets.

    Codes become segments of their own, with even numbers; sentences get odd ones.

    Returns:
        The new segments, int32 [B, S] and [B, T], and the decoder's input, int32 [B, T].
    """
    is_code = ops.equal(positions_in_segments(source_segments), 0)
    codes = segment_starts(source_segments, target_segments)  # columns, [B, T]
    codes = ops.minimum(codes, ops.shape(source)[1] - 1)  # beyond them, for padding
    codes = ops.take_along_axis(source, codes, axis=1)  # [B, T]
    is_second = ops.equal(positions_in_segments(target_segments), 1)
    target_inputs = ops.where(is_second, codes, target_inputs)
    source_segments = 2 * source_segments + ops.cast(~is_code, "int32")
    return source_segments, 2 * target_segments + 1, target_inputs
