"""What the decoder keeps of earlier target positions while it decodes one position at a time."""

from typing import Any, NamedTuple

from keras import ops

from keras_transformer.model.masks import window_mask

NOWHERE = -1  # the origin of positions that are still to come


class DecoderCache(NamedTuple):
    """Keys and values of the target positions so far, of all beams of a sentence side by side.

    An entry is written once and never moved. When the search lets a hypothesis continue another
    one, it reorders `origins` alone, a few numbers; attention masks out what is not a hypothesis's
    own. The K beams of a sentence are K queries to one pool of C K keys.
    """

    origins: Any  # int32 [B, K, C]: the beam whose entry at each position belongs to a hypothesis
    layers: list[tuple[Any, Any]]  # keys [B, H, C, K, d_k] and values [B, H, C, K, d_v] a layer

    def reserve(self, capacity) -> "DecoderCache":
        """Makes room for positions below `capacity`, an int or int scalar tensor."""
        more = ops.maximum(capacity - ops.shape(self.origins)[2], 0)

        def longer(tensor, value=0):
            width = [[0, 0], [0, 0], [0, more]] + [[0, 0]] * (len(tensor.shape) - 3)
            return ops.pad(tensor, width, constant_values=value)

        layers = [(longer(keys), longer(values)) for keys, values in self.layers]
        return DecoderCache(longer(self.origins, NOWHERE), layers)

    def with_position(self, position) -> "DecoderCache":
        """Says that each hypothesis's entry at `position` is the one of its own beam."""
        beams, capacity = ops.shape(self.origins)[1], ops.shape(self.origins)[2]
        here = ops.arange(capacity) == position  # [C]
        own = ops.arange(beams, dtype="int32")[:, None]  # [K, 1]
        return self._replace(origins=ops.where(here, own, self.origins))

    def mask(self, position, window: int | None = None):
        """Marks the entries that each hypothesis attends to from `position`: bool [B, 1, K, C K].

        `window` is r of restricted self-attention, None for all positions up to this one.
        """
        beams, capacity = ops.shape(self.origins)[1:]
        own = self.origins[:, :, :, None] == ops.arange(beams, dtype="int32")  # [B, K, C, K]
        if window is not None:
            queries = ops.reshape(position, (1,))
            near = window_mask(queries, ops.arange(capacity, dtype="int32"), window, causal=True)
            own = ops.logical_and(own, near[0, :, None])
        return merge_axes(own, 2)[:, None]


def scatter(pool, entries, position):
    """Puts entries [B, H, K, d] into keys or values [B, H, C, K, d] at a position below C."""
    shape = ops.shape(pool)[:2]
    sentences = ops.broadcast_to(ops.arange(shape[0], dtype="int32")[:, None], shape)
    heads = ops.broadcast_to(ops.arange(shape[1], dtype="int32"), shape)
    places = ops.stack([sentences, heads, ops.broadcast_to(position, shape)], axis=-1)
    return ops.scatter_update(pool, places, entries)


def merge_axes(tensor, axis: int):
    """Makes one axis of `axis` and the next: [..., X, Y, ...] -> [..., X Y, ...]."""
    shape = ops.shape(tensor)
    return ops.reshape(tensor, (*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :]))
