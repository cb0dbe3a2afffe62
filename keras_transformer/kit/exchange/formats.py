"""The formats of other toolkits: their names, options, readers and writers.

Does not import TensorFlow, so that programs can reject wrong options quickly.
"""

import dataclasses
import importlib
import itertools
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from keras_transformer.core.search.config import DecodingConfig
from keras_transformer.support.errors import import_extra, require
from keras_transformer.use.store.export import Export
from keras_transformer.use.store.keras_file import KerasFile
from keras_transformer.use.store.opening import kind_of

if TYPE_CHECKING:
    from keras_transformer.core.config import TransformerConfig
    from keras_transformer.core.model.transformer import Transformer
    from keras_transformer.core.vocabulary.pair import VocabularyPair
    from keras_transformer.use.store.card import ModelCard

WEIGHTS = ("float32", "bfloat16", "int8")  # types of stored weights
ALL_SEARCH_OPTIONS = tuple(field.name for field in dataclasses.fields(DecodingConfig))


class Option(NamedTuple):
    """An option that not every format takes."""

    kind: type  # bool, str, or list for several str
    help: str


class Format(NamedTuple):
    """A format. Its writer is `write(model, vocabularies, export_dir, card, overwrite, **options)`.

    It returns {the format's name: `result`, "bytes": the size}. The writer of a format that can be
    an ensemble takes a sequence of models. A format with `files` also has a reader, `read(path)`,
    which returns a ForeignModel.
    """

    description: str
    module: str  # in this folder; imported when the format is used
    writer: str  # the name of its function
    package: str | None = None  # required to write it, and installed by the extra of this name
    weights: tuple[str, ...] = WEIGHTS  # the types that it can store
    ensemble_weights: tuple[str, ...] = ()  # those that it can store of an ensemble
    search_options: tuple[str, ...] = ()  # the fields of DecodingConfig that it uses
    options: Mapping[str, Option] = {}
    result: str = "the folder"
    files: tuple[str, ...] = ()  # patterns of files that show this format, if it can be read
    reader: str | None = None  # the module that reads it, if that is not `module`
    # By a field of TransformerConfig: the only values that the format can hold.
    holds: Mapping[str, Sequence[Any]] = {}


# The kinds of positions that CTranslate2 and ONNX graphs compute.
_POSITIONS = ("sinusoidal", "learned", "marian", "m2m100", "rotary")
_HEADS = "d_model / num_heads"  # a value that depends on the model
# What Marian's and Hugging Face's models hold.
_MARIAN = {
    "activation": ("relu", "swish", "gelu"),
    "attention_window": (None,),
    "d_k": (_HEADS,),
    "d_v": (_HEADS,),
    "decoder_reads_code": (False,),
    "encoder_reads_eos": (True,),
    "decoder_self_attention": ("attention",),
}

FORMATS = {
    "saved_model": Format(
        "a SavedModel that maps text to text, with the vocabulary and the search inside",
        module="saved_model",
        writer="export_saved_model",
        ensemble_weights=("float32", "bfloat16"),
        search_options=ALL_SEARCH_OPTIONS,
        options={
            "constraints": Option(bool, "Add the signature constrain_ids, for required phrases."),
            "signatures": Option(
                list, "Signatures to write; fewer need less memory when loaded. All by default."
            ),
        },
    ),
    "ctranslate2": Format(
        "a directory for CTranslate2; `translate` and `serve` can use it without TensorFlow",
        module="ctranslate2",
        writer="export_ctranslate2",
        search_options=ALL_SEARCH_OPTIONS,
        files=("model.bin",),
        reader="ctranslate2_reader",
        holds={
            "positions": _POSITIONS,
            "attention_window": (None,),
            "decoder_self_attention": ("attention",),
        },
    ),
    "argos": Format(
        "a package for each direction, for Argos Translate and LibreTranslate",
        module="argos",
        writer="export_argos",
        options={
            "directions": Option(
                list, "Directions to package, such as en-de,en-cs. All by default."
            ),
        },
        result="the files of the packages",
        files=("*.argosmodel", "metadata.json"),
        holds={
            "positions": _POSITIONS,
            "attention_window": (None,),
            "decoder_reads_code": (False,),
            "decoder_self_attention": ("attention",),
        },
    ),
    "hugging_face": Format(
        "a directory for Hugging Face's transformers, MarianMTModel and MarianTokenizer",
        module="hugging_face_writer",
        writer="export_hugging_face",
        weights=("float32",),
        files=("config.json",),
        reader="hugging_face",
        holds={
            "positions": ("sinusoidal",),
            **_MARIAN,
            "norm": ("post",),
            "norm_epsilon": (1e-5,),
            "starts_with_zeros": (False,),
        },
    ),
    "marian": Format(
        "a directory for Marian: an .npz file and its vocabularies",
        module="marian",
        writer="export_marian",
        weights=("float32",),
        files=("*.npz",),
        holds={
            "positions": ("marian",),
            **_MARIAN,
            "norm_epsilon": (1e-6,),
            "scale_embeddings": (True,),
        },
    ),
    "firefox": Format(
        "a model for Firefox's translation engine, with an SSRU in each decoder layer",
        module="firefox",
        writer="export_firefox",
        weights=("int8",),
        options={
            "calibration": Option(
                str,
                "File of source sentences, one a line, by which the engine rounds activations; a "
                "few hundred are enough.",
            ),
        },
        files=("*.bin",),
        holds={
            "positions": ("marian",),
            **_MARIAN,
            "activation": ("relu",),
            "decoder_self_attention": ("ssru",),
            "starts_with_zeros": (True,),
            "attention_bias": (True,),
            "logits_bias": (True,),
            "tie_embeddings": (True,),
            "norm": ("post",),
            "norm_epsilon": (1e-6,),
            "scale_embeddings": (True,),
        },
    ),
    "onnx": Format(
        "the encoder and one decoder step: ids in, log probabilities out",
        module="onnx",
        writer="export_onnx",
        package="onnx",
        weights=("float32", "int8"),
        holds={"positions": _POSITIONS, "decoder_reads_code": (False,)},
    ),
    "web": Format(
        "a page that translates in the browser; any static file server can serve it",
        module="web.page",
        writer="export_web",
        package="onnx",
        weights=("float32", "int8"),
        search_options=("beam_size", "alpha", "early_stopping"),
        options={
            "runtime": Option(
                str,
                "The dist folder of the npm package onnxruntime-web; two of its files are copied. "
                "By default the page fetches them from cdn.jsdelivr.net.",
            ),
        },
        holds={"positions": _POSITIONS, "decoder_reads_code": (False,)},
    ),
}
OPTIONS = {name: option for kind in FORMATS.values() for name, option in kind.options.items()}


READABLE = [name for name, kind in FORMATS.items() if kind.files]


def formats_with(option: str) -> list[str]:
    """Returns the names of the formats that take an option, or use a search option."""
    return [
        name
        for name, kind in FORMATS.items()
        if option in kind.options or option in kind.search_options
    ]


def check_options(format: str, options: Mapping[str, Any]) -> None:
    """Rejects options that a format does not take.

    Args:
        format: a name in FORMATS.
        options: the values of OPTIONS, and of fields of DecodingConfig, that were given.

    Raises:
        InputError: for the first option that belongs to other formats.
    """
    for name, value in options.items():
        formats = formats_with(name)
        rule = f"must only be given with format={' or '.join(formats)}"
        require(format in formats, name, rule, value)


def check_weights(format: str, weights: str) -> None:
    """Raises an InputError for a type of weights that a format cannot store."""
    types = FORMATS[format].weights
    rule = f"must be {' or '.join(types)} with format={format}"
    require(weights in types, "weights", rule, weights)


def check_config(format: str, config: "TransformerConfig") -> None:
    """Raises an InputError for a model that a format cannot hold.

    Args:
        format: a name in FORMATS.
        config: the model's configuration.
    """
    for field in FORMATS[format].holds:
        others = [name for name in FORMATS if _holds(name, field, config)]
        values = ", ".join(map(str, FORMATS[format].holds[field]))
        rule = f"must have {field}={values} with format={format}; use {', '.join(others)}"
        received = f"{field}={getattr(config, field)}"
        require(_holds(format, field, config), "model", rule, received)


def _holds(format: str, field: str, config: "TransformerConfig") -> bool:
    value = getattr(config, field)
    values = FORMATS[format].holds.get(field, (value,))
    return value in values or (_HEADS in values and value * config.num_heads == config.d_model)


def format_at(path: Path) -> str:
    """Returns the format of a model at a path, by the names of its files.

    Returns:
        A name in READABLE, or "keras" or "saved_model" for a model of this library.

    Raises:
        InputError: if there is no such model.
    """
    for name in READABLE:
        for pattern in FORMATS[name].files:
            if path.match(pattern) if path.is_file() else any(path.glob(pattern)):
                return name
    own = {KerasFile: "keras", Export: "saved_model"}.get(kind_of(path))
    files = ", ".join(itertools.chain(*(FORMATS[name].files for name in READABLE)))
    rule = f"must be a .keras file, an export, or a directory or file of a model with {files}"
    require(own is not None, "path", rule, path)
    return own


def check_models(format: str, weights: str, count: int, argument: str) -> None:
    """Raises an InputError for several models, if an export cannot hold an ensemble.

    Args:
        format, weights: a name in FORMATS, and the type of the stored weights.
        count: the number of models.
        argument: the caller's name for them, for errors.
    """
    rule = f"must be a single model with format={format} and weights={weights}"
    can_be_several = weights in FORMATS[format].ensemble_weights
    require(count == 1 or can_be_several, argument, rule, f"{count} models")


def check_package(format: str) -> None:
    """Raises an InputError if the package that a format requires is not installed."""
    package = FORMATS[format].package
    if package is not None:
        import_extra(package)


def export(
    format: str,
    models: Sequence["Transformer"],
    vocabularies: "VocabularyPair",
    export_dir: str | os.PathLike,
    card: "ModelCard",
    overwrite: bool = False,
    **options: Any,
) -> dict[str, Any]:
    """Writes an export.

    Args:
        format: a name in FORMATS.
        models: one Transformer, or the members of an ensemble if the format can be one.
        vocabularies: the vocabularies that they were trained with, in files.
        export_dir: the directory to create.
        card: the model card; its `weights` is the type of the stored weights.
        overwrite: whether to replace an earlier export in `export_dir`.
        options: the format's options, by name; they are arguments of its writer.

    Returns:
        The result of its writer; see Format.

    Raises:
        InputError: if there is no such format, it does not support the weights or the model, its
            package is not installed, or `export_dir` is not empty or not writable.
    """
    require(format in FORMATS, "format", f"must be one of {', '.join(FORMATS)}", repr(format))
    check_weights(format, card.weights)
    kind = FORMATS[format]
    check_models(format, card.weights, len(models), "models")
    check_package(format)
    write = getattr(importlib.import_module(f"{__package__}.{kind.module}"), kind.writer)
    model = models if kind.ensemble_weights else models[0]
    return write(model, vocabularies, export_dir, card, overwrite, **options)
