"""The layer that adds positions to embeddings (section 3.5)."""

import keras
from keras import ops

from keras_transformer.core.model.dropout import Dropout
from keras_transformer.core.model.packing import positions_in_segments
from keras_transformer.core.model.positions import AddedPositions, position_kind
from keras_transformer.support.errors import require


@keras.saving.register_keras_serializable(package="keras_transformer")
class PositionalEncoding(keras.layers.Layer):
    """Adds positional encodings to embeddings, and applies dropout to the sums (section 5.4).

    Sinusoids are computed in float32 under any dtype policy. Rotary positions add nothing here:
    self-attention rotates its queries and keys (MultiHeadAttention).

    Args:
        positions: the kind of positions: "sinusoidal" for the sinusoids of section 3.5; "learned"
            for a table of vectors (Table 3, row E); "marian" and "m2m100" for the sinusoids of such
            models; or "rotary". model/positions.py has a class for each.
        max_positions: the number of learned positions; sinusoids have no limit.
        dropout: P_drop, the probability of dropping an element of the sum.

    Call arguments:
        inputs: [B, T, D], embeddings.
        segments: int [B, T], the segments of packed rows (model/packing.py), in each of which
            positions begin at 0; None for one sentence a row.
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
        super().__init__(**kwargs)
        self.supports_masking = True
        self.positions = positions
        self.position_kind = position_kind(positions)
        self.max_positions = max_positions
        self.embeddings = None  # the table of learned positions
        self.dropout = Dropout(dropout, dtype=self.dtype_policy, name="dropout")

    def build(self, inputs_shape):
        d_model = inputs_shape[-1]
        is_valid = d_model % 2 == 0 or not self.position_kind.even_width
        rule = f"must be of an even width for {self.positions} positions"
        require(is_valid, "inputs", rule, d_model)
        rows = self.position_kind.table_rows(self.max_positions)
        if rows > 0:
            self.embeddings = self.add_weight(
                name="embeddings",
                shape=(rows, d_model),
                initializer=keras.initializers.RandomNormal(stddev=d_model**-0.5),
            )

    def call(self, inputs, segments=None, training=None):
        if segments is None:
            length = ops.shape(inputs)[1]
            positions, rows = ops.arange(length), self._first_rows(length)
        else:
            positions = positions_in_segments(segments)
            rows = self._rows_at(positions)
        outputs = self.position_kind.add(inputs, positions, rows)
        return self.dropout(outputs, training=training)

    def encoding(self, length, d_model: int):
        """Returns the vectors that are added at the first positions.

        Args:
            length: T, an int or scalar tensor.
            d_model: D.

        Returns:
            [T, D]; float32 for sinusoids.

        Raises:
            InputError: if `length` exceeds the number of learned positions, or if positions of this
                kind are not added.
        """
        rule = "must be of a kind that is added to embeddings"
        require(isinstance(self.position_kind, AddedPositions), "positions", rule, self.positions)
        rows = self._first_rows(length)
        return self.position_kind.vectors(ops.arange(length), d_model, rows)

    def _first_rows(self, length):
        """Returns the first rows of the learned table, [T, D]; None if there is no table."""
        if self.embeddings is None:
            return None
        if isinstance(length, int):
            rule = f"must have at most {self.max_positions} positions, max_positions"
            require(length <= self.max_positions, "inputs", rule, length)
        if keras.backend.backend() == "jax" and not isinstance(length, int):
            # JAX cannot infer that a slice up to an unknown length has this length.
            return ops.take(self.embeddings, ops.arange(length), axis=0)
        return self.embeddings[:length]

    def _rows_at(self, positions):
        """Returns rows of the learned table, [B, T, D]; None if there is no table."""
        if self.embeddings is None:
            return None
        # Only padding at the end of a packed row may have positions beyond the table.
        positions = ops.minimum(positions, self.max_positions - 1)
        return ops.take(self.embeddings, positions, axis=0)

    def get_config(self):
        return {
            **super().get_config(),
            "positions": self.positions,
            "max_positions": self.max_positions,
            "dropout": self.dropout.rate,
        }
