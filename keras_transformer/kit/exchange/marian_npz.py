"""Marian models in Marian's own format.

A directory with one *.npz, which contains its options as YAML, and one or two vocabularies:
*vocab*.spm, or *vocab*.yml with source.spm and target.spm. The file that Marian writes for its
decoder tells which vocabulary is the source's; without it, the names of two vocabularies must.
"""

import re
from pathlib import Path
from typing import Any

import numpy as np

from keras_transformer.core.config import TransformerConfig
from keras_transformer.kit.exchange.marian_model import (
    MarianModel,
    make_config,
    names_of_layers,
    require_values,
)
from keras_transformer.kit.exchange.sentencepiece_pieces import Pieces, read_pieces
from keras_transformer.kit.exchange.tensors import read_tensors
from keras_transformer.kit.exchange.yaml_map import read_yaml
from keras_transformer.support.errors import require
from keras_transformer.support.fields import shown

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
# Since this version, Marian's gelu uses the error function. Before, it was x times the sigmoid of
# FORMER_GELU_SLOPE x.
EXACT_GELU_VERSION = (1, 12, 3)
FORMER_GELU_SLOPE = 1.702
# In the names of two vocabularies.
SOURCE_NAMES = re.compile("source|src", re.IGNORECASE)
TARGET_NAMES = re.compile("target|trg|tgt", re.IGNORECASE)
# A layer's tensors, "encoder_l1_NAME", by the paths of our variables.
LAYER_PREFIX = "{stack}_l{layer}_"
DENSE_NAMES = {
    "self_attention/query/kernel": "self_Wq",
    "self_attention/query/bias": "self_bq",
    "self_attention/key/kernel": "self_Wk",
    "self_attention/key/bias": "self_bk",
    "self_attention/value/kernel": "self_Wv",
    "self_attention/value/bias": "self_bv",
    "self_attention/output/kernel": "self_Wo",
    "self_attention/output/bias": "self_bo",
    "cross_attention/query/kernel": "context_Wq",
    "cross_attention/query/bias": "context_bq",
    "cross_attention/key/kernel": "context_Wk",
    "cross_attention/key/bias": "context_bk",
    "cross_attention/value/kernel": "context_Wv",
    "cross_attention/value/bias": "context_bv",
    "cross_attention/output/kernel": "context_Wo",
    "cross_attention/output/bias": "context_bo",
    "feed_forward/inner/kernel": "ffn_W1",
    "feed_forward/inner/bias": "ffn_b1",
    "feed_forward/outer/kernel": "ffn_W2",
    "feed_forward/outer/bias": "ffn_b2",
}
POST_NORM_NAMES = {
    "self_attention_norm/gamma": "self_Wo_ln_scale",
    "self_attention_norm/beta": "self_Wo_ln_bias",
    "cross_attention_norm/gamma": "context_Wo_ln_scale",
    "cross_attention_norm/beta": "context_Wo_ln_bias",
    "feed_forward_norm/gamma": "ffn_ffn_ln_scale",
    "feed_forward_norm/beta": "ffn_ffn_ln_bias",
}
PRE_NORM_NAMES = {
    "self_attention_norm/gamma": "self_Wo_ln_scale_pre",
    "self_attention_norm/beta": "self_Wo_ln_bias_pre",
    "cross_attention_norm/gamma": "context_Wo_ln_scale_pre",
    "cross_attention_norm/beta": "context_Wo_ln_bias_pre",
    "feed_forward_norm/gamma": "ffn_ffn_ln_scale_pre",
    "feed_forward_norm/beta": "ffn_ffn_ln_bias_pre",
}
# All other tensors: the first name found in a file is used.
OTHER_NAMES = {
    "encoder/last_norm/gamma": ("encoder_top_ln_scale",),
    "encoder/last_norm/beta": ("encoder_top_ln_bias",),
    "decoder/last_norm/gamma": ("decoder_top_ln_scale",),
    "decoder/last_norm/beta": ("decoder_top_ln_bias",),
    "embedding/embeddings": ("encoder_Wemb", "Wemb"),
    "target_embedding/embeddings": ("decoder_Wemb", "Wemb"),
    "logits_embedding/embeddings": ("decoder_ff_logit_out_Wt",),
    "embedding/bias": ("decoder_ff_logit_out_b",),
    "target_embedding/bias": ("decoder_ff_logit_out_b",),
    "logits_embedding/bias": ("decoder_ff_logit_out_b",),
}


def read_npz(path: Path) -> MarianModel:
    """Reads a directory in Marian's own format.

    Raises:
        InputError: if a file is missing or damaged, the files do not match, or the model has an
            unsupported feature.
    """
    files = sorted(path.glob("*.npz"))
    rule = "must be a directory with config.json (Hugging Face) or one *.npz (Marian)"
    require(len(files) == 1, "path", rule, f"{path}, with {len(files)} *.npz files")
    file = files[0]
    tensors = read_tensors(file)
    require(OPTIONS in tensors, None, f"must contain {OPTIONS}", "a file without it", file)
    options = _read_options(file, tensors.pop(OPTIONS).tobytes())
    for name, tensor in tensors.items():
        rule = "must have floating-point numbers"
        require(tensor.dtype.kind == "f", name, rule, tensor.dtype, file)
    source, target = _read_vocabularies(file)
    _replace_former_gelu(file, options, tensors)

    is_pre_norm = options["transformer-preprocess"] != ""
    require_values(file, options, REQUIRED_OPTIONS)
    require_values(file, options, PRE_NORM_PROCESSES if is_pre_norm else POST_NORM_PROCESSES)
    config = make_config(
        file,
        options,
        OPTION_NAMES,
        vocab_size=len(target.names),
        source_vocab_size=None if "Wemb" in tensors else len(source.names),
        tie_embeddings="decoder_ff_logit_out_Wt" not in tensors,
        positions="marian",
        norm="pre" if is_pre_norm else "post",
    )
    return MarianModel(
        file,
        tensors=tensors,
        config=config,
        source=source,
        target=target,
        names=_names(config),
        kernels_are_transposed=False,
    )


def _read_options(file: Path, content: bytes) -> dict[str, Any]:
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
    if len(files) == 1:
        return files[0], files[0]
    source_files = [file for file in files if SOURCE_NAMES.search(file.name)]
    target_files = [file for file in files if TARGET_NAMES.search(file.name)]
    sides_are_known = len(source_files) == len(target_files) == 1 and source_files != target_files
    rule = "must contain decoder.yml, or names with src and trg, to tell its vocabularies"
    require(sides_are_known, None, rule, names, folder)
    return source_files[0], target_files[0]


def _replace_former_gelu(
    file: Path, options: dict[str, Any], tensors: dict[str, np.ndarray]
) -> None:
    """Converts the gelu of earlier Marian versions to swish, in the options and the weights.

    With slope c, x sigmoid(c x) is swish(c x) / c. So c goes into the inner product, and 1 / c into
    the outer one.
    """
    activation = OPTION_NAMES["activation"]
    if options.get(activation) != "gelu":
        return
    version = re.match(r"v?(\d{1,9})\.(\d{1,9})\.(\d{1,9})", str(options.get("version")))
    written = ".".join(map(str, EXACT_GELU_VERSION))
    rule = f"must be a Marian version, as gelu is a different function before {written}"
    require(version is not None, "version", rule, shown(options.get("version")), file)
    if tuple(map(int, version.groups())) >= EXACT_GELU_VERSION:
        return
    options[activation] = "swish"
    for name in tensors:
        if name.endswith(("_ffn_W1", "_ffn_b1")):
            tensors[name] = tensors[name] * np.float32(FORMER_GELU_SLOPE)
        elif name.endswith("_ffn_W2"):
            tensors[name] = tensors[name] / np.float32(FORMER_GELU_SLOPE)


def _sentencepiece_model(vocabulary: Path, name: str) -> Path:
    """Returns a vocabulary's SentencePiece model: the file itself, or one next to it."""
    return vocabulary if vocabulary.suffix == ".spm" else vocabulary.parent / name


def _names(config: TransformerConfig) -> dict[str, tuple[str, ...]]:
    """Returns the possible names of each variable's tensor."""
    norm_names = PRE_NORM_NAMES if config.norm == "pre" else POST_NORM_NAMES
    layer_names = DENSE_NAMES | norm_names
    return names_of_layers(config, LAYER_PREFIX, first_layer=1, names=layer_names) | OTHER_NAMES
