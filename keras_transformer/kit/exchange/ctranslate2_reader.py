"""Reads models of CTranslate2, as its converters write them.

A directory with model.bin, config.json, lists of tokens, and the SentencePiece models of the text,
for which CTranslate2 has no rule: one *.spm or *.model file for both sides, or one each.

Without `add_source_eos`, CTranslate2 leaves EOS to its caller. A model from Marian, which starts
with zeros, then has it, as in Hugging Face's tokenizer, and one from OpenNMT does not.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from keras_transformer.core.config import BOS_ID, PAD_ID, TransformerConfig
from keras_transformer.core.model.positions import POSITIONS, Learned, Sinusoidal
from keras_transformer.core.vocabulary.language_codes import is_code
from keras_transformer.kit.exchange.ctranslate2 import (
    ACTIVATIONS,
    REVISION,
    SPECIFICATION,
    table_of,
)
from keras_transformer.kit.exchange.ctranslate2_vocabularies import read_vocabularies
from keras_transformer.kit.exchange.foreign_model import ForeignModel, make_config
from keras_transformer.kit.exchange.model_bin import read_model_bin
from keras_transformer.kit.exchange.sentencepiece_pieces import (
    NEW_ROW,
    Pieces,
)
from keras_transformer.kit.exchange.tensor_table import FORMER_GELU
from keras_transformer.kit.exchange.tensors import StoredTensor
from keras_transformer.support.errors import require
from keras_transformer.support.fields import from_json
from keras_transformer.support.files.json_files import read_json

REVISIONS = range(3, REVISION + 1)  # of the specification
FORMER_GELU_NUMBER = 4  # of its activation
STACKS = ("encoder", "decoder")
DEPTHS = {"num_layers": "encoder", "decoder_layers": "decoder"}
POSITION_TABLE = "position_encodings/encodings"
# The scalars that this file reads, and those that matter only to a search of CTranslate2.
KNOWN = re.compile(
    r"(encoder|decoder)/(num_heads|pre_norm|activation|scale_embeddings|embeddings_merge"
    r"|start_from_zero_embedding|alignment_layer|alignment_heads|alibi_use_positive_positions"
    r"|scale_alibi|with_(source|target)_[be]os)|[^/]*|.*/(queries_scale|head_dim|rotary_dim)"
)
# Other scalars must be missing, or have these values, which are usual.
USUAL = {
    "alibi": 0,
    "multi_query_attention": 0,
    "rotary_interleave": 1,
    "rotary_base": 10000,
}
# Names of what this library cannot compute, and what to call it.
UNSUPPORTED = {
    "relative_position_keys": "relative positions",
    "relative_attention_bias": "relative positions",
    "relative_asymmetric_position_keys": "relative positions",
    "layernorm_embedding/gamma": "normalized embeddings",
    "num_heads_kv": "shared heads of keys and values",
}
# Positions in 16 bits are rounded; the first ones tell one kind from another.
TOLERANCE = 0.01
COMPARED_POSITIONS = 256


def read(path: Path) -> ForeignModel:
    """Reads a directory of CTranslate2, or its model.bin.

    Raises:
        InputError: if a file is missing or damaged, the files do not match, or the model does not
            translate or has an unsupported feature.
    """
    folder = path if path.is_dir() else path.parent
    files = sorted(file for suffix in ("spm", "model") for file in folder.glob(f"*.{suffix}"))
    return read_with(folder, files)


def read_with(folder: Path, sentencepiece_models: Sequence[Path]) -> ForeignModel:
    """Reads a directory of CTranslate2 with these SentencePiece models; errors are as above."""
    file = folder / "model.bin"
    arrays, tensors = _read_weights(file)
    options = _read_options(folder, arrays)
    source, target = read_vocabularies(folder, sentencepiece_models, options, arrays)
    never_generated = tuple(id_ for id_ in (PAD_ID, BOS_ID) if target.rows[id_] == NEW_ROW)
    is_tied = _are_same(arrays, "decoder/embeddings/weight", "decoder/projection/weight")
    is_shared = source.names == target.names
    if is_tied:
        is_shared &= _are_same(arrays, "decoder/embeddings/weight", "encoder/embeddings_0/weight")
        source = source if is_shared else source._replace()  # a vocabulary of its own
    position_fields, is_halved = _positions(arrays, tensors, file)
    config = make_config(
        file,
        {},
        {},
        vocab_size=len(target.names),
        source_vocab_size=None if is_shared else len(source.names),
        tie_embeddings=is_tied,
        logits_bias="decoder/projection/bias" in tensors or bool(never_generated),
        norm_epsilon=options["layer_norm_epsilon"] or 1e-5,
        encoder_reads_eos=options["add_source_eos"] or options["decoder_start_token"] is None,
        **position_fields,
        **_fields(arrays, file),
    )
    table = table_of(config)
    if arrays["encoder/activation"] == FORMER_GELU_NUMBER:
        table = table._replace(scales={**table.scales, **FORMER_GELU})
    return ForeignModel(
        file,
        tensors,
        config,
        source,
        target,
        table,
        is_halved=is_halved,
        never_generated=never_generated,
        needs_code=options["add_source_bos"],
    )


def read_own(folder: Path, config: TransformerConfig) -> ForeignModel:
    """Reads the weights of an export of this library, whose card has its configuration."""
    file = folder / "model.bin"
    _, tensors = _read_weights(file)
    if not isinstance(config.position_kind, Learned):
        for stack in STACKS:
            tensors.pop(f"{stack}/{POSITION_TABLE}", None)
    sizes = (config.source_vocab_size or config.vocab_size, config.vocab_size)
    sides = [Pieces(b"", [], np.arange(size)) for size in sizes]
    return ForeignModel(
        file, tensors, config, *sides, table_of(config), is_halved=False, never_generated=()
    )


def _read_weights(file: Path) -> tuple[dict[str, np.ndarray], dict[str, StoredTensor]]:
    """Returns all arrays, and the tensors of the model, both under the names of this revision."""
    content = read_model_bin(file)
    rule = f"must be a translation model, of specification {SPECIFICATION}"
    require(content.specification == SPECIFICATION, None, rule, content.specification, file)
    rule = f"must have revision {REVISIONS[0]} to {REVISIONS[-1]} of its specification"
    require(content.revision in REVISIONS, None, rule, content.revision, file)
    arrays = {}
    for name, array in content.arrays.items():
        arrays[name.replace("encoder/embeddings/", "encoder/embeddings_0/")] = array
        if "/" not in name:  # both stacks had the same attributes
            arrays |= {f"{stack}/{name}": array for stack in STACKS}
    content = content._replace(arrays=arrays)
    for name, array in arrays.items():
        *_, last = name.split("/")
        unsupported = [kind for end, kind in UNSUPPORTED.items() if name.endswith(end)]
        rule = f"must not have {', '.join(unsupported)}, which this library does not compute"
        require(not unsupported, None, rule, name, file)
        if array.ndim == 0 and not name.endswith("_scale") and not KNOWN.fullmatch(name):
            is_usual = last in USUAL and array == USUAL[last]
            rule = "must not have this option, which this library does not compute"
            require(is_usual, name, rule, array, file)
    return arrays, content.tensors(file)


def _read_options(folder: Path, arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Returns how sentences begin and end; decoder_start_token is None for zeros."""
    file = folder / "config.json"
    kinds = {
        "unk_token?": str,
        "bos_token?": str,
        "eos_token?": str,
        "decoder_start_token?": str,
        "add_source_bos?": bool,
        "add_source_eos?": bool,
        "layer_norm_epsilon?": float | None,
    }
    stored = from_json(kinds, read_json(file), file) if file.is_file() else {}
    options = {
        "unk_token": "<unk>",
        "bos_token": "<s>",
        "eos_token": "</s>",
        "add_source_bos": bool(arrays.get("encoder/with_source_bos", False)),
        "add_source_eos": bool(arrays.get("encoder/with_source_eos", False)),
        "layer_norm_epsilon": None,
        **stored,
    }
    rule = "must be false, unless bos_token is a language code such as >>de<<"
    is_right = not options["add_source_bos"] or is_code(options["bos_token"])
    require(is_right, "add_source_bos", rule, "true", file)
    start = options.setdefault("decoder_start_token", options["bos_token"])
    if arrays.get("decoder/start_from_zero_embedding", False):
        options["decoder_start_token"] = None
    else:
        rule = "must not be EOS: import such a model (M2M-100, NLLB-200) in Hugging Face's format"
        is_right = start != options["eos_token"] and arrays.get("decoder/with_target_bos", True)
        require(is_right, "decoder_start_token", rule, start, file)
    return options


def _are_same(arrays: Mapping[str, np.ndarray], name: str, other: str) -> bool:
    """Whether two matrices are one."""
    first, second = arrays.get(name), arrays.get(other)
    if first is None or second is None or first.shape != second.shape:
        return False
    return first is second or np.array_equal(first, second)


def _positions(
    arrays: Mapping[str, np.ndarray], tensors: dict[str, StoredTensor], file: Path
) -> tuple[dict[str, Any], bool]:
    """Finds the kind of positions, and whether sines precede cosines; removes known tables."""
    names = [f"{stack}/{POSITION_TABLE}" for stack in STACKS]
    if "encoder/layer_0/self_attention/rotary_dim" in arrays:
        return {"positions": "rotary"}, False
    rule = "must be among the tensors: this library has no other positions of CTranslate2"
    for name in names:
        require(name in tensors, name, rule, "none", file)
    tables = [np.asarray(tensors[name]) for name in names]
    d_model = tables[0].shape[-1]
    halves = np.arange(d_model).reshape(-1, 2).T.ravel()  # sines, cosines
    for kind, positions in POSITIONS.items():
        if isinstance(positions, Sinusoidal):
            first = np.asarray(positions.vectors(np.arange(COMPARED_POSITIONS), d_model))
            for order, is_halved in ((slice(None), False), (halves, True)):
                if all(_is_near(table, first[:, order]) for table in tables):
                    for name in names:
                        del tensors[name]
                    return {"positions": kind}, is_halved
    rule = "must have as many positions as those of the target"
    sizes = [len(table) for table in tables]
    require(sizes[0] == sizes[1], names[0], rule, f"{sizes[0]} and {sizes[1]}", file)
    return {"positions": "learned", "max_positions": sizes[0]}, False


def _is_near(table: np.ndarray, first: np.ndarray) -> bool:
    count = min(len(table), len(first))
    return bool(np.abs(table[:count] - first[:count]).max() < TOLERANCE)


def _fields(arrays: Mapping[str, np.ndarray], file: Path) -> dict[str, Any]:
    """Returns the other fields of the configuration."""

    def both(name: str, default: int = 0) -> np.ndarray:
        first, second = (arrays.get(f"{stack}/{name}", np.array(default)) for stack in STACKS)
        rule = "must be the same for encoder and decoder"
        require(first == second, name, rule, f"{first} and {second}", file)
        return first

    layer = "encoder/layer_0"
    for name in (f"{layer}/self_attention/linear_0/weight", f"{layer}/ffn/linear_0/weight"):
        require(name in arrays, name, "must be among the tensors", "none", file)
    has_beta = f"{layer}/ffn/layer_norm/beta" in arrays
    rule = "must have layer_norm/beta: this library does not compute RMSNorm"
    require(has_beta, None, rule, "none", file)
    num_heads = int(both("num_heads"))
    rows, d_model = arrays[f"{layer}/self_attention/linear_0/weight"].shape
    width = int(arrays.get(f"{layer}/self_attention/head_dim", rows // 3 // max(num_heads, 1)))
    scale = arrays.get(f"{layer}/self_attention/queries_scale", width**-0.5)
    is_usual = np.isclose(scale, width**-0.5)
    require(is_usual, "queries_scale", f"must be {width**-0.5:.4g}", scale, file)

    numbers = {number: name for name, number in ACTIVATIONS.items()}
    numbers[FORMER_GELU_NUMBER] = "swish"
    number = int(both("activation"))
    is_gated = f"{layer}/ffn/linear_0_noact/weight" in arrays
    known = {2: "swiglu"} if is_gated else numbers
    rule = f"must be one of {', '.join(map(str, known))} (ctranslate2.specs.Activation)"
    require(number in known, "activation", rule, number, file)
    return {
        **{name: _depth(arrays, stack) for name, stack in DEPTHS.items()},
        "num_heads": num_heads,
        "d_model": d_model,
        "d_ff": len(arrays[f"{layer}/ffn/linear_0/weight"]),
        "d_k": width,
        "d_v": width,
        "activation": known[number],
        "norm": "pre" if both("pre_norm", default=1) else "post",
        "attention_bias": f"{layer}/self_attention/linear_0/bias" in arrays,
        "scale_embeddings": _is_scaled(both("scale_embeddings", default=1), d_model, file),
    }


def _depth(arrays: Mapping[str, np.ndarray], stack: str) -> int:
    layers = {name.split("/")[1] for name in arrays if name.startswith(f"{stack}/layer_")}
    return len(layers - {"layer_norm"})


def _is_scaled(value: np.ndarray, d_model: int, file: Path) -> bool:
    """Whether embeddings are multiplied by sqrt(D): a flag, or the factor itself."""
    if value.dtype.kind == "i":
        return bool(value)
    is_scaled = np.isclose(value, d_model**0.5)
    rule = f"must be 1 or {d_model**0.5:.4g}, the root of the width"
    require(is_scaled or value == 1, "scale_embeddings", rule, value, file)
    return bool(is_scaled)
