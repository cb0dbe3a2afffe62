"""The kinds of positional encoding: sinusoids (section 3.5), learned (Table 3, row E), rotary.

Each kind is one object. The layers for training (positional_encoding.py and attention.py), the
search, the exports and the configuration ask it. To add a kind, add a class and a row of POSITIONS:
training and search then compute it. The other formats of kit/exchange/formats.py refuse it until
it is written there, and listed in that file. Marian and M2M-100 have other sinusoids.

config.py imports this module before NumPy and Keras are needed, so functions import them where they
use them.
"""

import abc
from typing import TYPE_CHECKING

from keras_transformer.support.errors import require
from keras_transformer.support.fields import shown

if TYPE_CHECKING:
    import numpy as np


class PositionKind:
    """A kind of positional encoding: what it adds to embeddings, and how it rotates vectors.

    This is the base class of all kinds. It adds and rotates nothing.

    Attributes:
        even_width: whether D, the width of embeddings, must be even.
        even_key_width: whether d_k, the width of queries and keys, must be even.
    """

    even_width = False
    even_key_width = False

    def table_rows(self, max_positions: int) -> int:
        """Returns the number of rows in a learned table [rows, D]; 0 if nothing is learned.

        Source and target have a table each. A text cannot be longer than its table.

        Args:
            max_positions: the number that was configured for kinds with a table.
        """
        return 0

    def add(self, embeddings, positions, rows=None):
        """Returns embeddings with positions, as the first layer of a stack takes them.

        Args:
            embeddings: [B, T, D].
            positions: [T] or [B, T], any numeric type; or [1], the same position for all.
            rows: [T, D] or [B, T, D], the rows of the learned table at these positions; None if
                there is none.

        Returns:
            [B, T, D], in the dtype of `embeddings`.
        """
        return embeddings

    def rotate(self, vectors, positions):
        """Returns queries or keys as self-attention compares them.

        Args:
            vectors: [..., T, d_k], queries or keys.
            positions: [T], or broadcast to [..., T], any numeric type; or [1].

        Returns:
            [..., T, d_k], in the dtype of `vectors`.
        """
        return vectors


class AddedPositions(PositionKind, abc.ABC):
    """The base class of kinds that only add a vector to each embedding."""

    @abc.abstractmethod
    def vectors(self, positions, d_model: int, rows=None):
        """Returns the vectors to add, [..., T, D], in any floating dtype.

        Args:
            positions: [..., T], any numeric type.
            d_model: D.
            rows: as for `add`.
        """

    def add(self, embeddings, positions, rows=None):
        from keras import ops

        vectors = self.vectors(positions, embeddings.shape[-1], rows)
        return embeddings + ops.cast(vectors, embeddings.dtype)


class Sinusoidal(AddedPositions):
    """The sinusoids of section 3.5, computed in float32.

    Attributes:
        first: the position of the first token.
    """

    even_width = True
    first = 0

    def divisor(self, d_model: int) -> int:
        """Returns the divisor of 2i in the exponent."""
        return d_model

    def vectors(self, positions, d_model: int, rows=None):
        from keras import ops

        positions = ops.cast(positions, "float32") + self.first
        return sinusoids(positions, d_model, self.divisor(d_model))


class Marian(Sinusoidal):
    """The Marian toolkit's sinusoids.

    With 2i/(d_model - 2) in the paper's formula, the slowest one advances by exactly 1/10000
    radians per position.
    """

    def divisor(self, d_model: int) -> int:
        return d_model - 2


class M2M100(Marian):
    """Marian's sinusoids, counted from 2, as in fairseq and M2M-100 (Fan et al. 2020)."""

    first = 2


class Learned(AddedPositions):
    """A table of learned vectors (Table 3, row E)."""

    def table_rows(self, max_positions: int) -> int:
        return max_positions

    def vectors(self, positions, d_model: int, rows=None):
        # Scaled like the token embeddings that they are added to.
        return rows * d_model**0.5


class Rotary(PositionKind):
    """Queries and keys are rotated, so that their products depend on distances."""

    even_key_width = True

    def rotate(self, vectors, positions):
        return rotate(vectors, positions)


# name -> kind: the values of TransformerConfig.positions.
POSITIONS: dict[str, PositionKind] = {
    "sinusoidal": Sinusoidal(),
    "learned": Learned(),
    "marian": Marian(),
    "m2m100": M2M100(),
    "rotary": Rotary(),
}


def position_kind(name: str) -> PositionKind:
    """Returns the kind with this name.

    Raises:
        InputError: if there is none.
    """
    require(name in POSITIONS, "positions", f"must be one of {', '.join(POSITIONS)}", shown(name))
    return POSITIONS[name]


def sinusoids(positions, d_model: int, divisor: int | None = None):
    """Computes PE(pos, 2i) = sin(pos / 10000^(2i/d_model)), PE(pos, 2i+1) = cos of the same.

    Sines and cosines are interleaved, as in the paper (tensor2tensor concatenates them).

    Args:
        positions: [..., T], any numeric type; pos.
        d_model: the width of the encoding, an even number.
        divisor: the divisor of 2i; None for d_model.

    Returns:
        float32 [..., T, D].

    Raises:
        InputError: for an odd width.
    """
    from keras import ops

    is_even = d_model > 0 and d_model % 2 == 0
    require(is_even, "d_model", "must be an even number for sinusoids", d_model)
    rates = ops.convert_to_tensor(frequencies(d_model, divisor).astype("float32"))
    angles = ops.cast(positions, "float32")[..., None] * rates  # [..., T, D/2]
    pairs = ops.stack([ops.sin(angles), ops.cos(angles)], axis=-1)  # [..., T, D/2, 2]
    return ops.reshape(pairs, (*ops.shape(angles)[:-1], d_model))  # [..., T, D]


def rotate(vectors, positions):
    """Rotary positions: rotates each pair of numbers by an angle proportional to the position.

    Su et al. 2021 (arXiv 2104.09864), equation 34: with the angle a = pos / 10000^(2i/d), the pair
    (x_2i, x_2i+1) becomes (x_2i cos a - x_2i+1 sin a, x_2i sin a + x_2i+1 cos a). So the product of
    a rotated query and a rotated key depends only on the distance between their positions.

    Args:
        vectors: [..., T, d], queries or keys; d is even.
        positions: [T], or broadcast to [..., T], any numeric type; or [1], the same position for
            all.

    Returns:
        [..., T, d], in the dtype of `vectors`; the angles are computed in float32.
    """
    import numpy as np
    from keras import ops

    width = vectors.shape[-1]
    rates = np.repeat(frequencies(width), 2)  # the same for both numbers of a pair
    rates = ops.convert_to_tensor(rates.astype(np.float32))
    angles = ops.cast(positions, "float32")[..., None] * rates  # [..., T, d]
    cosines = ops.cast(ops.cos(angles), vectors.dtype)
    sines = ops.cast(ops.sin(angles), vectors.dtype)
    # (x_2i, x_2i+1) @ quarter_turn = (-x_2i+1, x_2i). Numbers only move and change signs, so
    # nothing is rounded. The product takes a sixth of the time of strided slices.
    quarter_turn = np.kron(np.eye(width // 2), [[0, 1], [-1, 0]])
    turned = ops.matmul(vectors, ops.cast(quarter_turn, vectors.dtype))
    return vectors * cosines + turned * sines


def frequencies(d_model: int, divisor: int | None = None) -> "np.ndarray":
    """Returns 1 / 10000^(2i/divisor) for i = 0, 1, ...: float64 [D/2], in radians per position."""
    import numpy as np

    return 10000.0 ** (-np.arange(0, d_model, 2, dtype=np.float64) / (divisor or d_model))


def shift_matrix(offset: int, d_model: int) -> "np.ndarray":
    """Makes the matrix M with PE(pos + offset) = M PE(pos) for any pos: float64 [D, D].

    Section 3.5: "for any fixed offset k, PE(pos+k) can be represented as a linear function of
    PE(pos)". With b = offset * frequency, sin(a + b) = cos b sin a + sin b cos a, and cos(a + b) =
    -sin b sin a + cos b cos a. The offset may be negative.
    """
    import numpy as np

    angles = offset * frequencies(d_model)
    even, odd = np.arange(0, d_model, 2), np.arange(1, d_model, 2)
    matrix = np.zeros((d_model, d_model))
    matrix[even, even] = matrix[odd, odd] = np.cos(angles)
    matrix[even, odd], matrix[odd, even] = np.sin(angles), -np.sin(angles)
    return matrix
