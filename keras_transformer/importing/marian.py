"""Marian's models, such as those of OPUS-MT, from both formats that they are kept in.

    Hugging Face   config.json, model.safetensors or pytorch_model.bin, source.spm, target.spm,
                   vocab.json (and target_vocab.json); generation_config.json where there is one
    Marian         one *.npz, which holds its options as YAML; one or two vocabularies, *vocab*.spm,
                   or *vocab*.yml with source.spm and target.spm

What a model computes becomes fields of TransformerConfig, and three things are put in order in the
weights: sinusoids stand in halves there and interleaved here, which permutes d_model; special ids
come first here; decoding starts there with the embedding of padding, or with zeros, which becomes
the row of BOS. Padding and BOS get a bias in the logits that nobody generates them with.
"""

import json
import re
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import sentencepiece

from keras_transformer.config import BOS_ID, EOS_ID, PAD_ID, SUFFIXES, TransformerConfig
from keras_transformer.errors import InputError, reason, require
from keras_transformer.fields import Count, Size, from_json
from keras_transformer.files import read_json, write_file
from keras_transformer.importing.directory import write_model_directory
from keras_transformer.importing.tensors import package, read_tensors
from keras_transformer.model.transformer import Transformer
from keras_transformer.training.losses import SMALLEST_LOGIT
from keras_transformer.vocabulary.pair import SEPARATE, VocabularyPair

OPTIONS = "special:model.yml"  # among the arrays of *.npz
# What replaces parts of a variable's path, from top to bottom: Hugging Face's and Marian's names.
NAMES = """
    self_attention_residual/norm     self_attn_layer_norm       self_Wo_ln
    cross_attention_residual/norm    encoder_attn_layer_norm    context_Wo_ln
    feed_forward_residual/norm       final_layer_norm           ffn_ffn_ln
    self_attention/                  self_attn.                 self_
    cross_attention/                 encoder_attn.              context_
    feed_forward/inner_kernel        fc1.weight                 ffn_W1
    feed_forward/inner_bias          fc1.bias                   ffn_b1
    feed_forward/outer_kernel        fc2.weight                 ffn_W2
    feed_forward/outer_bias          fc2.bias                   ffn_b2
    query_kernel                     q_proj.weight              Wq
    query_bias                       q_proj.bias                bq
    key_kernel                       k_proj.weight              Wk
    key_bias                         k_proj.bias                bk
    value_kernel                     v_proj.weight              Wv
    value_bias                       v_proj.bias                bv
    output_kernel                    out_proj.weight            Wo
    output_bias                      out_proj.bias              bo
    /norm/                           .layer_norm/               _top_ln/
    /gain                            .weight                    _scale
    /bias                            .bias                      _bias
"""
# The names of fields of TransformerConfig.
FIELDS = {
    "d_model": ("d_model", "dim-emb"),
    "num_layers": ("encoder_layers", "enc-depth"),
    "decoder_layers": ("decoder_layers", "dec-depth"),
    "num_heads": ("encoder_attention_heads", "transformer-heads"),
    "d_ff": ("encoder_ffn_dim", "transformer-dim-ffn"),
    "activation": ("activation_function", "transformer-ffn-activation"),
}
# What is read of config.json beside them.
OF_CONFIG = {
    **{"decoder_start_token_id": Count, "max_position_embeddings?": Size, "scale_embedding?": bool},
    **{"share_encoder_decoder_embeddings?": bool, "tie_word_embeddings?": bool},
}
# What must be so where it is given.
MARIAN_FIXED = {
    **{"type": "transformer", "transformer-decoder-autoreg": "self-attention"},
    **{"transformer-attention-mask": "default", "transformer-decoder-dim-ffn": 0},
    "transformer-disable-position-embeddings": False,
}
# Marian's letters for what surrounds sublayers, embeddings and stacks: normalize, add, dropout.
PROCESSES = [f"transformer-{name}" for name in ("preprocess", "postprocess")]
PROCESSES += ["transformer-postprocess-emb", "transformer-postprocess-top"]
NORMS = {"post": ("", "an", "", ""), "pre": ("n", "a", "", "n")}
# Of these, kernels have the d_model that is permuted as first axis, and biases have none; all other
# variables have it as their last axis.
OF_STATES = ("query", "key", "value", "inner")


class Side(NamedTuple):
    """The vocabulary of the source or of the target."""

    sentencepiece: Path  # the model that cuts text into pieces
    pieces: list[str]  # by the ids of this library
    rows: np.ndarray  # int [V], the same ids as the model's files have them; -1 for a new one


class MarianModel(NamedTuple):
    """A model as its files have it."""

    file: Path  # of the weights
    tensors: dict[str, np.ndarray]
    config: TransformerConfig
    sides: tuple[Side, Side]
    column: int  # of names, 0 for Hugging Face's
    matrices: dict[str, list[str]]  # what the embeddings, and the bias of logits, may be called
    max_length: int = 512  # of a source, in ids with EOS


def import_marian(folder: Path, model_dir: Path) -> dict[str, Any]:
    """Makes a model directory of one that holds a Marian model; returns as write_model_directory.

    Raises:
        InputError: where a file is missing or damaged, or the files do not belong together, or the
            model has something that this library's has not, or `model_dir` holds something.
    """
    hugging_face = (folder / "config.json").is_file()
    kept = read_hugging_face(folder) if hugging_face else read_npz(folder)
    model = build(kept)
    with tempfile.TemporaryDirectory() as data_dir:
        for name, side in zip(SEPARATE, kept.sides, strict=True):
            content = json.dumps(side.pieces).encode() + b"\n" + side.sentencepiece.read_bytes()
            write_file(Path(data_dir, name + SUFFIXES["pieces"]), content)
        vocabularies, about = VocabularyPair.load(data_dir), {"max_length": kept.max_length}
        return write_model_directory(model_dir, model, vocabularies, about)


def build(kept: MarianModel) -> Transformer:
    """Makes the model, in float32. InputError where tensors are missing, left over or misshapen."""
    model = Transformer(kept.config, dtype="float32")
    used = {OPTIONS} | {name for name in kept.tensors if "embed_positions" in name}  # sinusoids
    in_turn = np.arange(kept.config.d_model).reshape(2, -1).T.ravel()
    for variable in model.trainable_variables:
        layer, _, kind = variable.path.rpartition("/")
        of_logits = variable is model.logits_embedding.bias
        of_vocabulary = kind == "matrix" or of_logits
        rows = kept.sides[0 if variable is model.embedding.matrix else 1].rows
        names, shape = [_name(variable.path, kept)], tuple(variable.shape)
        if of_vocabulary:
            names = kept.matrices["bias" if of_logits else layer]
            shape = (1 + rows.max(), *shape[1:])
        name = next((name for name in names if name in kept.tensors), names[0])
        used |= {*names}
        if of_logits:  # may be left out
            kept.tensors.setdefault(name, np.zeros(shape, np.float32))
        require(name in kept.tensors, f"{kept.file} must hold {name}", "a file without it")
        tensor = kept.tensors[name]
        if kept.column == 0 and kind.endswith("kernel"):
            tensor = tensor.T
        tensor = tensor if len(shape) > 1 else tensor.reshape(-1)  # Marian's are [1, D]
        rule = f"{kept.file}: {name} must fit the configuration and the vocabulary, {shape}"
        require(tensor.shape == shape, rule, tensor.shape)
        if of_vocabulary:
            tensor = np.append(tensor, np.zeros_like(tensor[:1]), axis=0)[rows]  # -1 is the last
        role, _, part = kind.partition("_")
        if of_logits:
            tensor[[PAD_ID, BOS_ID]] = SMALLEST_LOGIT
        elif role not in OF_STATES or part == "kernel":
            tensor = np.take(tensor, in_turn, 0 if role in OF_STATES else -1)
        variable.assign(tensor)
    left = ", ".join(sorted(kept.tensors.keys() - used)[:3])
    rule = f"{kept.file} must hold nothing that a Transformer of this library has no place for"
    require(left == "", rule, left)
    return model


def _name(path: str, kept: MarianModel) -> str:
    """What a variable that has nothing to do with the vocabulary is called in the files."""
    for line in NAMES.strip().splitlines():
        ours, *theirs = line.split()
        path = path.replace(ours, theirs[kept.column])
    stack, layer, name = re.fullmatch(r"(?:(\w+)/layer_(\d+)/)?(.*)", path).groups()
    if kept.column == 0:
        return f"model.{stack}.layers.{layer}.{name}"
    suffix = "_pre" if kept.config.norm == "pre" and "_ln_" in name else ""
    return name if layer is None else f"{stack}_l{int(layer) + 1}_{name}{suffix}"


def read_hugging_face(folder: Path) -> MarianModel:
    """Reads a directory with config.json."""
    place, more = folder / "config.json", folder / "generation_config.json"
    content = read_json(place) | (read_json(more) if more.is_file() else {})
    rule = f"{place}: model_type must be marian, the only one that can be imported"
    require(content.get("model_type") == "marian", rule, content.get("model_type"))
    shared = content.get("share_encoder_decoder_embeddings", True)
    tied = content.get("tie_word_embeddings", True)
    start = from_json(OF_CONFIG, content, place)["decoder_start_token_id"]
    lists = [folder / "vocab.json", folder / ("vocab.json" if shared else "target_vocab.json")]
    sides = tuple(
        _side(folder / f"{name}.spm", file, start)
        for name, file in zip(("source", "target"), lists, strict=True)
    )
    fixed = {
        **{"normalize_before": False, "normalize_embedding": False, "add_final_layer_norm": False},
        "static_position_embeddings": True,
        "decoder_attention_heads": content.get("encoder_attention_heads"),
        "decoder_ffn_dim": content.get("encoder_ffn_dim"),
        "eos_token_id": int(sides[1].rows[EOS_ID]),
        "pad_token_id": int(sides[1].rows[PAD_ID]),
    }
    scaled = content.get("scale_embedding", False)
    settings = {"scale_embeddings": scaled, "norm_epsilon": 1e-5}  # that of torch.nn.LayerNorm
    config = _config(place, content, 0, fixed, sides, shared, tie_embeddings=tied, **settings)
    files = [folder / name for name in ("model.safetensors", "pytorch_model.bin")]
    file = next((file for file in files if file.is_file()), None)
    rule = f"{folder} must hold model.safetensors or pytorch_model.bin"
    require(file is not None, rule, "neither")
    parts = ("shared", "encoder.embed_tokens", "decoder.embed_tokens")
    either, source, target = (f"model.{part}.weight" for part in parts)
    logits = ["lm_head.weight"]
    targets = [target, either, *(logits if tied else [])]
    sources = [source, either, *(targets if shared and tied else [])]
    matrices = {"embedding": sources, "target_embedding": targets, "logits": logits}
    matrices["bias"] = ["final_logits_bias"]
    longest = content.get("max_position_embeddings", 512)
    return MarianModel(file, read_tensors(file), config, sides, 0, matrices, longest)


def read_npz(folder: Path) -> MarianModel:
    """Reads a directory in Marian's own format."""
    files = sorted(folder.glob("*.npz"))
    rule = "--path must be a directory that holds config.json (Hugging Face) or one *.npz (Marian)"
    require(len(files) == 1, rule, f"{folder}, with {len(files)} of *.npz")
    (file,) = files
    tensors = read_tensors(file)
    require(OPTIONS in tensors, f"{file} must hold {OPTIONS}", "a file without it")
    content = _yaml(file, tensors[OPTIONS].tobytes().strip(b"\0"), "SafeLoader")
    content |= {name: str(content.get(name) or "").replace("d", "") for name in PROCESSES}
    norm = "pre" if content["transformer-preprocess"] else "post"
    kinds = (".yml", ".yaml", ".json", ".spm")
    lists = [path for path in sorted(folder.glob("*vocab*")) if path.suffix in kinds]
    rule = f"{folder} must hold one or two vocabularies, *vocab*.yml or *vocab*.spm"
    require(len(lists) in (1, 2), rule, ", ".join(path.name for path in lists) or "none")
    sides = tuple(
        _side(each if each.suffix == ".spm" else folder / f"{side}.spm", each)
        for side, each in (("source", lists[0]), ("target", lists[-1]))
    )
    logits = "decoder_ff_logit_out_Wt"
    settings = {"positions": "marian", "norm": norm, "tie_embeddings": logits not in tensors}
    fixed = MARIAN_FIXED | dict(zip(PROCESSES, NORMS[norm], strict=True))
    config = _config(file, content, 1, fixed, sides, "Wemb" in tensors, **settings)
    matrices = {"embedding": ["encoder_Wemb", "Wemb"], "target_embedding": ["decoder_Wemb", "Wemb"]}
    matrices |= {"logits": [logits], "bias": ["decoder_ff_logit_out_b"]}
    return MarianModel(file, tensors, config, sides, 1, matrices)


def _config(
    place: Path, content: dict, column: int, fixed: dict, sides: tuple, shared: bool, **settings
) -> TransformerConfig:
    """Checks what must be so, and makes the configuration of FIELDS, `sides` and `settings`."""
    for name, wanted in fixed.items():
        rule = f"{place}: {name} must be {wanted!r}, as no other can be imported"
        require(content.get(name, wanted) == wanted, rule, repr(content.get(name)))
    for name, theirs in FIELDS.items():
        require(theirs[column] in content, f"{place} must give {theirs[column]}", "none")
        settings[name] = content[theirs[column]]
    sizes = [len(side.pieces) for side in sides]
    settings |= {"vocab_size": sizes[1], "source_vocab_size": None if shared else sizes[0]}
    try:
        return TransformerConfig(attention_bias=True, logits_bias=True, **settings)
    except InputError as error:
        raise InputError(f"{place}: {error}") from None


def _side(model: Path, file: Path, start: int = -1) -> Side:
    """Reads a SentencePiece model, and the file that gives pieces their ids.

    `start` is the id whose embedding decoding starts with, -1 for zeros.
    """
    try:
        processor = sentencepiece.SentencePieceProcessor(model_file=str(model))
        if file.suffix == ".spm":
            ids = {processor.id_to_piece(i): i for i in range(processor.get_piece_size())}
        else:
            is_json = file.suffix == ".json"
            ids = read_json(file) if is_json else _yaml(file, file.read_bytes(), "BaseLoader")
        ids = {piece: int(number) for piece, number in ids.items()}
    except (OSError, RuntimeError, ValueError, TypeError) as error:
        rule = f"{model} must be a SentencePiece model, and {file} a vocabulary"
        raise InputError(f"{rule}. Received: {reason(error)}") from None
    whole = sorted(ids.values()) == list(range(len(ids))) and {"</s>", "<unk>"} <= ids.keys()
    rule = f"{file} must give the ids from 0 on to as many pieces, </s> and <unk> among them"
    require(whole and start < len(ids), rule, f"{len(ids)} pieces")
    pieces = sorted(ids, key=ids.__getitem__)
    pad, eos, unk = (ids.get(piece, -1) for piece in ("<pad>", "</s>", "<unk>"))
    others = [i for i in range(len(ids)) if i not in (pad, eos, unk)]
    names = ["<pad>", "<start>", "</s>", "<unk>", *(pieces[i] for i in others)]
    return Side(model, names, np.array([pad, start, eos, unk, *others]))


def _yaml(file: Path, content: bytes, loader: str) -> dict[str, Any]:
    """Reads a map with one of PyYAML's loaders that run no code."""
    yaml = package("yaml", file)
    try:
        text = content.decode("utf-8")
        for character, escape in (("\x85", "\\N"), ("\u2028", "\\L"), ("\u2029", "\\P")):
            text = text.replace(character, escape)  # within quotes, YAML would end a line there
        return dict(yaml.load(text, getattr(yaml, f"C{loader}", getattr(yaml, loader))))
    except (yaml.YAMLError, ValueError, TypeError) as error:
        raise InputError(f"{file} must be a map in YAML. Received: {reason(error)}") from None
