"""Token embeddings, and the softmax layer that shares their matrix (section 3.4)."""

import keras
from keras import ops

from keras_transformer.config import TransformerConfig
from keras_transformer.model.linear import linear


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
        # Not a second copy for the softmax: the layout for inference looks columns up.
        self.transposed = self.config.layout == "inference" and self.config.tie_embeddings
        self.matrix = add_matrix(self, self.config, self.transposed)

    def call(self, ids):
        if self.transposed:
            numbers = ops.reshape(self.matrix, (-1,))  # [D V]
            places = ops.arange(self.config.d_model, dtype="int32") * self.config.vocab_size
            vectors = ops.take(numbers, ids[..., None] + places)  # [B, T, D]
        else:
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
        self.transposed = self.config.layout == "inference"
        if self.embedding is None:
            self.own_matrix = add_matrix(self, self.config, self.transposed)

    @property
    def matrix(self):
        """The variable that states are multiplied with: [V, D], or [D, V] for inference."""
        return self.own_matrix if self.embedding is None else self.embedding.matrix

    def call(self, states):
        matrix = ops.cast(self.matrix, states.dtype)
        matrix = matrix if self.transposed else ops.transpose(matrix)
        return ops.cast(linear(states, matrix), "float32")

    def compute_output_spec(self, states):
        return keras.KerasTensor((*states.shape[:-1], self.config.vocab_size), "float32")


def add_matrix(layer: keras.layers.Layer, config: TransformerConfig, transposed: bool):
    """Adds the variable of an embedding: [V, D], or [D, V] if transposed."""
    shape = (config.vocab_size, config.d_model)
    return layer.add_weight(
        name="matrix",
        shape=shape[::-1] if transposed else shape,
        initializer=keras.initializers.RandomNormal(stddev=config.d_model**-0.5),
    )
