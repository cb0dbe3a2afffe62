"""A model as a directory of CTranslate2, read and written: the same weights in a second engine.

`keras_transformer.load` takes what is written (search/engines/ctranslate2_engine.py), and so does
CTranslate2's own API: tokens in, tokens out, with the vocabularies next to the weights, for the
sentencepiece package (`*.model`) or vocabulary/subwords.py (`*.txt`). CTranslate2 adds EOS to
sources and BOS to targets itself, according to its config.json. Equal weights are stored once.

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
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from keras_transformer.core.config import BOS_ID, EOS_ID, GATED, UNK_ID, TransformerConfig
from keras_transformer.core.model.positions import AddedPositions, Rotary
from keras_transformer.core.model.transformer import Transformer
from keras_transformer.core.search.engines.ctranslate2_engine import source_tokens
from keras_transformer.core.search.matrices import rounded_to_int8
from keras_transformer.core.vocabulary.pair import VocabularyPair
from keras_transformer.kit.exchange.directory import write_export, write_files
from keras_transformer.kit.exchange.formats import check_config
from keras_transformer.kit.exchange.model_bin import write_model_bin
from keras_transformer.kit.exchange.tensor_table import (
    LOGITS_BIASES,
    Arrangement,
    TensorTable,
    array,
    tensors_of,
)
from keras_transformer.support.files.json_files import write_json
from keras_transformer.use.store.card import ModelCard

SPECIFICATION, REVISION = "TransformerSpec", 7
VERSION = "4"  # of CTranslate2, which reads this revision
# Minimum rows in the table of sinusoids: more than CTranslate2 reads or writes by default.
POSITIONS = 2048
ACTIVATIONS = {"relu": 0, "swish": 2, "gelu": 3}  # their numbers there
TABLE = TensorTable(
    prefix="{stack}/layer_{layer}/",
    layers={
        (
            "self_attention/query",
            "self_attention/key",
            "self_attention/value",
        ): "self_attention/linear_0/{}",
        "self_attention/output": "self_attention/linear_1/{}",
        "self_attention_norm": "self_attention/layer_norm/{}",
        "cross_attention/query": "attention/linear_0/{}",
        ("cross_attention/key", "cross_attention/value"): "attention/linear_1/{}",
        "cross_attention/output": "attention/linear_2/{}",
        "cross_attention_norm": "attention/layer_norm/{}",
        "feed_forward/inner": "ffn/linear_0/{}",
        "feed_forward/outer": "ffn/linear_1/{}",
        "feed_forward_norm": "ffn/layer_norm/{}",
    },
    kinds={"kernel": "weight", "bias": "bias", "gamma": "gamma", "beta": "beta"},
    others={
        "encoder/last_norm/gamma": "encoder/layer_norm/gamma",
        "encoder/last_norm/beta": "encoder/layer_norm/beta",
        "decoder/last_norm/gamma": "decoder/layer_norm/gamma",
        "decoder/last_norm/beta": "decoder/layer_norm/beta",
        "embedding/embeddings": "encoder/embeddings_0/weight",
        "target_embedding/embeddings": "decoder/embeddings/weight",
        "logits_embedding/embeddings": "decoder/projection/weight",
        "source_positions/embeddings": "encoder/position_encodings/encodings",
        "target_positions/embeddings": "decoder/position_encodings/encodings",
        **dict.fromkeys(LOGITS_BIASES, "decoder/projection/bias"),
    },
    transposed=True,
    needs_biases=False,
    wide_heads=True,
)


def table_of(config: TransformerConfig) -> TensorTable:
    """Returns the table of a model, with all names of the matrices that it shares."""
    layers, others = dict(TABLE.layers), dict(TABLE.others)
    if config.activation in GATED:
        layers["feed_forward/gate"] = TABLE.layers["feed_forward/inner"]
        layers["feed_forward/inner"] = "ffn/linear_0_noact/{}"
    target = (others["target_embedding/embeddings"],)
    if config.tie_embeddings:
        target += (others["logits_embedding/embeddings"],)
        others["target_embedding/embeddings"] = target
        if config.source_vocab_size is None:
            others["embedding/embeddings"] = (others["embedding/embeddings"], *target)
    # Ours are multiplied by sqrt(D), like embeddings.
    scales = {"_positions/embeddings": config.d_model**-0.5}
    return TABLE._replace(layers=layers, others=others, scales=scales)


def export_ctranslate2(
    model: Transformer,
    vocabularies: VocabularyPair,
    export_dir: str | os.PathLike,
    card: ModelCard,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Writes the directory, with copies of the vocabularies and a model card.

    Args:
        model, vocabularies, export_dir, overwrite: see formats.export.
        card: the model card. `card.weights` is the type of the stored weights: "float32",
            "bfloat16" or "int8". CTranslate2 computes in the types that the processor supports.

    Returns:
        {"ctranslate2": export_dir, "bytes"}.

    Raises:
        InputError: if CTranslate2 does not support the model, or `export_dir` is not empty or not
            writable.
    """
    check_config("ctranslate2", model.config)
    arrays, card = arrays_of(model, card)

    def write(folder: Path) -> None:
        write_model(folder, arrays, vocabularies, model.config)
        write_files(folder, vocabularies.contents())

    size = write_export(write, export_dir, card, overwrite)
    return {"ctranslate2": str(export_dir), "bytes": size}


def write_model(
    folder: Path,
    arrays: Mapping[str, np.ndarray],
    vocabularies: VocabularyPair,
    config: TransformerConfig,
    **settings: Any,
) -> None:
    """Writes what CTranslate2 reads: the weights, the settings and the tokens.

    Args:
        settings: those that replace the usual ones in its config.json.
    """
    write_model_bin(folder / "model.bin", SPECIFICATION, REVISION, arrays)
    tokens = vocabularies.target.pieces
    usual = {
        "add_source_bos": False,
        "add_source_eos": config.encoder_reads_eos,
        "bos_token": tokens[BOS_ID],
        "decoder_start_token": tokens[BOS_ID],
        "eos_token": tokens[EOS_ID],
        "unk_token": tokens[UNK_ID],
        "layer_norm_epsilon": config.norm_epsilon,
        "multi_query_attention": False,
    }
    write_json(folder / "config.json", usual | settings)
    if source_tokens(vocabularies) == tokens:
        write_json(folder / "shared_vocabulary.json", tokens)
    else:
        write_json(folder / "source_vocabulary.json", source_tokens(vocabularies))
        write_json(folder / "target_vocabulary.json", tokens)


def arrays_of(model: Transformer, card: ModelCard) -> tuple[dict[str, np.ndarray], ModelCard]:
    """Returns the arrays in model.bin, and the card completed for it."""
    config = model.config
    table = table_of(config)
    sizes = (config.source_vocab_size or config.vocab_size, config.vocab_size)
    rows = [np.arange(size) for size in sizes]
    arrays = tensors_of(model, Arrangement(table, config, *rows, is_halved=False))
    for names in table.others.values():
        if isinstance(names, tuple) and names[0] in arrays:
            arrays |= dict.fromkeys(names, arrays[names[0]])
    layers = {"encoder": model.source_positions, "decoder": model.target_positions}
    positions = max(POSITIONS, card.decoding.limits(config).target)
    has_table = isinstance(config.position_kind, AddedPositions)
    if has_table:
        for stack, layer in layers.items():
            positions = layer.position_kind.table_rows(layer.max_positions) or positions
            encodings = array(layer.encoding(positions, config.d_model))
            arrays[f"{stack}/position_encodings/encodings"] = encodings
    arrays |= _attributes(config)
    card = dataclasses.replace(
        card, max_positions=positions if has_table else None, ctranslate2=VERSION
    )
    if card.weights == "bfloat16":
        return _in_bfloat16(arrays), card
    return _in_int8(arrays) if card.weights == "int8" else arrays, card


def _in_bfloat16(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {
        name: values.astype(ml_dtypes.bfloat16) if values.ndim else values
        for name, values in arrays.items()
    }


def _in_int8(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Rounds the matrices, with a scale for each output.

    CTranslate2 stores the scales by which float weights were multiplied, the inverse of ours.
    """
    rounded = {}
    for name, values in arrays.items():
        if name.endswith("/weight"):
            levels, scales = rounded_to_int8(values.T)
            values = levels.T
            rounded[f"{name}_scale"] = (1 / scales).astype(np.float32)
        rounded[name] = values
    return rounded


def _attributes(config: TransformerConfig) -> dict[str, np.ndarray]:
    """Returns the scalars that describe a model."""
    activation = GATED.get(config.activation, config.activation)
    num_layers = config.num_decoder_layers
    common = {
        "num_heads": np.int16(config.num_heads),
        "pre_norm": np.int8(config.norm == "pre"),
        "activation": np.int8(ACTIVATIONS[activation]),
        "scale_embeddings": np.int8(config.scale_embeddings),
    }
    # Alignments are the mean over all heads (0) in the best single layer: CTranslate2 uses one,
    # search/alignment.py the last two (docs/diary.md).
    decoder = {
        "alignment_layer": np.int16(-2 if config.norm == "pre" and num_layers > 1 else -1),
        "alignment_heads": np.int16(0),
    }
    if config.starts_with_zeros:
        decoder["start_from_zero_embedding"] = np.int8(True)
    attention = {
        "queries_scale": np.float32(config.d_k**-0.5),
        "head_dim": np.int32(max(config.d_k, config.d_v)),
    }
    rotation = {}
    if isinstance(config.position_kind, Rotary):
        rotation = {
            "rotary_dim": np.int32(config.d_k),
            "rotary_interleave": np.int8(True),
            "rotary_base": np.float32(10000),
        }
    attributes = {f"encoder/{name}": value for name, value in common.items()}
    attributes |= {f"decoder/{name}": value for name, value in (common | decoder).items()}
    for stack, depth in (("encoder", config.num_layers), ("decoder", num_layers)):
        for layer in range(depth):
            prefix = f"{stack}/layer_{layer}"
            for name, value in (attention | rotation).items():
                attributes[f"{prefix}/self_attention/{name}"] = value
            if stack == "decoder":
                for name, value in attention.items():
                    attributes[f"{prefix}/attention/{name}"] = value
    return {name: np.asarray(value) for name, value in attributes.items()}
