"""Positional encodings: sinusoids (section 3.5), learned (Table 3, row E), and rotary positions."""

import keras
import numpy as np
from keras import ops

from keras_transformer.config import POSITIONS, SINUSOIDS
from keras_transformer.errors import require
from keras_transformer.fields import shown
from keras_transformer.model.dropout import Dropout


def sinusoids(positions, d_model: int, divisor: int | None = None):
    """Computes PE(pos, 2i) = sin(pos / 10000^(2i/d_model)), PE(pos, 2i+1) = cos of the same.

    Sines and cosines are interleaved, as in the paper (tensor2tensor concatenates them).

    Args:
        positions: [T], any numeric type; pos.
        d_model: the width of the encoding, an even number.
        divisor: the divisor of 2i; None for d_model.

    Returns:
        float32 [T, D].

    Raises:
        InputError: for an odd width.
    """
    is_even = d_model > 0 and d_model % 2 == 0
    require(is_even, "d_model", "must be an even number for sinusoids", d_model)
    rates = ops.convert_to_tensor(frequencies(d_model, divisor).astype(np.float32))
    angles = ops.cast(positions, "float32")[:, None] * rates  # [T, D/2]
    pairs = ops.stack([ops.sin(angles), ops.cos(angles)], axis=-1)  # [T, D/2, 2]
    return ops.reshape(pairs, (-1, d_model))  # [T, D]


def rotate(vectors, positions):
    """Rotary positions: rotates each pair of numbers by an angle proportional to the position.

    Su et al. 2021 (arXiv 2104.09864), equation 34: with the angle a = pos / 10000^(2i/d), the pair
    (x_2i, x_2i+1) becomes (x_2i cos a - x_2i+1 sin a, x_2i sin a + x_2i+1 cos a). So the product of
    a rotated query and a rotated key depends only on the distance between their positions.

    Args:
        vectors: [..., T, d], queries or keys; d is even.
        positions: [T], any numeric type; or [1], the same position for all.

    Returns:
        [..., T, d], in the dtype of `vectors`; the angles are computed in float32.
    """
    width = vectors.shape[-1]
    rates = np.repeat(frequencies(width), 2)  # the same for both numbers of a pair
    rates = ops.convert_to_tensor(rates.astype(np.float32))
    angles = ops.cast(positions, "float32")[:, None] * rates  # [T, d]
    cosines = ops.cast(ops.cos(angles), vectors.dtype)
    sines = ops.cast(ops.sin(angles), vectors.dtype)
    # (x_2i, x_2i+1) @ quarter_turn = (-x_2i+1, x_2i). Numbers only move and change signs, so
    # nothing is rounded. The product takes a sixth of the time of strided slices.
    quarter_turn = np.kron(np.eye(width // 2), [[0, 1], [-1, 0]])
    turned = ops.matmul(vectors, ops.cast(quarter_turn, vectors.dtype))
    return vectors * cosines + turned * sines


def frequencies(d_model: int, divisor: int | None = None) -> np.ndarray:
    """Returns 1 / 10000^(2i/divisor) for i = 0, 1, ...: float64 [D/2], in radians per position."""
    return 10000.0 ** (-np.arange(0, d_model, 2, dtype=np.float64) / (divisor or d_model))


def shift_matrix(offset: int, d_model: int) -> np.ndarray:
    """Makes the matrix M with PE(pos + offset) = M PE(pos) for any pos: float64 [D, D].

    Section 3.5: "for any fixed offset k, PE(pos+k) can be represented as a linear function of
    PE(pos)". With b = offset * frequency, sin(a + b) = cos b sin a + sin b cos a, and cos(a + b) =
    -sin b sin a + cos b cos a. The offset may be negative.
    """
    angles = offset * frequencies(d_model)
    even, odd = np.arange(0, d_model, 2), np.arange(1, d_model, 2)
    matrix = np.zeros((d_model, d_model))
    matrix[even, even] = matrix[odd, odd] = np.cos(angles)
    matrix[even, odd], matrix[odd, even] = np.sin(angles), -np.sin(angles)
    return matrix


@keras.saving.register_keras_serializable(package="keras_transformer")
class PositionalEncoding(keras.layers.Layer):
    """Adds positional encodings to embeddings, and applies dropout to the sums (section 5.4).

    Sinusoids are computed in float32 under any dtype policy. Rotary positions add nothing here:
    self-attention rotates its queries and keys (MultiHeadAttention).

    Args:
        positions: "sinusoidal" for the sinusoids of section 3.5; "learned" for a table of vectors
            (Table 3, row E); "marian" for the Marian toolkit's sinusoids, with 2i/(d_model - 2) in
            the paper's formula, so that the slowest one advances by exactly 1/10000 radians per
            position; or "rotary".
        max_positions: the number of learned positions; sinusoids have no limit.
        dropout: P_drop, the probability of dropping an element of the sum.

    Call arguments:
        inputs: [B, T, D], embeddings.
        training: whether to apply dropout.

    Returns:
        [B, T, D].

    Example:
        >>> layer = PositionalEncoding(dropout=0.1)
        >>> keras.ops.shape(layer(keras.random.normal((2, 10, 512))))
        (2, 10, 512)
    """

    def __init__(
        self,
        positions: str = "sinusoidal",
        max_positions: int = 1024,
        dropout: float = 0.0,
        **kwargs,
    ):
        rule = f"must be one of {', '.join(POSITIONS)}"
        require(positions in POSITIONS, "positions", rule, shown(positions))
        super().__init__(**kwargs)
        self.supports_masking = True
        self.positions = positions
        self.max_positions = max_positions
        self.embeddings = None  # the table of learned positions
        self.dropout = Dropout(dropout, dtype=self.dtype_policy, name="dropout")

    def build(self, inputs_shape):
        d_model = inputs_shape[-1]
        if self.positions in SINUSOIDS:
            require(d_model % 2 == 0, "inputs", "must be of an even width for sinusoids", d_model)
        if self.positions == "learned":
            self.embeddings = self.add_weight(
                name="embeddings",
                shape=(self.max_positions, d_model),
                initializer=keras.initializers.RandomNormal(stddev=d_model**-0.5),
            )

    def call(self, inputs, training=None):
        if self.positions == "rotary":
            return self.dropout(inputs, training=training)
        encoding = self.encoding(ops.shape(inputs)[1], inputs.shape[-1])  # [T, D]
        outputs = inputs + ops.cast(encoding, self.compute_dtype)
        return self.dropout(outputs, training=training)

    def encoding(self, length, d_model: int):
        """Returns the encodings of the first positions.

        Args:
            length: T, an int or scalar tensor.
            d_model: D.

        Returns:
            [T, D]; float32 for sinusoids.

        Raises:
            InputError: if `length` exceeds the number of learned positions.
        """
        if self.positions == "learned":
            if isinstance(length, int):
                rule = f"must have at most {self.max_positions} positions, max_positions"
                require(length <= self.max_positions, "inputs", rule, length)
            if keras.backend.backend() == "jax" and not isinstance(length, int):
                # JAX cannot infer that a slice up to an unknown length has this length.
                rows = ops.take(self.embeddings, ops.arange(length), axis=0)
            else:
                rows = self.embeddings[:length]
            # Scaled like the token embeddings that they are added to.
            return rows * d_model**0.5
        divisor = d_model - 2 if self.positions == "marian" else d_model
        return sinusoids(ops.arange(length), d_model, divisor)

    def get_config(self):
        return {
            **super().get_config(),
            "positions": self.positions,
            "max_positions": self.max_positions,
            "dropout": self.dropout.rate,
        }
