"""`keras_transformer.load`: a translator for a trained model in any format.

The type depends on the model's files, which no overload can tell. So there is also `load_parser`.
"""

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from absl import logging

from keras_transformer.core.search.engines.streams import NVIDIA_DRIVER
from keras_transformer.kit.documents.text_translator import TextTranslator
from keras_transformer.kit.parsing.parser import Parser
from keras_transformer.support.errors import InputError, reason, require
from keras_transformer.use.store.converted import load_converted
from keras_transformer.use.store.decoding import check_options
from keras_transformer.use.store.model_path import AnyPath, ModelPath
from keras_transformer.use.store.opening import open_model
from keras_transformer.use.store.stored_model import LoadedModel, StoredModel
from keras_transformer.use.translate.translator import Translator


def load(
    path: AnyPath | Sequence[AnyPath],
    checkpoint: str | None = None,
    adapter: AnyPath | None = None,
    adapter_scale: float | None = None,
    device: str = "auto",
    xla: str = "auto",
    engine: str = "auto",
    **options: Any,
) -> TextTranslator:
    """Loads a trained model to translate and score texts, and to inspect its attention.

    Args:
        path: a model directory from training, a checkpoint in one, an export, or a .keras file next
            to its vocabulary. A model directory's config.json next to a .keras file tells what the
            model was trained for. Several paths form an ensemble; it uses the models of exports,
            not their settings. An export for CTranslate2 needs neither TensorFlow nor Keras.
        checkpoint: for each model directory: "latest", "best" (in validation), "average:K" (the
            mean of the last K), or a checkpoint's path; several, separated by commas, are averaged.
            If not given, the one chosen for the directory, such as by average_checkpoints, or else
            the latest.
        adapter: the directory of an adapter trained for this model (LoRA), or a checkpoint in one;
            it is added to the weights. Such a directory can also be passed as `path`; it then finds
            its base by itself.
        adapter_scale: a factor on the adapter's updates; 1 if not given. Between 0 and 1, the model
            stays closer to its base.
        device: where it translates: "cuda" for an NVIDIA GPU, "cpu" without one, or "auto" for a
            GPU if there is one. TensorFlow's choice is for the whole process, and must be made
            before it uses a GPU. CTranslate2 computes in float16 on a GPU.
        xla: whether XLA compiles searches: "auto" where that is faster, in the background; "on" for
            all, each when its shape comes first; "off" for none. Translations are the same, except
            for near-ties with an export's bfloat16 weights on a GPU, or with "on".
        engine: what computes the model: "tensorflow"; "ctranslate2", which starts faster and needs
            less memory; or "auto" for CTranslate2 if it is installed and can compute what is asked
            (not an ensemble, parsing, sampling, mbr, n_best above 1, xla="on", or on a GPU). The
            first call converts the model, and keeps the copy in the user's cache. With "auto",
            TensorFlow computes required phrases, forced terms and attention.
        options: the fields of search.config.DecodingConfig: beam_size, alpha, extra_length,
            max_source_length, batch_tokens, early_stopping, n_best, sampling, min_length,
            no_repeat_ngram_size, forbidden_phrases and mbr. Those that are not given, or None, take
            the values chosen for the model, or else its task's defaults. In a SavedModel they are
            fixed at export, except for n_best and mbr.

    Returns:
        A Translator for sentences and documents. For a parsing model, a Parser, which returns
        trees; `load_parser` returns it, too, and type checkers know so.

    Raises:
        InputError: if there is no such model or device, or the model does not support the options.
    """
    check_options(options)
    stored = open_model(ModelPath(path, checkpoint, adapter, adapter_scale, device, xla, engine))
    return translator_of(stored, options)


def load_parser(
    path: AnyPath | Sequence[AnyPath],
    checkpoint: str | None = None,
    adapter: AnyPath | None = None,
    adapter_scale: float | None = None,
    device: str = "auto",
    xla: str = "auto",
    engine: str = "auto",
    **options: Any,
) -> Parser:
    """Loads a parsing model; the arguments are those of `load`.

    Raises:
        InputError: as for `load`, and for a translation model.
    """
    check_options(options)
    stored = open_model(ModelPath(path, checkpoint, adapter, adapter_scale, device, xla, engine))
    task = "translation" if stored.description is None else stored.description.task
    require(task == "parsing", "path", "must be a parsing model", f"{path}, a {task} model")
    return translator_of(stored, options)


def translator_of(
    stored: StoredModel, options: Mapping[str, Any], needs_tensorflow: bool = False
) -> Any:
    """Makes the TextTranslator of a model, or the Parser of a parsing model; see `load`.

    Args:
        stored: the model.
        options: as for `load`.
        needs_tensorflow: whether the caller will ask for what only TensorFlow's engine computes.
    """
    engine, vocabularies, card = _loaded(stored, options, needs_tensorflow)
    is_parser = card.description.task == "parsing"
    rule = "must be used with a translation model"
    require(not (is_parser and card.decoding.mbr), "mbr", rule, "a parsing model")
    if is_parser:
        return Parser(Translator(engine, vocabularies, card, stored.model))
    return TextTranslator(engine, vocabularies, card, stored.model)


def _loaded(stored: StoredModel, options: Mapping[str, Any], needs_tensorflow: bool) -> LoadedModel:
    """Loads a model with the engine of its path: CTranslate2's for "auto", if that is as good."""
    asked = stored.where.engine
    is_own = stored.is_export or needs_tensorflow or _suits_tensorflow(stored, options)
    if asked == stored.engine or (asked == "auto" and is_own):
        return stored.load(options)
    try:
        from keras_transformer.kit.exchange.formats import export  # a folder that can be removed

        return load_converted(stored, options, functools.partial(export, "ctranslate2"))
    except (ImportError, InputError, OSError) as error:
        if asked != "auto":
            raise
        loaded = stored.load(options)  # raises an error that is the model's or the caller's
        logging.info("translating with TensorFlow: %s", reason(error))
        return loaded


def _suits_tensorflow(stored: StoredModel, options: Mapping[str, Any]) -> bool:
    """Whether only TensorFlow gives the answers that are asked for, or has been tried.

    CTranslate2 ends searches early, which seldom changes the best translation, but often others.
    Its random numbers depend on earlier calls, and it computes in float16 on a GPU.
    """
    where, description = stored.where, stored.description
    may_use_gpu = where.device == "cuda" or (where.device == "auto" and NVIDIA_DRIVER.exists())
    is_parser = description is not None and description.task == "parsing"
    needs_several = (options.get("n_best") or 1) > 1 or options.get("mbr") is not None
    is_sampling = options.get("sampling") is not None
    return may_use_gpu or is_parser or needs_several or is_sampling or where.xla == "on"
