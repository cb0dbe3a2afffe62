"""The same model with its matrices laid out for decoding, and no other numbers.

On CPUs, multiplying a few states by the transpose of the embedding matrix takes far longer than by
a matrix that is stored transposed, and joining kernels for each target position takes time, too.
Section 3's layers know nothing of this: the classes here replace how they store and transpose.
"""

import math

import keras
import numpy as np
from keras import ops

from keras_transformer.decoding.ensemble import Ensemble
from keras_transformer.model.attention import MultiHeadAttention
from keras_transformer.model.decoder import Decoder, DecoderLayer
from keras_transformer.model.embedding import TokenEmbedding
from keras_transformer.model.encoder import Encoder, EncoderLayer
from keras_transformer.model.restricted_attention import RestrictedSelfAttention
from keras_transformer.model.transformer import Transformer

LARGE, FEW_ROWS = 2**22, 16  # numbers of a matrix, and rows, that InHalves is for


class JoinedKernels:
    """Mixed into attention: kernels that multiply the same inputs stand side by side in one."""

    stored_kernels = (("query", "key", "value"),)

    def add_projections(self, d_model):
        for names in self.stored_kernels:
            columns = self.num_heads * sum(self.widths[name] for name in names)
            self.add_projection("_".join(names), (d_model, columns))

    def joined(self, names):
        return super().joined(["_".join(names)])

    def transpose(self, tensor, shape, axes):
        """Gathers rows of the last axis: on CPUs several times faster, but for its gradient."""
        places = ops.reshape(ops.arange(math.prod(shape[:-1]), dtype="int32"), shape[:-1])
        order = ops.reshape(ops.transpose(places, axes), (-1,))
        rows = ops.take(ops.reshape(tensor, (-1, shape[-1])), order, axis=0)
        return ops.reshape(rows, (*[shape[axis] for axis in axes], shape[-1]))


class JoinedSelfAttention(JoinedKernels, MultiHeadAttention):
    pass


class JoinedRestrictedSelfAttention(JoinedKernels, RestrictedSelfAttention):
    pass


class JoinedCrossAttention(JoinedKernels, MultiHeadAttention):
    stored_kernels = (("query",), ("key", "value"))


class JoinedEncoderLayer(EncoderLayer):
    self_attention_class = JoinedSelfAttention
    restricted_attention_class = JoinedRestrictedSelfAttention


class JoinedDecoderLayer(DecoderLayer):
    self_attention_class = JoinedSelfAttention
    restricted_attention_class = JoinedRestrictedSelfAttention
    cross_attention_class = JoinedCrossAttention


class JoinedEncoder(Encoder):
    layer_class = JoinedEncoderLayer


class JoinedDecoder(Decoder):
    layer_class = JoinedDecoderLayer


class InHalves:
    """A matrix [D, V] that a few rows are multiplied by in two halves, one on each of two threads.

    Such a product takes as long as the matrix is read from memory, which a second thread speeds up.
    """

    def __init__(self, matrix):
        self.matrix = matrix

    def multiply(self, rows):
        matrix = ops.cast(self.matrix, rows.dtype)
        half = matrix.shape[0] // 2

        def in_halves():
            first = ops.matmul(rows[:, :half], matrix[:half])
            return ops.add(first, ops.matmul(rows[:, half:], matrix[half:]))

        few = ops.shape(rows)[0] <= FEW_ROWS
        return ops.cond(few, in_halves, lambda: ops.matmul(rows, matrix))


class TransposedEmbedding(TokenEmbedding):
    """Stores its matrix as [D, V]: there is no second copy of it for the softmax."""

    def add_matrix(self, shape):
        return super().add_matrix(shape[::-1])

    def look_up(self, ids):
        numbers = ops.reshape(self.matrix, (-1,))  # [D V]
        places = ops.arange(self.d_model, dtype="int32") * self.vocab_size
        return ops.take(numbers, ids[..., None] + places)  # [..., D]

    def softmax_kernel(self):
        large = self.vocab_size * self.d_model >= LARGE
        return InHalves(self.matrix) if large else self.matrix

    def softmax_columns(self, ids):
        """Returns the columns of the softmax kernel that make the logits of ids [C]: [D, C]."""
        return ops.take(self.matrix, ids, axis=1)


class InferenceTransformer(Transformer):
    """A Transformer whose matrices are laid out for decoding; made by `inference_model`."""

    encoder_class = JoinedEncoder
    decoder_class = JoinedDecoder

    @staticmethod
    def make_embedding(makes_logits, use_bias, **options):
        embedding_class = TransposedEmbedding if makes_logits else TokenEmbedding
        return embedding_class(use_bias=makes_logits and use_bias, **options)

    def training_model(self) -> Transformer:
        """Copies the model, trained variables included, into the layout of training."""
        made, places, end = Transformer(self.config, dtype=self.dtype_policy), {}, 0
        for variable in made.trainable_variables:
            start, end = end, end + math.prod(variable.shape)
            places[variable.path] = np.arange(start, end, dtype="int32").reshape(variable.shape)
        numbers = np.empty(end, np.float32)
        for variable in self.trainable_variables:  # places, laid out, tell where its numbers go
            numbers[_laid_out(variable, places, self.logits_embedding.matrix)] = variable
        for variable in made.trainable_variables:
            variable.assign(numbers[places[variable.path]])
        return made


def inference_model(model: Transformer, copy: bool = False) -> InferenceTransformer:
    """Copies a model, or an ensemble, variables included, into the layout for decoding.

    One that has the layout already is returned itself, unless `copy` is set.
    """
    if isinstance(model, Ensemble):
        return Ensemble([inference_model(member, copy) for member in model.models])
    has_layout = isinstance(model, InferenceTransformer)
    if has_layout and not copy:
        return model
    made = InferenceTransformer(model.config, dtype=model.dtype_policy)
    weights = {variable.path: ops.convert_to_tensor(variable) for variable in model.variables}
    transposed = None if has_layout else made.logits_embedding.matrix
    for variable in made.trainable_variables:
        variable.assign(_laid_out(variable, weights, transposed))
    return made


def _laid_out(variable: keras.Variable, weights: dict, transposed: keras.Variable | None):
    """The value of a variable of the copy, made of the model's weights by their paths."""
    if variable.path in weights:
        value = weights[variable.path]
        return ops.transpose(value) if variable is transposed else value
    folder, _, name = variable.path.rpartition("/")
    *parts, kind = name.split("_")
    return ops.concatenate([weights[f"{folder}/{part}_{kind}"] for part in parts], axis=-1)
