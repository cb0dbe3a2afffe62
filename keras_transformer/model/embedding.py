"""Token embeddings, and the softmax layer that shares their matrix (section 3.4)."""

import keras
from keras import ops

from keras_transformer.model.layer import Layer
from keras_transformer.model.linear import linear
from keras_transformer.model.masks import padding_mask


@keras.saving.register_keras_serializable(package="keras_transformer")
class TokenEmbedding(Layer):
    """Looks up a vector of D numbers for each id and multiplies it by sqrt(D).

    With `reverse=True` it is the pre-softmax linear transformation by the same matrix E [V, D]:
    logits = states E^T. The matrix is drawn from N(0, 1/D), so that the vectors have unit variance,
    and the logits of a normalised state start with unit variance, too.

    Args:
        vocab_size: V.
        d_model: D.
        mask_zero: whether the vectors carry a Keras mask, False where an id is 0 (padding).
        scale: whether to multiply by sqrt(D).
        use_bias: whether a bias is added to every logit; the paper has none.

    Call arguments:
        inputs: int [B, T]; with `reverse`, states [..., D].
        reverse: whether to compute logits.
        kernel: with `reverse`, columns of E^T to use in place of all, [D, C], and no bias.

    Returns:
        [B, T, D]; with `reverse`, float32 [..., V], or [..., C].
    """

    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        mask_zero: bool = False,
        scale: bool = True,
        use_bias: bool = False,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.settings = {"vocab_size": vocab_size, "d_model": d_model, "mask_zero": mask_zero}
        self.settings |= {"scale": scale, "use_bias": use_bias}
        self.vocab_size, self.d_model, self.mask_zero = vocab_size, d_model, mask_zero
        self.scale, self.use_bias, self.bias = scale, use_bias, None

    def build(self, shape=None):
        self.matrix = self.add_matrix((self.vocab_size, self.d_model))
        if self.use_bias:
            shape = (self.vocab_size,)
            self.bias = self.add_weight(name="bias", shape=shape, initializer="zeros")

    def add_matrix(self, shape):
        initializer = keras.initializers.RandomNormal(stddev=self.d_model**-0.5)
        return self.add_weight(name="matrix", shape=shape, initializer=initializer)

    def call(self, inputs, reverse=False, kernel=None):
        if reverse:
            bias = self.bias if kernel is None else None
            kernel = self.softmax_kernel() if kernel is None else kernel
            logits = linear(inputs, kernel, bias)
            return ops.cast(logits, "float32")
        vectors = self.look_up(inputs)  # [B, T, D]
        return vectors * ops.cast(self.d_model**0.5, vectors.dtype) if self.scale else vectors

    def look_up(self, ids):
        """Returns the matrix's rows of some ids: int [...] -> [..., D]."""
        return ops.take(self.matrix, ids, axis=0)

    def softmax_kernel(self):
        """Returns the matrix that states are multiplied by, [D, V]."""
        return ops.transpose(self.matrix)

    def compute_mask(self, inputs, previous_mask=None):
        is_ids = "int" in keras.backend.standardize_dtype(inputs.dtype)
        return padding_mask(inputs) if is_ids and self.mask_zero else previous_mask

    def compute_output_shape(self, shape, reverse=False):
        return (*shape[:-1], self.vocab_size) if reverse else (*shape, self.d_model)

    def compute_output_spec(self, inputs, reverse=False):
        dtype = "float32" if reverse else self.compute_dtype
        return keras.KerasTensor(self.compute_output_shape(inputs.shape, reverse), dtype)
