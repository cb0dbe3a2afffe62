"""Token embeddings, and the softmax layer that shares their matrix (section 3.4)."""

import keras
from keras import ops

from keras_transformer.core.model.masks import padding_mask


@keras.saving.register_keras_serializable(package="keras_transformer")
class TokenEmbedding(keras.layers.ReversibleEmbedding):
    """Looks up a vector of D numbers for each id and multiplies it by sqrt(D).

    With `reverse=True` it is the pre-softmax linear transformation with the same matrix E [V, D]:
    logits = states E^T. The matrix is drawn from N(0, 1/D), so that before training, the scaled
    vectors and the logits of normalized states have unit variance.

    It extends keras.layers.ReversibleEmbedding with a scale and a bias. The matrix is `embeddings`.

    Args:
        vocab_size: V.
        d_model: D.
        mask_zero: whether the vectors carry a Keras mask, False where an id is 0 (padding).
        scale: whether to multiply the vectors by sqrt(D).
        use_bias: whether to add a bias to every logit; the paper has none.
        embeddings_initializer: a Keras initializer or its name; None for N(0, 1/D).

    Call arguments:
        inputs: int [B, T]; with `reverse`, states [..., D].
        reverse: whether to compute logits.

    Returns:
        [B, T, D]; with `reverse`, float32 [..., V].

    Example:
        >>> layer = TokenEmbedding(vocab_size=8000, d_model=512)
        >>> vectors = layer(np.array([[5, 6, 2]]))
        >>> keras.ops.shape(vectors)
        (1, 3, 512)
        >>> keras.ops.shape(layer(vectors, reverse=True))
        (1, 3, 8000)
    """

    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        mask_zero: bool = False,
        scale: bool = True,
        use_bias: bool = False,
        embeddings_initializer: str | keras.initializers.Initializer | None = None,
        **kwargs,
    ):
        if embeddings_initializer is None:
            embeddings_initializer = keras.initializers.RandomNormal(stddev=d_model**-0.5)
        super().__init__(
            vocab_size,
            d_model,
            embeddings_initializer=embeddings_initializer,
            mask_zero=mask_zero,
            **kwargs,
        )
        self.vocab_size = vocab_size
        self.d_model = d_model
        self.scale = scale
        self.use_bias = use_bias
        self.bias = None
        if self.reverse_dtype is None:  # the Keras layer would compute logits in float32
            self.reverse_dtype = self.compute_dtype

    def build(self, inputs_shape=None):
        if self.use_bias and self.bias is None:
            self.bias = self.add_weight(name="bias", shape=(self.vocab_size,), initializer="zeros")
        super().build(inputs_shape)  # enables LoRA, after which no weight can be added

    def call(self, inputs, reverse=False):
        outputs = super().call(inputs, reverse=reverse)
        return self._add_bias(outputs) if reverse else self._multiply_by_scale(outputs)

    def quantize(self, mode=None, type_check=True, config=None):
        """Quantizes the matrix to "int8" or "int4".

        Keras refuses to quantize subclasses of its layers without `type_check=False`.
        """
        super().quantize(mode, type_check=False, config=config)

    def quantized_call(self, inputs, reverse=False):
        """Like `call`, with a quantized matrix."""
        outputs = super().quantized_call(inputs, reverse=reverse)
        return self._add_bias(outputs) if reverse else self._multiply_by_scale(outputs)

    def _multiply_by_scale(self, vectors):
        if not self.scale:
            return vectors
        return vectors * ops.cast(self.d_model**0.5, vectors.dtype)

    def _add_bias(self, logits):
        logits = ops.cast(logits, "float32")
        return logits if self.bias is None else logits + ops.cast(self.bias, "float32")

    @property
    def variable_serialization_spec(self):
        """The names of the saved variables by quantization mode: Keras' own, and the bias."""
        names_by_mode = super().variable_serialization_spec
        if self.use_bias:
            for names in names_by_mode.values():
                names.append("bias")
        return names_by_mode

    def compute_mask(self, inputs, previous_mask=None):
        holds_ids = "int" in keras.backend.standardize_dtype(inputs.dtype)
        return padding_mask(inputs) if holds_ids and self.mask_zero else previous_mask

    def compute_output_spec(self, inputs, reverse=False):
        dtype = "float32" if reverse else self.compute_dtype
        return keras.KerasTensor(self.compute_output_shape(inputs.shape, reverse), dtype)

    def get_config(self):
        config = super().get_config()
        del config["input_dim"], config["output_dim"]  # Keras' names for vocab_size and d_model
        return {
            **config,
            "vocab_size": self.vocab_size,
            "d_model": self.d_model,
            "scale": self.scale,
            "use_bias": self.use_bias,
        }
