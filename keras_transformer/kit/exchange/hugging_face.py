"""Marian models, M2M-100, NLLB-200 and SMaLL-100 in Hugging Face's format.

A directory with config.json, weights in one of WEIGHT_FILES or its parts, and optionally
generation_config.json and tokenizer_config.json. Marian's vocabularies are source.spm, target.spm
and vocab.json, and target_vocab.json if they are separate; see m2m100.py for the others'.
"""

import re
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from keras_transformer.core.config import BOS_ID, EOS_ID, PAD_ID, TransformerConfig
from keras_transformer.kit.exchange import m2m100
from keras_transformer.kit.exchange.foreign_model import ForeignModel, make_config, require_values
from keras_transformer.kit.exchange.sentencepiece_pieces import (
    Pieces,
    read_pieces,
)
from keras_transformer.kit.exchange.tensor_table import (
    LOGITS_BIASES,
    TensorTable,
)
from keras_transformer.kit.exchange.tensors import StoredTensor, read_tensors
from keras_transformer.support.errors import InputError, require
from keras_transformer.support.fields import Count, Size, from_json, shown
from keras_transformer.support.files.json_files import read_json

# The first one that a directory has is read: the other packages are smaller than PyTorch. A large
# file may be in parts, such as model-00001-of-00002.safetensors.
WEIGHT_FILES = ("model.safetensors", "tf_model.h5", "pytorch_model.bin")
# All other files that are read.
OTHER_FILES = (
    *("config.json", "generation_config.json", "tokenizer_config.json"),
    *("source.spm", "target.spm", "vocab.json", "target_vocab.json"),
    *(m2m100.SENTENCEPIECE_MODEL, m2m100.SMALL_100, m2m100.TOKENIZER),
)
# The options in config.json that are fields of TransformerConfig.
OPTION_NAMES = {
    "d_model": "d_model",
    "num_layers": "encoder_layers",
    "decoder_layers": "decoder_layers",
    "num_heads": "encoder_attention_heads",
    "d_ff": "encoder_ffn_dim",
    "activation": "activation_function",
}
# The types of other options.
OPTION_TYPES = {
    "decoder_start_token_id": Count,
    "vocab_size?": Size,
    "max_position_embeddings?": Size,
    "scale_embedding?": bool,
    "share_encoder_decoder_embeddings?": bool,
    "tie_word_embeddings?": bool,
}
SHARED_MATRIX = "model.shared.weight"
LOGITS_MATRIX = "lm_head.weight"
LOGITS_BIAS = "final_logits_bias"
TABLE = TensorTable(
    prefix="model.{stack}.layers.{layer}.",
    layers={
        "self_attention/query": "self_attn.q_proj.{}",
        "self_attention/key": "self_attn.k_proj.{}",
        "self_attention/value": "self_attn.v_proj.{}",
        "self_attention/output": "self_attn.out_proj.{}",
        "self_attention_norm": "self_attn_layer_norm.{}",
        "cross_attention/query": "encoder_attn.q_proj.{}",
        "cross_attention/key": "encoder_attn.k_proj.{}",
        "cross_attention/value": "encoder_attn.v_proj.{}",
        "cross_attention/output": "encoder_attn.out_proj.{}",
        "cross_attention_norm": "encoder_attn_layer_norm.{}",
        "feed_forward/inner": "fc1.{}",
        "feed_forward/outer": "fc2.{}",
        "feed_forward_norm": "final_layer_norm.{}",
    },
    kinds={"kernel": "weight", "bias": "bias", "gamma": "weight", "beta": "bias"},
    # A file may store a shared matrix once or several times, under any of its names.
    others={
        "encoder/last_norm/gamma": "model.encoder.layer_norm.weight",
        "encoder/last_norm/beta": "model.encoder.layer_norm.bias",
        "decoder/last_norm/gamma": "model.decoder.layer_norm.weight",
        "decoder/last_norm/beta": "model.decoder.layer_norm.bias",
        "embedding/embeddings": ("model.encoder.embed_tokens.weight", SHARED_MATRIX),
        "target_embedding/embeddings": ("model.decoder.embed_tokens.weight", SHARED_MATRIX),
        "logits_embedding/embeddings": LOGITS_MATRIX,
        **dict.fromkeys(LOGITS_BIASES, LOGITS_BIAS),
    },
    transposed=True,
)


class _Architecture(NamedTuple):
    """What distinguishes the models of a kind."""

    read_vocabularies: Callable[[Path, dict[str, Any]], tuple[Pieces, Pieces]]
    required_options: dict[str, Any]  # the only values supported
    fields: dict[str, Any]  # of TransformerConfig
    reads_source_code: bool = False  # whether sources begin with their own language
    notice: str = ""  # to users


def read(path: Path) -> ForeignModel:
    """Reads a directory with config.json.

    Raises:
        InputError: if a file is missing or damaged, the files do not match, or the model has an
            unsupported feature.
    """
    config_file = path / "config.json"
    options = _read_options(path)
    is_tied = options.get("tie_word_embeddings", True)

    architecture = _architecture(path, options)
    source, target = architecture.read_vocabularies(path, options)
    is_shared = options.get("share_encoder_decoder_embeddings", True)
    is_shared |= not is_tied and source.names == target.names
    wanted = {
        **architecture.required_options,
        "decoder_attention_heads": options.get("encoder_attention_heads"),
        "decoder_ffn_dim": options.get("encoder_ffn_dim"),
        "eos_token_id": int(target.rows[EOS_ID]),
        "pad_token_id": int(target.rows[PAD_ID]),
    }
    require_values(config_file, options, wanted)
    config = make_config(
        config_file,
        options,
        OPTION_NAMES,
        vocab_size=len(target.names),
        source_vocab_size=None if is_shared else len(source.names),
        tie_embeddings=is_tied,
        scale_embeddings=options.get("scale_embedding", False),
        norm_epsilon=1e-5,  # torch.nn.LayerNorm's
        attention_bias=True,
        logits_bias=True,
        **architecture.fields,
    )

    starts_like_another = options["decoder_start_token_id"] in target.rows[[PAD_ID, EOS_ID]]
    never_generated = (PAD_ID, BOS_ID) if starts_like_another else ()
    files = [path / name for name in weight_files([file.name for file in path.iterdir()], path)]
    return ForeignModel(
        files[0],
        tensors=_read_weights(files),
        config=config,
        source=source,
        target=target,
        table=table_of(config),
        never_generated=never_generated,
        max_length=options.get("max_position_embeddings", 512),
        languages=_read_languages(path),
        reads_source_code=architecture.reads_source_code,
        notice=architecture.notice,
    )


def table_of(config: TransformerConfig) -> TensorTable:
    """Returns the table of a model, with all names of the matrices that it shares."""
    source = TABLE.others["embedding/embeddings"]
    target = TABLE.others["target_embedding/embeddings"]
    if config.tie_embeddings:
        target = (*target, LOGITS_MATRIX)
        if config.source_vocab_size is None:
            source = (SHARED_MATRIX, *source, *target)
    matrices = {"embedding/embeddings": source, "target_embedding/embeddings": target}
    return TABLE._replace(others={**TABLE.others, **matrices})


def _read_languages(folder: Path) -> tuple[str, ...]:
    """Returns the source and target language in tokenizer_config.json; none if it has none."""
    file = folder / "tokenizer_config.json"
    options = read_json(file) if file.is_file() else {}
    languages = [options.get("source_lang"), options.get("target_lang")]
    return tuple(language for language in languages if isinstance(language, str))


def _read_options(folder: Path) -> dict[str, Any]:
    """Reads config.json, and generation_config.json if there is one."""
    config_file, generation_file = folder / "config.json", folder / "generation_config.json"
    options = read_json(config_file)
    if generation_file.is_file():
        options |= read_json(generation_file)
    kind = options.get("model_type")
    rule = f"must be one of {', '.join(MODEL_TYPES)}"
    is_known = isinstance(kind, str) and kind in MODEL_TYPES
    require(is_known, "model_type", rule, shown(kind), config_file)
    return from_json(OPTION_TYPES, options, config_file)


def check_supported(path: Path) -> None:
    """Checks all files of a directory but the weights, which may not be there yet.

    Raises:
        InputError: if a file is missing or damaged, or the model is of a kind that cannot be
            imported.
    """
    options = _read_options(path)
    _architecture(path, options).read_vocabularies(path, options)


def _architecture(path: Path, options: dict[str, Any]) -> _Architecture:
    is_marian = options["model_type"] == MARIAN
    return ARCHITECTURES[MARIAN if is_marian else m2m100.variant_of(path)]


def _read_marian_vocabularies(path: Path, options: dict[str, Any]) -> tuple[Pieces, Pieces]:
    is_shared = options.get("share_encoder_decoder_embeddings", True)
    target_ids = "vocab.json" if is_shared else "target_vocab.json"
    start_id = options["decoder_start_token_id"]
    source = read_pieces(path / "source.spm", path / "vocab.json", start_id)
    target = read_pieces(path / "target.spm", path / target_ids, start_id)
    return source, target


def _shared(read_vocabulary: Callable[[Path, dict[str, Any]], Pieces]) -> Callable:
    """Returns a reader for both sides from one for the vocabulary that they share."""
    return lambda path, options: (read_vocabulary(path, options),) * 2


MARIAN = "marian"
MODEL_TYPES = (MARIAN, "m2m_100")  # in config.json
_M2M_100 = _Architecture(
    _shared(m2m100.read_m2m100_vocabulary),
    required_options={},
    fields={"norm": "pre", "positions": "m2m100", "decoder_reads_code": True},
    reads_source_code=True,
)
ARCHITECTURES = {
    MARIAN: _Architecture(
        _read_marian_vocabularies,
        required_options={
            "normalize_before": False,
            "normalize_embedding": False,
            "add_final_layer_norm": False,
            "static_position_embeddings": True,
        },
        fields={},
    ),
    "SMaLL-100": _M2M_100._replace(
        fields={"norm": "pre", "positions": "m2m100"}, reads_source_code=False
    ),
    "M2M-100": _M2M_100,
    "NLLB-200": _M2M_100._replace(
        read_vocabularies=_shared(m2m100.read_nllb_vocabulary),
        notice="NLLB-200 has the licence CC-BY-NC 4.0, which forbids commercial use",
    ),
}


def weight_files(names: Collection[str], place: str | Path) -> list[str]:
    """Returns the names of the files with the weights; a directory may have several formats.

    Args:
        names: the names of all files.
        place: where they are, for errors.

    Raises:
        InputError: if there are no weights that can be read, or parts are missing.
    """
    for whole in WEIGHT_FILES:
        if whole in names:
            return [whole]
        stem, suffix = whole.split(".")
        matches = [re.fullmatch(rf"{stem}-\d+-of-(\d+)\.{suffix}", name) for name in names]
        parts = sorted(match[0] for match in matches if match)
        if parts:
            count = int(parts[0].rpartition("-")[2].split(".")[0])
            rule = f"must contain all {count} parts of {whole}"
            require(len(parts) == count, None, rule, f"{len(parts)} of them", place)
            return parts
    rule = f"must contain one of {', '.join(WEIGHT_FILES)}"
    raise InputError(None, rule, "none of them", place)


def _read_weights(files: Collection[Path]) -> dict[str, np.ndarray | StoredTensor]:
    """Reads tensors without the sinusoids, which older versions stored."""
    tensors = {}
    for file in files:
        tensors |= read_tensors(file)
    return {name: tensor for name, tensor in tensors.items() if "embed_positions" not in name}
