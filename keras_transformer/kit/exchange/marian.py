"""Models in Marian's own format, read and written.

A directory with one *.npz, which contains its options as YAML, and one or two vocabularies:
*vocab*.spm, or *vocab*.yml with source.spm and target.spm. The file that Marian writes for its
decoder tells which vocabulary is the source's; without it, the names of two vocabularies must.

Marian's decoder starts with an embedding of zeros, so only such a model can be written: one that
was trained with starts_with_zeros, or came from Marian and has an adapter or its old embeddings.
"""

import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np

from keras_transformer.core.config import BOS_ID, EOS_ID, UNK_ID, TransformerConfig
from keras_transformer.core.model.transformer import Transformer
from keras_transformer.core.vocabulary.pair import VocabularyPair
from keras_transformer.core.vocabulary.subwords import Subwords
from keras_transformer.kit.exchange.directory import write_export, write_files
from keras_transformer.kit.exchange.foreign_model import ForeignModel, make_config, require_values
from keras_transformer.kit.exchange.formats import check_config
from keras_transformer.kit.exchange.sentencepiece_pieces import (
    NEW_ROW,
    Pieces,
    by_side,
    read_pieces,
    sentencepiece_model,
)
from keras_transformer.kit.exchange.tensor_table import (
    FORMER_GELU,
    LOGITS_BIASES,
    Arrangement,
    TensorTable,
    array,
    tensors_of,
)
from keras_transformer.kit.exchange.tensors import npz_of, read_tensors
from keras_transformer.kit.exchange.yaml_map import read_yaml
from keras_transformer.support.errors import require
from keras_transformer.support.fields import shown
from keras_transformer.use.store.card import ModelCard

OPTIONS = "special:model.yml"  # among the arrays in *.npz

# The options that are fields of TransformerConfig.
OPTION_NAMES = {
    "d_model": "dim-emb",
    "num_layers": "enc-depth",
    "decoder_layers": "dec-depth",
    "num_heads": "transformer-heads",
    "d_ff": "transformer-dim-ffn",
    "activation": "transformer-ffn-activation",
}
# Required values of options, if given.
REQUIRED_OPTIONS = {
    "type": "transformer",
    "transformer-decoder-autoreg": "self-attention",
    "transformer-attention-mask": "default",
    "transformer-decoder-dim-ffn": 0,
    "transformer-disable-position-embeddings": False,
}
# Marian's letters for the operations around sublayers, embeddings and stacks: n normalizes, a adds
# the sublayer's input, and d applies dropout, which only matters in training.
POST_NORM_PROCESSES = {
    "transformer-preprocess": "",
    "transformer-postprocess": "an",
    "transformer-postprocess-emb": "",
    "transformer-postprocess-top": "",
}
PRE_NORM_PROCESSES = {
    "transformer-preprocess": "n",
    "transformer-postprocess": "a",
    "transformer-postprocess-emb": "",
    "transformer-postprocess-top": "n",
}
# Since this version, Marian's gelu uses the error function.
EXACT_GELU_VERSION = (1, 12, 3)
# The other options that Marian and its converters require of a file.
WRITTEN_OPTIONS = {
    "version": "v1.12.3",
    "type": "transformer",
    "transformer-decoder-autoreg": "self-attention",
    "transformer-ffn-depth": 2,
    "transformer-guided-alignment-layer": "last",
    "transformer-no-projection": False,
    "transformer-train-position-embeddings": False,
    "transformer-tied-layers": [],
}
# The tensors. In pre-norm models, the words for the kinds of weights of norms end in "_pre".
TABLE = TensorTable(
    prefix="{stack}_l{layer}_",
    layers={
        "self_attention/query": "self_{}q",
        "self_attention/key": "self_{}k",
        "self_attention/value": "self_{}v",
        "self_attention/output": "self_{}o",
        "self_attention_norm": "self_Wo_ln_{}",
        "cross_attention/query": "context_{}q",
        "cross_attention/key": "context_{}k",
        "cross_attention/value": "context_{}v",
        "cross_attention/output": "context_{}o",
        "cross_attention_norm": "context_Wo_ln_{}",
        "feed_forward/inner": "ffn_{}1",
        "feed_forward/outer": "ffn_{}2",
        "feed_forward_norm": "ffn_ffn_ln_{}",
    },
    kinds={"kernel": "W", "bias": "b", "gamma": "scale", "beta": "bias"},
    others={
        "encoder/last_norm/gamma": "encoder_top_ln_scale",
        "encoder/last_norm/beta": "encoder_top_ln_bias",
        "decoder/last_norm/gamma": "decoder_top_ln_scale",
        "decoder/last_norm/beta": "decoder_top_ln_bias",
        "embedding/embeddings": ("encoder_Wemb", "Wemb"),
        "target_embedding/embeddings": ("decoder_Wemb", "Wemb"),
        "logits_embedding/embeddings": "decoder_ff_logit_out_Wt",
        **dict.fromkeys(LOGITS_BIASES, "decoder_ff_logit_out_b"),
    },
    first_layer=1,
    row_vectors=True,
)


def read(path: Path) -> ForeignModel:
    """Reads a directory in Marian's own format.

    Raises:
        InputError: if a file is missing or damaged, the files do not match, or the model has an
            unsupported feature.
    """
    files = sorted(path.glob("*.npz"))
    rule = "must be a directory with one *.npz"
    require(len(files) == 1, "path", rule, f"{path}, with {len(files)} *.npz files")
    file = files[0]
    tensors = read_tensors(file)
    require(OPTIONS in tensors, None, f"must contain {OPTIONS}", "a file without it", file)
    options = read_options(file, tensors.pop(OPTIONS).tobytes())
    for name, tensor in tensors.items():
        rule = "must have floating-point numbers"
        require(tensor.dtype.kind == "f", name, rule, tensor.dtype, file)
    source, target = _read_vocabularies(file)
    has_former_gelu = _has_former_gelu(file, options)
    if has_former_gelu:
        options[OPTION_NAMES["activation"]] = "swish"

    is_pre_norm = options["transformer-preprocess"] != ""
    is_tied = "decoder_ff_logit_out_Wt" not in tensors
    is_shared = "Wemb" in tensors or (not is_tied and source.names == target.names)
    require_values(file, options, REQUIRED_OPTIONS)
    require_values(file, options, PRE_NORM_PROCESSES if is_pre_norm else POST_NORM_PROCESSES)
    config = make_config(
        file,
        options,
        OPTION_NAMES,
        vocab_size=len(target.names),
        source_vocab_size=None if is_shared else len(source.names),
        tie_embeddings=is_tied,
        positions="marian",
        norm="pre" if is_pre_norm else "post",
        attention_bias=True,
        logits_bias=True,
    )
    table = table_of(config)._replace(scales=FORMER_GELU if has_former_gelu else {})
    return ForeignModel(file, tensors, config, source, target, table)


def table_of(config: TransformerConfig) -> TensorTable:
    """Returns the table of a model, which has other names for some kinds of models."""
    table = TABLE
    if config.norm == "pre":
        table = table._replace(kinds={**table.kinds, "gamma": "scale_pre", "beta": "bias_pre"})
    if config.shares_all_embeddings:
        table = table._replace(others={**table.others, "embedding/embeddings": "Wemb"})
    return table


def export_marian(
    model: Transformer,
    vocabularies: VocabularyPair,
    export_dir: str | os.PathLike,
    card: ModelCard,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Writes the directory: model.npz, vocabularies and decoder.yml, and a model card.

    Args:
        model, vocabularies, export_dir, card, overwrite: see formats.export.

    Returns:
        {"marian": export_dir, "bytes"}.

    Raises:
        InputError: if the decoder does not start with an embedding of zeros, a vocabulary is not a
            SentencePiece model, or `export_dir` is not empty or not writable.
    """
    config = model.config
    check_config("marian", config)
    start = array(model.target_embedding.embeddings[BOS_ID])
    rule = "must start to decode with zeros, as Marian does: train with starts_with_zeros=true"
    starts = config.starts_with_zeros or not start.any()
    require(starts, "model", rule, f"a row of BOS with {shown(float(start[0]))}")
    sides = {"source": vocabularies.source, "target": vocabularies.target}
    rows = [_rows(vocabulary.vocab_size) for vocabulary in sides.values()]
    tensors = tensors_of(model, Arrangement(table_of(config), config, *rows))
    tensors.setdefault("decoder_ff_logit_out_b", np.zeros([1, rows[1].max() + 1], np.float32))
    content = _yaml(options_of(config, rows)).encode() + b"\0"
    tensors[OPTIONS] = np.frombuffer(content, np.int8)

    files = {"model.npz": npz_of(tensors)}
    for side, vocabulary in sides.items():
        files[f"{side}.spm"] = sentencepiece_model(vocabulary)
        files[f"{side}.vocab.yml"] = _yaml(_ids(vocabulary)).encode()
    names = ["source.vocab.yml", "target.vocab.yml"]
    decoder = {"models": ["model.npz"], "vocabs": names, "relative-paths": True}
    files["model.npz.decoder.yml"] = _yaml(decoder).encode()
    size = write_export(lambda folder: write_files(folder, files), export_dir, card, overwrite)
    return {"marian": str(export_dir), "bytes": size}


def _rows(vocab_size: int) -> np.ndarray:
    """Returns Marian's rows of our ids: it has none for padding and BOS."""
    return np.array([NEW_ROW, NEW_ROW, *range(vocab_size - EOS_ID)])


def _ids(vocabulary: Subwords) -> dict[str, int]:
    pieces = ["</s>", "<unk>", *vocabulary.pieces[UNK_ID + 1 :]]
    return {piece: id_ for id_, piece in enumerate(pieces)}


def options_of(config: TransformerConfig, rows: list[np.ndarray]) -> dict[str, Any]:
    """Returns the options of a model; the letters of dropout are those that converters expect."""
    is_pre_norm = config.norm == "pre"
    fields = {field: getattr(config, field) for field in OPTION_NAMES}
    return {
        **{option: fields[field] for field, option in OPTION_NAMES.items()},
        "dec-depth": config.num_decoder_layers,
        "dim-vocabs": [int(side.max()) + 1 for side in rows],
        **(PRE_NORM_PROCESSES if is_pre_norm else POST_NORM_PROCESSES),
        "transformer-postprocess": "da" if is_pre_norm else "dan",
        "tied-embeddings-all": config.shares_all_embeddings,
        "tied-embeddings": config.tie_embeddings and not config.shares_all_embeddings,
        **WRITTEN_OPTIONS,
    }


def _yaml(content: dict[str, Any]) -> str:
    """Returns a map as YAML with a line for each key."""
    lines = [
        f"{json.dumps(key, ensure_ascii=False)}: {json.dumps(value)}\n"
        for key, value in content.items()
    ]
    return "".join(lines)


def read_options(file: Path, content: bytes) -> dict[str, Any]:
    """Reads a model's options, without the dropout letter d."""
    options = read_yaml(file, content.strip(b"\0"), typed=True)
    for name in POST_NORM_PROCESSES:
        letters = str(options.get(name) or "")
        options[name] = letters.replace("d", "")
    return options


def _read_vocabularies(file: Path) -> tuple[Pieces, Pieces]:
    """Reads the source and target vocabularies, which may come from one file."""
    source_file, target_file = _decoder_vocabularies(file) or _named_vocabularies(file.parent)
    source = read_pieces(_sentencepiece_model(source_file, "source.spm"), source_file)
    target = read_pieces(_sentencepiece_model(target_file, "target.spm"), target_file)
    return source, target


def _decoder_vocabularies(file: Path) -> tuple[Path, Path] | None:
    """Returns the vocabularies in the decoder's configuration; None without such a file."""
    paths = [file.parent / f"{file.name}.decoder.yml", file.parent / "decoder.yml"]
    for path in paths:
        if path.is_file():
            vocabularies = read_yaml(path, path.read_bytes(), typed=False).get("vocabs")
            is_pair = isinstance(vocabularies, list) and len(vocabularies) == 2
            rule = "must be the files for source and target"
            require(is_pair, "vocabs", rule, shown(vocabularies), path)
            # The paths are those on the machine where the model was trained.
            files = [file.parent / Path(str(name)).name for name in vocabularies]
            for vocabulary in files:
                rule = "must be files next to it"
                require(vocabulary.is_file(), "vocabs", rule, shown(vocabulary.name), path)
            source_file, target_file = files
            return source_file, target_file
    return None


def _named_vocabularies(folder: Path) -> tuple[Path, Path]:
    """Returns the vocabularies in a folder; with two, their names must tell the sides."""
    suffixes = (".yml", ".yaml", ".json", ".spm")
    files = [file for file in sorted(folder.glob("*vocab*")) if file.suffix in suffixes]
    names = ", ".join(file.name for file in files)
    rule = "must contain one or two vocabularies, *vocab*.yml or *vocab*.spm"
    require(len(files) in (1, 2), None, rule, names or "none", folder)
    sides = by_side(files)
    rule = "must contain decoder.yml, or names with src and trg, to tell its vocabularies"
    require(sides is not None, None, rule, names, folder)
    return sides


def _has_former_gelu(file: Path, options: dict[str, Any]) -> bool:
    """Whether gelu is that of Marian before EXACT_GELU_VERSION."""
    if options.get(OPTION_NAMES["activation"]) != "gelu":
        return False
    version = re.match(r"v?(\d{1,9})\.(\d{1,9})\.(\d{1,9})", str(options.get("version")))
    written = ".".join(map(str, EXACT_GELU_VERSION))
    rule = f"must be a Marian version, as gelu is a different function before {written}"
    require(version is not None, "version", rule, shown(options.get("version")), file)
    return tuple(map(int, version.groups())) < EXACT_GELU_VERSION


def _sentencepiece_model(vocabulary: Path, name: str) -> Path:
    """Returns a vocabulary's SentencePiece model: the file itself, or one next to it."""
    return vocabulary if vocabulary.suffix == ".spm" else vocabulary.parent / name
