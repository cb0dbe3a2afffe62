"""A trained model as a directory that CTranslate2 loads: the same weights in a second engine.

Tokens in, tokens out: the vocabularies stand beside the weights, for the sentencepiece package
(`*.model`) or vocabulary/subwords.py (`*.txt`). CTranslate2 adds EOS to sources and BOS to targets
itself, as its config.json tells it to. Weights are float32 and stored once; `compute_type`
quantizes them on loading.

With length_penalty=0 and min_decoding_length=0 it searches for what alpha = 0 searches for. Its
other penalties are not ours: it divides log-probabilities by |Y|^length_penalty, not by
((5 + |Y|) / 6)^alpha. Nor are its limits: unless told otherwise it writes at least one token and at
most 256, and cuts sources at 1,024.
"""

import dataclasses
import os
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_transformer.config import BOS_ID, EOS_ID, UNK_ID
from keras_transformer.decoding.shortlist import Shortlist
from keras_transformer.errors import InputError, require
from keras_transformer.export.model_card import write_export
from keras_transformer.vocabulary.pair import VocabularyPair
from keras_transformer.vocabulary.subwords import Subwords

# Rows of the table of sinusoids: more than CTranslate2 reads or writes unless told to.
POSITIONS = 2048


def export_ctranslate2(
    model: keras.Model,
    vocabularies: VocabularyPair,
    export_dir: str | os.PathLike,
    card: dict[str, Any],
    overwrite: bool = False,
    shortlist: Shortlist | None = None,
) -> dict[str, Any]:
    """Writes the directory, with copies of the vocabularies; arguments as of export_saved_model.

    A shortlist becomes a vocabulary map, for those who translate with use_vmap=True.

    Returns:
        {"ctranslate2": export_dir, "bytes"}.

    Raises:
        InputError: where CTranslate2 is not installed, or has no such model, or `export_dir` holds
            something or cannot be written.
    """
    ctranslate2 = load_ctranslate2()
    window = model.config.attention_window
    rule = "--format=ctranslate2 takes models without attention_window, which it cannot hold"
    require(window is None, rule, f"attention_window={window}")
    source_tokens, tokens = map(vocabulary_tokens, vocabularies)
    spec = transformer_spec(ctranslate2.specs, model)
    # CTranslate2 knows a special id of both sides by one name.
    spec.register_source_vocabulary(tokens[: UNK_ID + 1] + source_tokens[UNK_ID + 1 :])
    spec.register_target_vocabulary(tokens)
    spec.config.unk_token = tokens[UNK_ID]
    spec.config.bos_token = spec.config.decoder_start_token = tokens[BOS_ID]
    spec.config.eos_token = tokens[EOS_ID]
    spec.config.add_source_eos = True
    spec.config.layer_norm_epsilon = model.config.norm_epsilon
    card = {
        **card,
        "max_positions": spec.encoder.position_encodings.encodings.shape[0],
        "config": dataclasses.asdict(model.config),
        "parameters": model.count_params(),
        "weights": "float32",
        "shortlist": shortlist and shortlist.sizes,
        **vocabularies.fingerprints,
        "ctranslate2": ctranslate2.__version__,
    }
    spec.validate()
    spec.optimize()  # stores equal weights once

    def write(folder):
        spec.save(str(folder))
        for vocabulary in vocabularies:
            (folder / vocabulary.file.name).write_bytes(vocabulary.file.read_bytes())
        if shortlist is not None:
            lines = vocabulary_map(shortlist, source_tokens, tokens)
            (folder / "vmap.txt").write_text(lines, encoding="utf-8", newline="\n")

    size = write_export(write, export_dir, card, overwrite)
    return {"ctranslate2": str(export_dir), "bytes": size}


def load_ctranslate2():
    """Imports the package, which is an extra; InputError where it is not installed."""
    try:
        import ctranslate2
    except ImportError:
        rule = "--format=ctranslate2 must find the package ctranslate2 (pip install ctranslate2)"
        raise InputError(f"{rule}. Received: none installed") from None
    return ctranslate2


def vocabulary_map(shortlist: Shortlist, source_tokens: list[str], tokens: list[str]) -> str:
    """Lines of a source token, a tab, and target tokens; no source token stands for any.

    Tokens that contain spaces, tabs or line breaks cannot be named in it.
    """

    def can_be_named(token):
        return not any(space in token for space in " \t\n\r")

    rows = [("", shortlist.always.numpy())]
    rows += zip(source_tokens, shortlist.likely.to_list(), strict=True)
    lines = [
        f"{source}\t{' '.join(filter(can_be_named, [tokens[i] for i in ids]))}\n"
        for source, ids in rows
        if can_be_named(source)
    ]
    return "".join(lines)


def vocabulary_tokens(vocabulary: Subwords) -> list[str]:
    """The subwords of a vocabulary in the order of their ids."""
    pieces = vocabulary.pieces_tensor(np.arange(vocabulary.vocab_size, dtype=np.int32)[None])
    return [piece.decode("utf-8") for piece in pieces.numpy()[0]]


def transformer_spec(specs, model: keras.Model):
    """Puts a Transformer's weights into a TransformerSpec of ctranslate2.specs."""
    config = model.config
    settings = {
        "num_heads": config.num_heads,
        "pre_norm": config.norm == "pre",
        "head_dim": max(config.d_k, config.d_v),
        "activation": getattr(specs.Activation, config.activation.upper()),
    }
    encoder = specs.TransformerEncoderSpec(len(model.encoder.layers), **settings)
    decoder = specs.TransformerDecoderSpec(len(model.decoder.layers), **settings)
    encoder.scale_embeddings = decoder.scale_embeddings = config.scale_embeddings
    set_linear(encoder.embeddings[0], model.embedding.softmax_kernel())
    set_linear(decoder.embeddings, model.target_embedding.softmax_kernel())
    softmax = model.logits_embedding
    set_linear(decoder.projection, softmax.softmax_kernel(), softmax.bias)
    for positions, stack, spec in (
        (model.source_positions, model.encoder, encoder),
        (model.target_positions, model.decoder, decoder),
    ):
        rows = POSITIONS if positions.table is None else config.max_positions
        table = positions(ops.zeros((1, rows, config.d_model)))
        spec.position_encodings.encodings = array(table)[0]
        if stack.last_norm is not None:
            set_norm(spec.layer_norm, stack.last_norm)
        for layer, layer_spec in zip(stack.layers, spec.layer, strict=True):
            set_layer(layer_spec, layer)
    return specs.TransformerSpec(encoder, decoder)


def set_layer(spec, layer) -> None:
    """Sets the weights of an encoder's layer, or of a decoder's."""
    # CTranslate2 joins the kernels of what is computed from the same states.
    set_attention(spec.self_attention, layer.self_attention, [("query", "key", "value")])
    set_norm(spec.self_attention.layer_norm, layer.self_attention_residual.norm)
    if hasattr(layer, "cross_attention"):
        set_attention(spec.attention, layer.cross_attention, [("query",), ("key", "value")])
        set_norm(spec.attention.layer_norm, layer.cross_attention_residual.norm)
    set_linear(spec.ffn.linear_0, layer.feed_forward.inner_kernel, layer.feed_forward.inner_bias)
    set_linear(spec.ffn.linear_1, layer.feed_forward.outer_kernel, layer.feed_forward.outer_bias)
    set_norm(spec.ffn.layer_norm, layer.feed_forward_residual.norm)


def set_attention(spec, attention, products) -> None:
    """Sets the kernels of a MultiHeadAttention, those in each of `products` joined.

    CTranslate2's heads are as wide for values as for keys: the narrower are padded with zeros,
    which change no product.
    """
    heads, width = attention.num_heads, max(attention.key_dim, attention.value_dim)

    def padded(part):  # [..., H d] -> [..., H width]
        parts = part.reshape(*part.shape[:-1], heads, -1)
        parts = np.pad(parts, [(0, 0)] * part.ndim + [(0, width - parts.shape[-1])])
        return parts.reshape(*part.shape[:-1], -1)

    for linear, names in zip(spec.linear, products, strict=False):  # the last is the output's
        ends = np.cumsum([heads * attention.widths[name] for name in names])
        joined = [np.split(array(part), ends[:-1], axis=-1) for part in attention.joined(names)]
        set_linear(linear, *[np.concatenate([*map(padded, parts)], axis=-1) for parts in joined])
    kernel, *bias = attention.joined(("output",))
    set_linear(spec.linear[-1], padded(array(kernel).T).T, *bias)
    spec.queries_scale = np.float32(attention.key_dim**-0.5)


def set_linear(spec, kernel, bias=None) -> None:
    """Sets a product with `kernel` [rows, columns], which CTranslate2 has transposed."""
    spec.weight = np.ascontiguousarray(array(kernel).T)
    if bias is not None:
        spec.bias = array(bias)


def set_norm(spec, norm) -> None:
    spec.gamma, spec.beta = array(norm.gain), array(norm.bias)


def array(variable) -> np.ndarray:
    return ops.convert_to_numpy(variable).astype(np.float32)
