"""`keras_transformer.load`: a translator for a trained model in any format.

The type depends on the model's files, which no overload can tell. So there is also `load_parser`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from keras_transformer.kit.documents.text_translator import TextTranslator
from keras_transformer.kit.parsing.parser import Parser
from keras_transformer.support.errors import require
from keras_transformer.use.store.decoding import check_options
from keras_transformer.use.store.model_path import AnyPath, ModelPath
from keras_transformer.use.store.opening import open_model
from keras_transformer.use.store.stored_model import StoredModel
from keras_transformer.use.translate.translator import Translator


def load(
    path: AnyPath | Sequence[AnyPath],
    checkpoint: str | None = None,
    adapter: AnyPath | None = None,
    adapter_scale: float | None = None,
    device: str = "auto",
    xla: str = "auto",
    **options: Any,
) -> TextTranslator:
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
        device: where it translates: "cuda" for an NVIDIA GPU, "cpu" without one, or "auto" for a
            GPU if there is one. TensorFlow's choice is for the whole process, and must be made
            before it uses a GPU. CTranslate2 computes in float16 on a GPU.
        xla: whether XLA compiles searches: "auto" where that is faster, in the background; "on" for
            all, each when its shape comes first; "off" for none. Translations are the same, except
            for near-ties with an export's bfloat16 weights on a GPU, or with "on".
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
    stored = open_model(ModelPath(path, checkpoint, adapter, adapter_scale, device, xla))
    return translator_of(stored, options)


def load_parser(
    path: AnyPath | Sequence[AnyPath],
    checkpoint: str | None = None,
    adapter: AnyPath | None = None,
    adapter_scale: float | None = None,
    device: str = "auto",
    xla: str = "auto",
    **options: Any,
) -> Parser:
    """Loads a parsing model; the arguments are those of `load`.

    Raises:
        InputError: as for `load`, and for a translation model.
    """
    check_options(options)
    stored = open_model(ModelPath(path, checkpoint, adapter, adapter_scale, device, xla))
    task = "translation" if stored.description is None else stored.description.task
    require(task == "parsing", "path", "must be a parsing model", f"{path}, a {task} model")
    return translator_of(stored, options)


def translator_of(stored: StoredModel, options: Mapping[str, Any]) -> Any:
    """Makes the TextTranslator of a model, or the Parser of a parsing model; see `load`."""
    engine, vocabularies, card = stored.load(options)
    is_parser = card.description.task == "parsing"
    rule = "must be used with a translation model"
    require(not (is_parser and card.decoding.mbr), "mbr", rule, "a parsing model")
    if is_parser:
        return Parser(Translator(engine, vocabularies, card, stored.model))
    return TextTranslator(engine, vocabularies, card, stored.model)
