"""A model's weights in the fastest layout for decoding.

`read_weights` reads a Transformer once. Kernels that multiply the same inputs are concatenated into
one matrix, and the embedding matrix is stored transposed, as the softmax needs it: on a CPU,
multiplying a few states by the transpose of a matrix takes far longer than by a matrix stored
transposed. Weights are stored as variables; `as_tensors` reads them at the beginning of a graph.
compiled_model.py computes with them.
"""

from collections.abc import Callable
from typing import NamedTuple

import keras
import numpy as np
import tensorflow as tf

from keras_transformer.core.model.feed_forward import GatedFeedForward
from keras_transformer.core.model.ssru import SSRU
from keras_transformer.core.model.transformer import Transformer
from keras_transformer.core.search.matrices import (
    EmbeddingTable,
    FloatMatrix,
    Int8Matrix,
    Matrix,
    ScaledRows,
    float_matrix,
    int8_matrix,
    softmax_matrix,
)


class Linear(NamedTuple):
    """rows W + b."""

    matrix: Matrix  # W, [D, E]
    bias: tf.Tensor | None  # b, float32 [E]

    def apply(self, rows: tf.Tensor, non_negative: bool = False) -> tf.Tensor:
        """float32 [R, D] -> [R, E]; `non_negative` rows save time with int8 weights."""
        products = self.matrix.multiply(rows, non_negative)
        return products if self.bias is None else products + self.bias

    def apply_scaled(self, rows: tf.Tensor) -> ScaledRows:
        """Like `apply`, but returns rows that are yet to be scaled, if that saves time."""
        if self.bias is None:
            return self.matrix.scaled_products(rows)
        return ScaledRows(self.apply(rows), tf.ones([tf.shape(rows)[0], 1]))


class Normalization(NamedTuple):
    """The parameters of a layer normalization."""

    gamma: tf.Tensor  # float32 [D]
    beta: tf.Tensor  # float32 [D]


class SelfAttentionWeights(NamedTuple):
    """The projections of self-attention."""

    query_key_value: Linear  # [D, H d_k + H d_k + H d_v]
    output: Linear  # [H d_v, D]


class SSRUWeights(NamedTuple):
    """The projections of an SSRU, in place of self-attention."""

    input_forget: Linear  # [D, D + D], W and W_f, without b_f
    forget_bias: tf.Tensor  # float32 [D], b_f


class CrossAttentionWeights(NamedTuple):
    """The projections of cross-attention."""

    query: Linear  # [D, H d_k]
    key_value: Linear  # [D, H d_k + H d_v]
    output: Linear  # [H d_v, D]


class FeedForwardWeights(NamedTuple):
    """The two linear transformations of equation 2; a gate precedes the inner one."""

    inner: Linear  # [D, F]; [D, 2 F] with a gate
    outer: Linear  # [F, D]


class EncoderLayerWeights(NamedTuple):
    """An encoder layer, with the normalization of each sublayer (section 3.1)."""

    self_attention: SelfAttentionWeights
    self_attention_norm: Normalization
    feed_forward: FeedForwardWeights
    feed_forward_norm: Normalization


class DecoderLayerWeights(NamedTuple):
    """A decoder layer, with the normalization of each sublayer (section 3.1)."""

    self_attention: SelfAttentionWeights | SSRUWeights
    self_attention_norm: Normalization
    cross_attention: CrossAttentionWeights
    cross_attention_norm: Normalization
    feed_forward: FeedForwardWeights
    feed_forward_norm: Normalization


class Stack(NamedTuple):
    """The encoder or the decoder."""

    layers: tuple[EncoderLayerWeights, ...] | tuple[DecoderLayerWeights, ...]
    last_norm: Normalization | None
    positions: tf.Tensor | None  # float32 [P, D], the table of learned positions


class Weights(NamedTuple):
    """All weights of a Transformer."""

    source_embedding: FloatMatrix | Int8Matrix | EmbeddingTable
    target_embedding: FloatMatrix | Int8Matrix | EmbeddingTable
    logits: Linear  # the softmax matrix, [D, V]
    encoder: Stack
    decoder: Stack


def read_weights(model: Transformer, dtype: str = "float32") -> Weights:
    """Copies the weights of a model into variables.

    Args:
        model: a model with any dtype policy; its variables are float32.
        dtype: "float32"; "bfloat16", half the memory, see `as_tensors`; or "int8", a quarter of the
            memory, for matrices that are multiplied as integers. With int8, biases, positions and
            normalizations are float32.

    Returns:
        Weights of tf.Variables. Tied embeddings are the same variable.
    """
    store_matrix = int8_matrix if dtype == "int8" else float_matrix
    store_softmax_matrix = int8_matrix if dtype == "int8" else softmax_matrix
    softmax_layer = model.logits_embedding
    logits = Linear(
        store_softmax_matrix(_array(softmax_layer.embeddings).T), _store(softmax_layer.bias)
    )

    def embedding(layer):
        if layer is softmax_layer:
            return logits.matrix
        values = _array(layer.embeddings)
        return int8_matrix(values.T) if dtype == "int8" else EmbeddingTable(_store(values))

    source_embedding = embedding(model.embedding)
    target_embedding = source_embedding
    if model.target_embedding is not model.embedding:
        target_embedding = embedding(model.target_embedding)
    weights = Weights(
        source_embedding=source_embedding,
        target_embedding=target_embedding,
        logits=logits,
        encoder=_encoder(model, store_matrix),
        decoder=_decoder(model, store_matrix),
    )
    if dtype == "bfloat16":
        return _for_each_variable(
            lambda variable: tf.Variable(tf.cast(variable, tf.bfloat16), trainable=False), weights
        )
    return weights


def as_tensors(weights: Weights, keep_matrices: bool = False) -> Weights:
    """Reads the variables in a graph. bfloat16 becomes float32, once per call of the graph.

    Args:
        weights: of variables.
        keep_matrices: whether matrices stay bfloat16. Products are then computed in bfloat16 and
            summed in float32; everything else stays float32.
    """

    def read(variable):
        value = tf.convert_to_tensor(variable)
        is_kept = keep_matrices and value.shape.rank == 2
        return tf.cast(value, tf.float32) if value.dtype == tf.bfloat16 and not is_kept else value

    return _for_each_variable(read, weights)


def variables_of(weights: Weights | Stack) -> list[tf.Variable]:
    """Returns the variables in a fixed order, each once."""
    variables = {id(part): part for part in tf.nest.flatten(weights) if part is not None}
    return list(variables.values())


def update_weights(weights: Weights, model: Transformer) -> None:
    """Updates float32 weights from the current variables of their model."""
    _assign_all(weights, read_weights(model))


def update_stacks(weights: Weights, model: Transformer) -> None:
    """Like `update_weights`, but leaves out the embeddings, which an adapter does not change."""
    _assign_all(weights.encoder, _encoder(model, float_matrix))
    _assign_all(weights.decoder, _decoder(model, float_matrix))


def _assign_all(weights: Weights | Stack, values: Weights | Stack) -> None:
    for variable, value in zip(variables_of(weights), variables_of(values), strict=True):
        variable.assign(value)


def write_weights(weights: Weights, model: Transformer) -> None:
    """Copies weights back into a Transformer of the same configuration, in float32."""
    softmax_layer = model.logits_embedding
    _assign_embedding(softmax_layer, weights.logits.matrix)
    if softmax_layer.bias is not None:
        softmax_layer.bias.assign(weights.logits.bias)
    if model.target_embedding is not softmax_layer:
        _assign_embedding(model.target_embedding, weights.target_embedding)
    if model.embedding is not model.target_embedding:
        _assign_embedding(model.embedding, weights.source_embedding)
    stacks = (
        (model.encoder, model.source_positions, weights.encoder),
        (model.decoder, model.target_positions, weights.decoder),
    )
    for stack, positions, stored in stacks:
        if stored.positions is not None:
            positions.embeddings.assign(tf.cast(stored.positions, tf.float32))
        if stored.last_norm is not None:
            _assign_normalization(stack.last_norm, stored.last_norm)
        for layer, layer_weights in zip(stack.layers, stored.layers, strict=True):
            _assign_layer(layer, layer_weights)


def _for_each_variable(function: Callable, weights: Weights) -> Weights:
    """Maps a function over each variable in a structure; shared ones stay shared."""
    results = {id(variable): function(variable) for variable in variables_of(weights)}
    return tf.nest.map_structure(lambda part: None if part is None else results[id(part)], weights)


def _array(value) -> np.ndarray:
    """Returns the values of a Keras variable, on one device or several, in float32.

    A kernel with an adapter is not a variable but the sum of both, in the activations' type.
    """
    return tf.cast(tf.convert_to_tensor(value), tf.float32).numpy()


def _store(value) -> tf.Variable | None:
    return None if value is None else tf.Variable(_array(value), trainable=False)


def _linear(store_matrix: Callable, *layers) -> Linear:
    """Stores Dense layers of the same input as one, with their biases if they have any."""
    biases = [_array(layer.bias) for layer in layers if layer.bias is not None]
    bias = _store(np.concatenate(biases)) if biases else None
    return Linear(_matrix(store_matrix, *layers), bias)


def _matrix(store_matrix: Callable, *layers) -> Matrix:
    """Stores the kernels of Dense layers concatenated: each [D, E], together [D, sum of E]."""
    return store_matrix(np.concatenate([_array(layer.kernel) for layer in layers], axis=1))


def _normalization(layer) -> Normalization | None:
    return None if layer is None else Normalization(_store(layer.gamma), _store(layer.beta))


def _self_attention(layer, store_matrix) -> SelfAttentionWeights | SSRUWeights:
    if isinstance(layer, SSRU):
        return SSRUWeights(
            input_forget=Linear(_matrix(store_matrix, layer.input_dense, layer.forget_dense), None),
            forget_bias=_store(layer.forget_dense.bias),
        )
    projections = (layer.query_dense, layer.key_dense, layer.value_dense)
    return SelfAttentionWeights(
        query_key_value=_linear(store_matrix, *projections),
        output=_linear(store_matrix, layer.output_dense),
    )


def _cross_attention(layer, store_matrix) -> CrossAttentionWeights:
    return CrossAttentionWeights(
        query=_linear(store_matrix, layer.query_dense),
        key_value=_linear(store_matrix, layer.key_dense, layer.value_dense),
        output=_linear(store_matrix, layer.output_dense),
    )


def _feed_forward(layer, store_matrix) -> FeedForwardWeights:
    return FeedForwardWeights(
        inner=_linear(store_matrix, *_inner_layers(layer)),
        outer=_linear(store_matrix, layer.outer_dense),
    )


def _inner_layers(layer) -> list[keras.layers.Dense]:
    """Returns the layers that take a feed-forward network's input."""
    is_gated = isinstance(layer, GatedFeedForward)
    return [layer.gate_dense, layer.inner_dense] if is_gated else [layer.inner_dense]


def _encoder(model: Transformer, store_matrix: Callable) -> Stack:
    return Stack(
        tuple(_encoder_layer(layer, store_matrix) for layer in model.encoder.layers),
        _normalization(model.encoder.last_norm),
        _store(model.source_positions.embeddings),
    )


def _decoder(model: Transformer, store_matrix: Callable) -> Stack:
    return Stack(
        tuple(_decoder_layer(layer, store_matrix) for layer in model.decoder.layers),
        _normalization(model.decoder.last_norm),
        _store(model.target_positions.embeddings),
    )


def _encoder_layer(layer, store_matrix) -> EncoderLayerWeights:
    return EncoderLayerWeights(
        self_attention=_self_attention(layer.self_attention, store_matrix),
        self_attention_norm=_normalization(layer.self_attention_norm),
        feed_forward=_feed_forward(layer.feed_forward, store_matrix),
        feed_forward_norm=_normalization(layer.feed_forward_norm),
    )


def _decoder_layer(layer, store_matrix) -> DecoderLayerWeights:
    return DecoderLayerWeights(
        self_attention=_self_attention(layer.self_attention, store_matrix),
        self_attention_norm=_normalization(layer.self_attention_norm),
        cross_attention=_cross_attention(layer.cross_attention, store_matrix),
        cross_attention_norm=_normalization(layer.cross_attention_norm),
        feed_forward=_feed_forward(layer.feed_forward, store_matrix),
        feed_forward_norm=_normalization(layer.feed_forward_norm),
    )


def _assign_layer(layer, weights: EncoderLayerWeights | DecoderLayerWeights) -> None:
    """Copies the weights of an encoder or decoder layer back into a Keras layer."""
    _assign_self_attention(layer.self_attention, weights.self_attention)
    _assign_normalization(layer.self_attention_norm, weights.self_attention_norm)
    if isinstance(weights, DecoderLayerWeights):
        attention = layer.cross_attention
        _assign_linear(weights.cross_attention.query, attention.query_dense)
        _assign_linear(
            weights.cross_attention.key_value, attention.key_dense, attention.value_dense
        )
        _assign_linear(weights.cross_attention.output, attention.output_dense)
        _assign_normalization(layer.cross_attention_norm, weights.cross_attention_norm)
    _assign_linear(weights.feed_forward.inner, *_inner_layers(layer.feed_forward))
    _assign_linear(weights.feed_forward.outer, layer.feed_forward.outer_dense)
    _assign_normalization(layer.feed_forward_norm, weights.feed_forward_norm)


def _assign_self_attention(layer, weights: SelfAttentionWeights | SSRUWeights) -> None:
    if isinstance(weights, SSRUWeights):
        _assign_linear(weights.input_forget, layer.input_dense, layer.forget_dense)
        layer.forget_dense.bias.assign(tf.cast(weights.forget_bias, tf.float32))
        return
    projections = (layer.query_dense, layer.key_dense, layer.value_dense)
    _assign_linear(weights.query_key_value, *projections)
    _assign_linear(weights.output, layer.output_dense)


def _assign_linear(linear: Linear, *layers) -> None:
    """Copies concatenated kernels back into Dense layers."""
    widths = [layer.units for layer in layers]
    kernels = tf.split(linear.matrix.in_float32(), widths, axis=1)
    for layer, kernel in zip(layers, kernels, strict=True):
        layer.kernel.assign(kernel)
    if linear.bias is not None:
        for layer, bias in zip(layers, tf.split(linear.bias, widths), strict=True):
            layer.bias.assign(tf.cast(bias, tf.float32))


def _assign_normalization(layer, weights: Normalization) -> None:
    layer.gamma.assign(tf.cast(weights.gamma, tf.float32))
    layer.beta.assign(tf.cast(weights.beta, tf.float32))


def _assign_embedding(layer, matrix: Matrix | EmbeddingTable) -> None:
    values = matrix.in_float32()
    layer.embeddings.assign(values if isinstance(matrix, EmbeddingTable) else tf.transpose(values))
