"""A trained model as a directory that CTranslate2 loads: the same weights in a second engine.

`keras_transformer.load` takes it (search/engines/ctranslate2_engine.py), and so does CTranslate2's
own API: tokens in, tokens out, with the vocabularies next to the weights, for the sentencepiece
package (`*.model`) or vocabulary/subwords.py (`*.txt`). CTranslate2 adds EOS to sources and BOS to
targets itself, according to its config.json. Equal weights are stored once.

In int8, weights are integers from -64 to 64, rounded as for the search (search/matrices.py).
CTranslate2's own rounding uses integers up to 127. On processors without VNNI, its kernel adds
pairs of products in 16 bits, where such sums saturate. With inputs of 8 bits and weights up to 64,
they never do: the products are exact on all processors.

With length_penalty=0 and min_decoding_length=0 its search matches alpha = 0. Its other penalties
differ from ours: it divides log probabilities by |Y|^length_penalty, not by ((5 + |Y|) / 6)^alpha.
So do its limits: by default it writes at least one and at most 256 tokens, and truncates sources at
1,024.
"""

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from keras_transformer.core.config import BOS_ID, EOS_ID, GATED, UNK_ID
from keras_transformer.core.model.attention import MultiHeadAttention
from keras_transformer.core.model.decoder import Decoder, DecoderLayer
from keras_transformer.core.model.encoder import Encoder, EncoderLayer
from keras_transformer.core.model.feed_forward import FeedForward, GatedFeedForward
from keras_transformer.core.model.positional_encoding import PositionalEncoding
from keras_transformer.core.model.positions import Rotary
from keras_transformer.core.model.transformer import Transformer
from keras_transformer.core.search.engines.ctranslate2_engine import load_ctranslate2, source_tokens
from keras_transformer.core.search.matrices import rounded_to_int8
from keras_transformer.core.vocabulary.pair import VocabularyPair
from keras_transformer.kit.exchange.directory import write_export, write_files
from keras_transformer.support.errors import require
from keras_transformer.use.store.card import ModelCard

# The kinds of positions that CTranslate2 computes, as a table or as its own rotation.
KINDS_OF_POSITIONS = ("sinusoidal", "learned", "marian", "m2m100", "rotary")
# Minimum rows in the table of sinusoids: more than CTranslate2 reads or writes by default.
POSITIONS = 2048


def export_ctranslate2(
    model: Transformer,
    vocabularies: VocabularyPair,
    export_dir: str | os.PathLike,
    card: ModelCard,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Writes the directory, with copies of the vocabularies and a model card.

    Args:
        model: the Transformer.
        vocabularies: the source and target vocabularies, in files.
        export_dir: the directory to create.
        card: the model card. `card.weights` is the type of the stored weights: "float32",
            "bfloat16" or "int8". CTranslate2 computes in the types that the processor supports.
        overwrite: whether to replace an earlier export in `export_dir`.

    Returns:
        {"ctranslate2": export_dir, "bytes"}.

    Raises:
        InputError: if CTranslate2 is not installed or does not support the model, or `export_dir`
            is not empty or not writable.
    """
    spec, card = ctranslate2_spec(model, vocabularies, card)

    def write(folder: Path) -> None:
        spec.save(str(folder))
        write_files(folder, vocabularies.contents())

    size = write_export(write, export_dir, card, overwrite)
    return {"ctranslate2": str(export_dir), "bytes": size}


def ctranslate2_spec(model: Transformer, vocabularies: VocabularyPair, card: ModelCard):
    """Converts a model to a specification that CTranslate2 saves as a directory.

    Args:
        model, vocabularies, card: see `export_ctranslate2`.

    Returns:
        A TransformerSpec, and the card completed for it.

    Raises:
        InputError: if CTranslate2 is not installed, or does not support the model.
    """
    ctranslate2 = load_ctranslate2()
    kind = model.config.positions
    rule = f"must have positions that CTranslate2 supports: {', '.join(KINDS_OF_POSITIONS)}"
    require(kind in KINDS_OF_POSITIONS, "model", rule, f"positions={kind}")
    window = model.config.attention_window
    rule = "must not have an attention_window, which CTranslate2 does not support"
    require(window is None, "model", rule, f"attention_window={window}")

    limits = card.decoding.limits(model.config)
    spec = transformer_spec(ctranslate2.specs, model, max(POSITIONS, limits.target))
    _set_vocabularies(spec, vocabularies)
    spec.config.layer_norm_epsilon = model.config.norm_epsilon
    has_table = not isinstance(model.config.position_kind, Rotary)
    card = dataclasses.replace(
        card,
        max_positions=spec.encoder.position_encodings.encodings.shape[0] if has_table else None,
        ctranslate2=ctranslate2.__version__,
    )
    spec.validate()
    spec.optimize()  # stores equal weights once
    if card.weights == "bfloat16":
        _round_to_bfloat16(spec)
    elif card.weights == "int8":
        _round_to_int8(ctranslate2.specs.model_spec, spec)
    return spec, card


def _round_to_bfloat16(spec) -> None:
    """Rounds the matrices and vectors of an optimized spec, for which CTranslate2 needs PyTorch."""
    for variable in spec.variables().values():
        is_stored = not isinstance(variable, str)  # otherwise the name of an equal one
        if is_stored and variable.dtype == "float32" and not variable.is_scalar():
            variable.array = variable.array.astype(tf.bfloat16.as_numpy_dtype)


def _round_to_int8(model_spec: ModuleType, spec) -> None:
    """Rounds the matrices of an optimized spec, with a scale for each output.

    CTranslate2 stores the scales by which float weights were multiplied, the inverse of ours.
    """

    def round_matrix(layer, name: str, variable) -> None:
        if name.endswith("/weight") and not isinstance(variable, str):
            levels, scales = rounded_to_int8(variable.numpy().T)
            layer.weight = model_spec.NumpyVariable(_transposed(levels))
            layer.weight_scale = model_spec.NumpyVariable(1 / scales)

    model_spec.visit_spec(spec, round_matrix)


def _set_vocabularies(spec, vocabularies: VocabularyPair) -> None:
    """Sets both vocabularies, and the names of the special ids."""
    target_tokens = vocabularies.target.pieces
    spec.register_source_vocabulary(source_tokens(vocabularies))
    spec.register_target_vocabulary(target_tokens)
    spec.config.unk_token = target_tokens[UNK_ID]
    spec.config.bos_token = target_tokens[BOS_ID]
    spec.config.decoder_start_token = target_tokens[BOS_ID]
    spec.config.eos_token = target_tokens[EOS_ID]
    spec.config.add_source_eos = True


def transformer_spec(specs: ModuleType, model: Transformer, positions: int):
    """Converts a Transformer's weights to a TransformerSpec from `specs`, ctranslate2.specs.

    Args:
        positions: the number of rows in a table of sinusoids.
    """
    config = model.config
    activations = {
        "relu": specs.Activation.RELU,
        "swish": specs.Activation.SWISH,
        "gelu": specs.Activation.GELU,
    }
    settings = {
        "num_heads": config.num_heads,
        "pre_norm": config.norm == "pre",
        "head_dim": max(config.d_k, config.d_v),
        "activation": activations[GATED.get(config.activation, config.activation)],
        "ffn_glu": config.activation in GATED,
        "rotary_dim": config.d_k if isinstance(config.position_kind, Rotary) else None,
    }
    encoder = specs.TransformerEncoderSpec(len(model.encoder.layers), **settings)
    # Alignments are the mean over all heads (0) in the best single layer: CTranslate2 uses one,
    # search/alignment.py the last two (docs/diary.md).
    num_layers = len(model.decoder.layers)
    layer = -2 if config.norm == "pre" and num_layers > 1 else -1
    alignment = {"alignment_layer": layer, "alignment_heads": 0}
    decoder = specs.TransformerDecoderSpec(num_layers, **settings, **alignment)

    # An embedding is stored as its matrix [V, D], a linear layer as its kernel transposed.
    encoder.scale_embeddings = config.scale_embeddings
    encoder.embeddings[0].weight = array(model.embedding.embeddings)
    _set_positions(encoder, model.source_positions, config.d_model, positions)
    _set_stack(encoder, model.encoder)

    decoder.scale_embeddings = config.scale_embeddings
    decoder.embeddings.weight = array(model.target_embedding.embeddings)
    _set_positions(decoder, model.target_positions, config.d_model, positions)
    _set_stack(decoder, model.decoder)

    decoder.projection.weight = array(model.logits_embedding.embeddings)
    if model.logits_embedding.bias is not None:
        decoder.projection.bias = array(model.logits_embedding.bias)
    return specs.TransformerSpec(encoder, decoder)


def _set_positions(spec, layer: PositionalEncoding, d_model: int, positions: int) -> None:
    """Sets the position table added to embeddings; none for rotary positions."""
    if isinstance(layer.position_kind, Rotary):
        if hasattr(spec, "position_encodings"):  # the encoder's, which CTranslate2 would not read
            del spec.position_encodings
        return
    length = layer.position_kind.table_rows(layer.max_positions) or positions
    spec.position_encodings.encodings = array(layer.encoding(length, d_model))


def _set_stack(spec, stack: Encoder | Decoder) -> None:
    for layer_spec, layer in zip(spec.layer, stack.layers, strict=True):
        _set_layer(layer_spec, layer)
    if stack.last_norm is not None:
        _set_norm(spec.layer_norm, stack.last_norm)


def _set_layer(spec, layer: EncoderLayer | DecoderLayer) -> None:
    _set_self_attention(spec.self_attention, layer.self_attention)
    _set_norm(spec.self_attention.layer_norm, layer.self_attention_norm)
    if isinstance(layer, DecoderLayer):
        _set_cross_attention(spec.attention, layer.cross_attention)
        _set_norm(spec.attention.layer_norm, layer.cross_attention_norm)
    _set_feed_forward(spec.ffn, layer.feed_forward)
    _set_norm(spec.ffn.layer_norm, layer.feed_forward_norm)


def _set_self_attention(spec, attention: MultiHeadAttention) -> None:
    """Sets one product for queries, keys and values, and one for the output."""
    projections, output = spec.linear
    inputs = [attention.query_dense, attention.key_dense, attention.value_dense]
    _set_projections(projections, attention, inputs)
    _set_output(output, attention)
    spec.queries_scale = np.float32(attention.key_dim**-0.5)


def _set_cross_attention(spec, attention: MultiHeadAttention) -> None:
    """Sets products for queries, for keys and values together, and for the output."""
    queries, keys_values, output = spec.linear
    _set_projections(queries, attention, [attention.query_dense])
    _set_projections(keys_values, attention, [attention.key_dense, attention.value_dense])
    _set_output(output, attention)
    spec.queries_scale = np.float32(attention.key_dim**-0.5)


def _set_projections(
    spec, attention: MultiHeadAttention, layers: Sequence[keras.layers.Dense]
) -> None:
    """Sets one product for several Dense layers, whose outputs are concatenated."""
    kernels = [_with_wide_heads(array(layer.kernel), attention) for layer in layers]
    spec.weight = _transposed(np.concatenate(kernels, axis=-1))
    if attention.use_bias:
        biases = [_with_wide_heads(array(layer.bias), attention) for layer in layers]
        spec.bias = np.concatenate(biases)


def _set_output(spec, attention: MultiHeadAttention) -> None:
    kernel = array(attention.output_dense.kernel)  # [H d_v, D]
    spec.weight = _with_wide_heads(_transposed(kernel), attention)  # [D, H width]
    if attention.use_bias:
        spec.bias = array(attention.output_dense.bias)


def _with_wide_heads(weights: np.ndarray, attention: MultiHeadAttention) -> np.ndarray:
    """Makes heads as wide as the wider of queries and values: [..., H d] -> [..., H width].

    CTranslate2's heads have equal widths for keys and values. The narrower ones are padded with
    zeros, which do not change products.
    """
    width = max(attention.key_dim, attention.value_dim)
    heads = weights.reshape(*weights.shape[:-1], attention.num_heads, -1)  # [..., H, d]
    padding = np.zeros((*heads.shape[:-1], width - heads.shape[-1]), weights.dtype)
    wide_heads = np.concatenate([heads, padding], axis=-1)  # [..., H, width]
    return wide_heads.reshape(*weights.shape[:-1], -1)


def _set_feed_forward(spec, feed_forward: FeedForward | GatedFeedForward) -> None:
    if isinstance(feed_forward, GatedFeedForward):
        _set_linear(spec.linear_0, feed_forward.gate_dense)
        _set_linear(spec.linear_0_noact, feed_forward.inner_dense)
    else:
        _set_linear(spec.linear_0, feed_forward.inner_dense)
    _set_linear(spec.linear_1, feed_forward.outer_dense)


def _set_linear(spec, layer: keras.layers.Dense) -> None:
    spec.weight = _transposed(array(layer.kernel))
    if layer.bias is not None:
        spec.bias = array(layer.bias)


def _set_norm(spec, norm: keras.layers.LayerNormalization) -> None:
    spec.gamma = array(norm.gamma)
    spec.beta = array(norm.beta)


def _transposed(kernel: np.ndarray) -> np.ndarray:
    """Transposes a kernel to CTranslate2's [outputs, inputs]."""
    return np.ascontiguousarray(kernel.T)


def array(variable) -> np.ndarray:
    """Returns the values of a variable or tensor as float32."""
    values = ops.convert_to_numpy(variable).astype(np.float32)
    require(np.isfinite(values).all(), "model", "must have finite weights", "others")
    return values
