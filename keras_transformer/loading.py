"""`keras_transformer.load`: a translator for a trained model in any format.

Only this module decides which engine runs a model. TensorFlow and Keras are imported only for
TensorFlow's engine.
"""

import dataclasses
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keras_transformer.documents.text_translator import TextTranslator
from keras_transformer.errors import require
from keras_transformer.fields import shown
from keras_transformer.files.paths import to_path
from keras_transformer.files.replacing import put_back
from keras_transformer.model_card import (
    CARD,
    FORMATS,
    ModelCard,
    exported_vocabularies,
    read_card,
    require_unset,
)
from keras_transformer.parsing.parser import Parser
from keras_transformer.search.config import DecodingConfig
from keras_transformer.search.engine import Engine
from keras_transformer.translate.texts import search_settings, with_options
from keras_transformer.translate.translator import Translator
from keras_transformer.vocabulary.pair import VocabularyPair

if TYPE_CHECKING:
    from keras_transformer.model.transformer import Transformer

AnyPath = str | os.PathLike
# Search options that can still be set when loading a SavedModel, which contains its search.
FREE_IN_SAVED_MODEL = ("n_best", "mbr")


def load(
    path: AnyPath | Sequence[AnyPath],
    checkpoint: str | None = None,
    adapter: AnyPath | None = None,
    adapter_scale: float | None = None,
    **options: Any,
) -> TextTranslator | Parser:
    """Loads a trained model to translate and score texts, and to inspect its attention.

    Args:
        path: a model directory from training, a checkpoint in one, an export, or a .keras file next
            to its vocabulary. A model directory's config.json next to a .keras file tells what the
            model was trained for. Several paths form an ensemble; it uses the models of exports,
            not their settings. An export for CTranslate2 runs in CTranslate2, and needs neither
            TensorFlow nor Keras.
        checkpoint: for each model directory: "latest", "best" (in validation), "average:K" (the
            mean of the last K), or a checkpoint's path; several, separated by commas, are averaged.
            If not given, the one chosen for the directory, such as by average_checkpoints, or else
            the latest.
        adapter: the directory of an adapter trained for this model (LoRA), or a checkpoint in one;
            it is added to the weights. Such a directory can also be passed as `path`; it then finds
            its base by itself.
        adapter_scale: a factor on the adapter's updates; 1 if not given. Between 0 and 1, the model
            stays closer to its base.
        options: the fields of search.config.DecodingConfig: beam_size, alpha, extra_length,
            max_source_length, batch_tokens, early_stopping, n_best, sampling, min_length,
            no_repeat_ngram_size, forbidden_phrases and mbr. Those that are not given, or None, take
            the values chosen for the model, or else its task's defaults. In a SavedModel they are
            fixed at export, except for n_best and mbr.

    Returns:
        A Translator for sentences and documents; for a parsing model, a Parser, which returns
        trees.

    Raises:
        InputError: if there is no such model, or it does not support the options.
    """
    check_options(options)
    check_path(path)
    if isinstance(path, str | os.PathLike):
        put_back(path)
    if adapter is None and is_export(path):
        card = read_card(path, "path", FORMATS)
        require_unset({"checkpoint": checkpoint, "adapter_scale": adapter_scale})
        if card.contains_search:
            require_unset(options, FREE_IN_SAVED_MODEL)
        card = dataclasses.replace(card, decoding=with_options(card.decoding, options))
        vocabularies = exported_vocabularies(path, card)
        engine = _engine_of_export(path, card, vocabularies)
    else:
        card, vocabularies, engine = _restored(path, checkpoint, adapter, adapter_scale, options)
    is_parser = card.origin.task == "parsing"
    rule = "must be used with a translation model"
    require(not (is_parser and card.decoding.mbr), "mbr", rule, "a parsing model")

    def make_model() -> "Transformer":
        from keras_transformer.restoring import load_model

        return load_model(path, checkpoint, adapter, adapter_scale)

    if is_parser:
        return Parser(Translator(engine, vocabularies, card, make_model))
    return TextTranslator(engine, vocabularies, card, make_model)


def is_export(path: AnyPath | Sequence[AnyPath]) -> bool:
    """Whether a path is an export, possibly a damaged one."""
    if not isinstance(path, str | os.PathLike):
        return False
    return any((to_path(path) / name).exists() for name in ("saved_model.pb", CARD.parent))


def _engine_of_export(path: AnyPath, card: ModelCard, vocabularies: VocabularyPair) -> Engine:
    """Opens an export with its engine."""
    if card.format == "ctranslate2":
        from keras_transformer.search.ctranslate2_engine import CTranslate2Engine

        folder = to_path(path)
        require(isinstance(folder, Path), "path", "must be local for CTranslate2", shown(path))
        settings = search_settings(card.decoding, vocabularies.target)
        limits = card.decoding.limits(card.config)
        rows = card.max_positions  # None for rotary positions, which need no table
        rule = f"must be at most {rows} subwords with extra_length, as the export has"
        fits = rows is None or limits.target <= rows
        require(fits, "max_source_length", rule, limits.target)
        return CTranslate2Engine(folder, vocabularies, settings, limits.target)
    from keras_transformer.export.saved_model import load_signatures
    from keras_transformer.search.matrices import has_int8_instructions, require_int8
    from keras_transformer.search.tensorflow_engine import TensorFlowEngine

    if card.weights == "int8":
        if not card.ensemble and not has_int8_instructions():
            return _engine_in_float32(path, card, vocabularies)
        require_int8("path")
    return TensorFlowEngine(load_signatures(path))


def _engine_in_float32(path: AnyPath, card: ModelCard, vocabularies: VocabularyPair) -> Engine:
    """Builds float32 graphs from a SavedModel's weights, replacing its own, for the same search."""
    from absl import logging

    from keras_transformer.restoring import read_exported_weights
    from keras_transformer.search.compiled_model import compile_model
    from keras_transformer.search.tensorflow_engine import SearchGraphs, TensorFlowEngine

    logging.info("computing int8 weights in float32, as this processor lacks VNNI")
    model = compile_model(read_exported_weights(to_path(path), card))
    settings = search_settings(card.decoding, vocabularies.target)
    return TensorFlowEngine(SearchGraphs(model, settings))


def _restored(
    path: AnyPath | Sequence[AnyPath],
    checkpoint: str | None,
    adapter: AnyPath | None,
    adapter_scale: float | None,
    options: dict[str, Any],
) -> tuple[ModelCard, VocabularyPair, Engine]:
    """Reads a model in the training layout, and passes it to TensorFlow's engine."""
    from keras_transformer.restoring import decoding_config, restore
    from keras_transformer.search.compiled_model import compile_model
    from keras_transformer.search.ensemble import ensemble_of
    from keras_transformer.search.tensorflow_engine import SearchGraphs, TensorFlowEngine

    trained = restore(path, checkpoint, adapter, adapter_scale)
    decoding = decoding_config(trained, **options)
    if trained.origin.task == "parsing" and decoding.n_best != 1:
        # As in an export: repair chooses among answers that are all exact, or takes the first.
        decoding = dataclasses.replace(decoding, n_best=None)
    model = ensemble_of([compile_model(model) for model in trained.models])
    graphs = SearchGraphs(model, search_settings(decoding, trained.vocabularies.target))
    return trained.card(decoding), trained.vocabularies, TensorFlowEngine(graphs)


def check_path(path: Any) -> None:
    """Raises an InputError for anything but a path or a list of paths, such as a Keras model."""
    rule = (
        "must be a keras model in a file: save it next to its vocabulary files with model.save, as "
        "FOLDER/model.keras, and load that"
    )
    keras = sys.modules.get("keras")  # without it, there is no such model
    require(keras is None or not isinstance(path, keras.Model), "path", rule, shown(path))
    is_single = isinstance(path, str | os.PathLike)
    paths = [path] if is_single else path
    is_list = isinstance(paths, Sequence) and len(paths) > 0
    are_paths = is_list and all(isinstance(one, str | os.PathLike) for one in paths)
    require(are_paths, "path", "must be a path, or a list of paths", shown(path))
    require(all(os.fspath(one) for one in paths), "path", "must be given", "''")


def check_options(options: dict[str, Any]) -> None:
    """Raises an InputError for an option that is not a field of DecodingConfig."""
    names = [field.name for field in dataclasses.fields(DecodingConfig)]
    for name in options:
        rule = f"must be {', '.join(names[:-1])} and {names[-1]}"
        require(name in names, "options", rule, repr(name))
