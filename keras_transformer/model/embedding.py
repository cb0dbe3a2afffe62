"""Token embeddings, and the softmax layer that shares their matrix (section 3.4)."""

import keras
from keras import ops

from keras_transformer.config import TransformerConfig


class TokenEmbedding(keras.layers.Layer):
    """Looks up vectors of d_model numbers and multiplies them by sqrt(d_model).

    The matrix is drawn from N(0, 1/d_model), so that what it gives has unit variance, and so that
    its product with a normalised state, the logits, starts with unit variance too.

    Call arguments:
        ids: int [B, T].

    Returns:
        [B, T, D].
    """

    def __init__(self, config: TransformerConfig, **kwargs):
        super().__init__(**kwargs)
        self.config = config

    def build(self, shape):
        self.matrix = self.add_weight(
            name="matrix",
            shape=(self.config.vocab_size, self.config.d_model),
            initializer=keras.initializers.RandomNormal(stddev=self.config.d_model**-0.5),
        )

    def call(self, ids):
        vectors = ops.take(self.matrix, ids, axis=0)  # [B, T, D]
        return vectors * ops.cast(self.config.d_model**0.5, vectors.dtype)

    def compute_output_shape(self, shape):
        return (*shape, self.config.d_model)


class Logits(keras.layers.Layer):
    """The pre-softmax linear transformation: logits = states E^T, in float32.

    Args:
        embedding: the TokenEmbedding that lends its matrix, or None for a matrix of its own.

    Call arguments:
        states: [..., D].

    Returns:
        float32 [..., V].
    """

    def __init__(self, config: TransformerConfig, embedding: TokenEmbedding | None, **kwargs):
        super().__init__(**kwargs)
        self.config = config
        self.embedding = embedding

    def build(self, shape):
        if self.embedding is None:
            self.own_matrix = self.add_weight(
                name="matrix",
                shape=(self.config.vocab_size, self.config.d_model),
                initializer=keras.initializers.RandomNormal(stddev=self.config.d_model**-0.5),
            )

    @property
    def matrix(self):
        """The variable [V, D] that states are multiplied with."""
        return self.own_matrix if self.embedding is None else self.embedding.matrix

    def call(self, states):
        matrix = ops.cast(self.matrix, states.dtype)
        return ops.cast(ops.matmul(states, ops.transpose(matrix)), "float32")

    def compute_output_spec(self, states):
        return keras.KerasTensor((*states.shape[:-1], self.config.vocab_size), "float32")
