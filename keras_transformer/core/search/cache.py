"""What a search caches between target positions: keys and values, or the state of an SSRU."""

from typing import NamedTuple

import tensorflow as tf
from keras import ops

NOT_WRITTEN = -1  # the origin at future positions


class KeysValues(NamedTuple):
    """The keys and values that a decoder layer attends to."""

    keys: tf.Tensor  # float32 [B, H, ..., d_k]
    values: tf.Tensor  # float32 [B, H, ..., d_v]


class Pool(KeysValues):
    """The keys and values of the target positions so far, [B, H, C, K, d] each.

    A new position is written into the memory of the pool; see `written`.
    """

    @classmethod
    def empty(cls, shape: list, key_width: int, value_width: int) -> "Pool":
        """Makes a pool of [*shape, d_k] and [*shape, d_v]; shape is [B, H, 1, K]."""
        return cls(empty_pool([*shape, key_width]), empty_pool([*shape, value_width]))

    def reordered(self, parents: tf.Tensor) -> "Pool":
        """Returns the pool itself: `origins` of the cache says who wrote which entry."""
        return self

    def with_room(self, more: tf.Tensor) -> "Pool":
        """Returns the pool with room for `more` positions, an int32 scalar."""
        return self._replace(keys=longer(self.keys, more, 0), values=longer(self.values, more, 0))

    def with_position(self, keys: tf.Tensor, values: tf.Tensor, position: tf.Tensor) -> "Pool":
        """Writes a position, an int32 scalar below C: keys and values [B, H, K, d]."""
        return Pool(written(self.keys, keys, position), written(self.values, values, position))


class XlaPool(Pool):
    """A pool in a program compiled by XLA, which reuses the memory by itself.

    XLA has neither of the operations that TensorFlow needs for that.
    """

    @classmethod
    def empty(cls, shape: list, key_width: int, value_width: int) -> "XlaPool":
        return cls(tf.zeros([*shape, key_width]), tf.zeros([*shape, value_width]))

    def with_position(self, keys: tf.Tensor, values: tf.Tensor, position: tf.Tensor) -> "XlaPool":
        start = tf.stack([0, 0, position, 0, 0])
        return XlaPool(
            ops.slice_update(self.keys, start, keys[:, :, None]),
            ops.slice_update(self.values, start, values[:, :, None]),
        )


class RecurrentState(NamedTuple):
    """The state of an SSRU for every hypothesis; it moves with the hypothesis."""

    values: tf.Tensor  # float32 [B, K, D]

    def reordered(self, parents: tf.Tensor) -> "RecurrentState":
        """Returns the states of hypotheses that continue their parents, int32 [B, K]."""
        return RecurrentState(tf.gather(self.values, parents, batch_dims=1))

    def with_room(self, more: tf.Tensor) -> "RecurrentState":
        """Returns the state itself, whose size does not depend on the number of positions."""
        return self


class SearchCache(NamedTuple):
    """Keys and values of the sources, and of the target positions so far, with room for C of them.

    Entries are written once and never moved. When the search reorders hypotheses, only `origins`
    changes, a few numbers; attention masks the entries of other hypotheses. The K beams of a
    sentence are K queries to one pool of C K keys.
    """

    origins: tf.Tensor  # int32 [B, K, C]: the beam whose entry a hypothesis uses at a position
    layers: tuple[Pool | RecurrentState, ...]  # for each layer, model by model
    memory: tuple[KeysValues, ...]  # [B, H, S, d] for each layer: the source's keys and values
    source_mask: tf.Tensor  # bool [B, S], False at padding

    def reordered(self, parents: tf.Tensor) -> "SearchCache":
        """Returns the cache for hypotheses that continue their parents, int32 [B, K]."""
        return self._replace(
            origins=tf.gather(self.origins, parents, batch_dims=1),
            layers=tuple(layer.reordered(parents) for layer in self.layers),
        )

    def with_room(self, capacity: tf.Tensor) -> "SearchCache":
        """Returns the cache with room for positions below `capacity`, an int32 scalar."""
        more = tf.maximum(capacity - tf.shape(self.origins)[2], 0)
        return self._replace(
            origins=longer(self.origins, more, NOT_WRITTEN),
            layers=tuple(layer.with_room(more) for layer in self.layers),
        )


def longer(tensor: tf.Tensor, more: tf.Tensor, value: int) -> tf.Tensor:
    """Pads axis 2 with `more` values, an int32 scalar."""
    paddings = [[0, 0], [0, 0], [0, more]] + [[0, 0]] * (tensor.shape.rank - 3)
    return tf.pad(tensor, paddings, constant_values=value)


def with_own_entries(origins: tf.Tensor, position: tf.Tensor) -> tf.Tensor:
    """Sets each hypothesis's origin at `position` to its own beam.

    Args:
        origins: int32 [B, K, C].
        position: int32 scalar.

    Returns:
        int32 [B, K, C].
    """
    here = tf.range(tf.shape(origins)[2]) == position  # [C]
    own_beam = tf.range(origins.shape[1])[:, None]  # [K, 1]
    return tf.where(here, own_beam, origins)


def attention_mask(origins: tf.Tensor, position: tf.Tensor, window: int | None) -> tf.Tensor:
    """Marks the entries that each hypothesis attends to at `position`.

    Args:
        origins: int32 [B, K, C].
        position: int32 scalar.
        window: r of restricted self-attention (section 4); None for all positions up to this one.

    Returns:
        bool [B, 1, K, C K].
    """
    batch, beams, capacity = tf.shape(origins)[0], origins.shape[1], tf.shape(origins)[2]
    allowed = origins[:, :, :, None] == tf.range(beams)  # [B, K, C, K]
    if window is not None:
        near = position - tf.range(capacity) <= window // 2  # [C]
        allowed &= near[:, None]
    return tf.reshape(allowed, [batch, 1, beams, capacity * beams])


def empty_pool(shape: list) -> tf.Tensor:
    """Makes keys or values, float32 [B, H, 1, K, d], whose memory `written` may overwrite.

    An empty tensor would have no memory, and the graph optimizer lets equal tensors share memory:
    hence room for one position, and a deep copy.
    """
    return tf.raw_ops.DeepCopy(x=tf.zeros(shape))


def written(pool: tf.Tensor, entries: tf.Tensor, position: tf.Tensor) -> tf.Tensor:
    """Writes the entries of a position into keys or values, modifying `pool` in place.

    TensorFlow's tensors are immutable: a scatter inside a while loop copies the whole cache at each
    position, a tenth of the decoding time. Writing into the memory of `pool` is safe if nothing
    else uses it. `empty_pool` ensures this at the start of a search, and resizing a cache later
    gives it new memory.

    Args:
        pool: float32 [B, H, C, K, d].
        entries: float32 [B, H, K, d].
        position: int32 scalar, below C.

    Returns:
        float32 [B, H, C, K, d].
    """
    shape = tf.shape(pool)
    rows, capacity = shape[0] * shape[1], shape[2]  # one row per head and sentence
    width = pool.shape[3] * pool.shape[4]
    updated = tf.raw_ops.InplaceUpdate(
        x=tf.reshape(pool, [rows * capacity, width]),
        i=tf.range(rows) * capacity + position,
        v=tf.reshape(entries, [rows, width]),
    )
    return tf.reshape(updated, shape)
