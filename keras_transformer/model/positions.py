"""Positional encodings: the sinusoids of section 3.5, and learned positions (Table 3, row E)."""

import keras
import numpy as np
from keras import ops

from keras_transformer.model.dropout import Dropout
from keras_transformer.model.layer import Layer


def sinusoids(positions, d_model: int, divisor: int | None = None):
    """Computes PE(pos, 2i) = sin(pos / 10000^(2i/d_model)), PE(pos, 2i+1) = cos of the same.

    Sines and cosines are interleaved, as the paper has them (tensor2tensor concatenates them).

    Args:
        positions: [T], any number type; pos.
        d_model: even width of the encoding.
        divisor: what 2i is divided by; None for d_model.

    Returns:
        float32 [T, D].
    """
    rates = ops.convert_to_tensor(frequencies(d_model, divisor).astype(np.float32))
    angles = ops.cast(positions, "float32")[:, None] * rates  # [T, D/2]
    pairs = ops.stack([ops.sin(angles), ops.cos(angles)], axis=-1)  # [T, D/2, 2]
    return ops.reshape(pairs, (-1, d_model))


def frequencies(d_model: int, divisor: int | None = None) -> np.ndarray:
    """Returns 1 / 10000^(2i/divisor) for i = 0, 1, ...: float64 [D/2], in radians a position."""
    return 10000.0 ** (-np.arange(0, d_model, 2, dtype=np.float64) / (divisor or d_model))


def shift_matrix(offset: int, d_model: int) -> np.ndarray:
    """Makes the matrix M of PE(pos + offset) = M PE(pos) for any pos: float64 [D, D].

    Section 3.5: "for any fixed offset k, PE(pos+k) can be represented as a linear function of
    PE(pos)". With b = offset * frequency, sin(a + b) = cos b sin a + sin b cos a, and
    cos(a + b) = -sin b sin a + cos b cos a. The offset has either sign.
    """
    angles = offset * frequencies(d_model)
    even, odd = np.arange(0, d_model, 2), np.arange(1, d_model, 2)
    matrix = np.zeros((d_model, d_model))
    matrix[even, even] = matrix[odd, odd] = np.cos(angles)
    matrix[even, odd], matrix[odd, even] = np.sin(angles), -np.sin(angles)
    return matrix


@keras.saving.register_keras_serializable(package="keras_transformer")
class PositionalEncoding(Layer):
    """Adds the encoding of each position to its embedding, then drops out the sum (section 5.4).

    Sinusoids are computed in float32 whatever the dtype policy.

    Args:
        positions: "sinusoidal"; "learned" (Table 3, row E); or "marian", Marian's sinusoids, the
            slowest of which has exactly 1/10000 radians a position: 2i/(d_model - 2) in the paper's
            formula (its order of sines and cosines is changed by importing/marian.py).
        max_positions: number of learned positions; sinusoids have no limit.
        dropout: P_drop, the probability of dropping an element of the sum.

    Call arguments:
        inputs: [B, T, D], embeddings.
        start: int or int scalar tensor, the position of the first column (default 0); decoding
            step by step passes how far it has come.
        training: whether to apply dropout.

    Returns:
        [B, T, D].
    """

    def __init__(
        self,
        positions: str = "sinusoidal",
        max_positions: int = 1024,
        dropout: float = 0.0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if positions not in ("sinusoidal", "learned", "marian"):
            rule = "positions must be sinusoidal, learned or marian"
            raise ValueError(f"{rule}. Received: {positions!r}")
        self.settings = {"positions": positions, "max_positions": max_positions, "dropout": dropout}
        self.dropout = Dropout(dropout, dtype=self.dtype_policy)
        self.table = None

    def build(self, shape):
        if self.settings["positions"] == "learned":
            shape = (self.settings["max_positions"], shape[-1])
            initializer = keras.initializers.RandomNormal(stddev=shape[-1] ** -0.5)
            self.table = self.add_weight(name="table", shape=shape, initializer=initializer)

    def call(self, inputs, start=0, training=False):
        positions = start + ops.arange(ops.shape(inputs)[1])
        d_model = inputs.shape[-1]
        if self.table is None:
            divisor = d_model - 2 if self.settings["positions"] == "marian" else None
            encoding = sinusoids(positions, d_model, divisor)
        else:
            # As large as the scaled token embeddings that it is added to.
            encoding = ops.take(self.table, positions, axis=0) * d_model**0.5
        encoding = ops.cast(encoding, self.compute_dtype)
        return self.dropout(inputs + encoding, training=training)
