"""Marian's models in Marian's own format.

A directory of one *.npz, which holds its options as YAML, and one or two vocabularies: *vocab*.spm,
or *vocab*.yml with source.spm and target.spm.
"""

from pathlib import Path
from typing import Any

from keras_transformer.config import TransformerConfig
from keras_transformer.errors import require
from keras_transformer.importing.marian_model import (
    MarianModel,
    make_config,
    names_of_layers,
    require_values,
)
from keras_transformer.importing.sentencepiece_pieces import Pieces, read_pieces, read_yaml
from keras_transformer.importing.tensors import read_tensors

OPTIONS = "special:model.yml"  # among the arrays of *.npz

# The options that are fields of TransformerConfig.
OPTION_NAMES = {
    "d_model": "dim-emb",
    "num_layers": "enc-depth",
    "decoder_layers": "dec-depth",
    "num_heads": "transformer-heads",
    "d_ff": "transformer-dim-ffn",
    "activation": "transformer-ffn-activation",
}
# What must be so where it is given.
REQUIRED_OPTIONS = {
    "type": "transformer",
    "transformer-decoder-autoreg": "self-attention",
    "transformer-attention-mask": "default",
    "transformer-decoder-dim-ffn": 0,
    "transformer-disable-position-embeddings": False,
}
# Marian's letters for what surrounds sublayers, embeddings and stacks: n normalizes, a adds the
# sublayer's input, and d drops out, which only matters in training.
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
# The tensors of a layer, "encoder_l1_NAME", by the paths of our variables.
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
# All other tensors: the first name that a file has counts.
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
        InputError: if a file is missing or damaged, or the files do not belong together, or the
            model has something that this library's has not.
    """
    files = sorted(path.glob("*.npz"))
    rule = "path must be a directory that holds config.json (Hugging Face) or one *.npz (Marian)"
    require(len(files) == 1, rule, f"{path}, with {len(files)} of *.npz")
    file = files[0]
    tensors = read_tensors(file)
    require(OPTIONS in tensors, f"{file} must hold {OPTIONS}", "a file without it")
    options = _read_options(file, tensors.pop(OPTIONS).tobytes())
    source, target = _read_vocabularies(path)

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
    """The options of a model, those in letters without the d of dropout."""
    options = read_yaml(file, content.strip(b"\0"), typed=True)
    for name in POST_NORM_PROCESSES:
        letters = str(options.get(name) or "")
        options[name] = letters.replace("d", "")
    return options


def _read_vocabularies(folder: Path) -> tuple[Pieces, Pieces]:
    """The vocabularies of source and target, which may be of one file."""
    suffixes = (".yml", ".yaml", ".json", ".spm")
    files = [file for file in sorted(folder.glob("*vocab*")) if file.suffix in suffixes]
    rule = f"{folder} must hold one or two vocabularies, *vocab*.yml or *vocab*.spm"
    require(len(files) in (1, 2), rule, ", ".join(file.name for file in files) or "none")
    source_file, target_file = files[0], files[-1]
    source = read_pieces(_sentencepiece_model(source_file, "source.spm"), source_file)
    target = read_pieces(_sentencepiece_model(target_file, "target.spm"), target_file)
    return source, target


def _sentencepiece_model(vocabulary: Path, name: str) -> Path:
    """The SentencePiece model of a vocabulary: the file itself, or one of that name beside it."""
    return vocabulary if vocabulary.suffix == ".spm" else vocabulary.parent / name


def _names(config: TransformerConfig) -> dict[str, tuple[str, ...]]:
    """What the tensor of each variable may be called."""
    norm_names = PRE_NORM_NAMES if config.norm == "pre" else POST_NORM_NAMES
    layer_names = DENSE_NAMES | norm_names
    return names_of_layers(config, LAYER_PREFIX, first_layer=1, names=layer_names) | OTHER_NAMES
