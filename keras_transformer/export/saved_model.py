"""A trained model as one SavedModel that takes text and gives text.

    serving_default    text -> translation, score
    best               text -> one translation: the first of `beams`, and whether the text was cut
    n_best             text -> all beams; `beams` is the same from a search that ends when the first
                       of them is certain
    score, score_ids   source, target -> the probability of the target, of texts or of ids
    lengths, tokenize  text -> its number of subwords, and the subwords
    attention          source, target -> the weights of all heads, and an alignment

decoding/answers.py gives the names, shapes and dtypes of all outputs. `text`, `source` and `target`
are string [B], of `score_ids` int32 [B, S] and [B, T]. B may be 0, or as large as texts fit in
memory. Vocabulary, beam search and weights are inside, in operations of TensorFlow and
tensorflow_text only: whoever loads it needs those two packages and nothing of this one. Texts are
UTF-8; invalid bytes are read as U+FFFD, blank texts give "" with score 0, and texts longer than the
model's limit are cut there. A parsing model reads words and writes the tokens of a tree: here as it
wrote them, while a loaded export gives trees (keras_transformer.load).
"""

import dataclasses
import os
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from keras_transformer.decoding.answers import text_graphs
from keras_transformer.decoding.config import DecodingConfig
from keras_transformer.decoding.inference_model import inference_model
from keras_transformer.errors import InputError, reason
from keras_transformer.export.model_card import write_export
from keras_transformer.export.stored_weights import stored_weights
from keras_transformer.vocabulary.subwords import Subwords


def export_saved_model(
    model: keras.Model,
    tokenizer: Subwords,
    config: DecodingConfig,
    export_dir: str | os.PathLike,
    card: dict[str, Any],
    weights: str = "float32",
    overwrite: bool = False,
) -> dict[str, Any]:
    """Writes the SavedModel; `export_dir` appears when it is complete, or not at all.

    Args:
        model: any Transformer.
        tokenizer: the vocabulary it was trained with, a tf.Module.
        config: how the SavedModel translates.
        export_dir: must not exist, or be empty, unless `overwrite`.
        card: what is known of the checkpoint, and of its model directory (model_card.describe).
            Without a task, it is translation.
        weights: how they are stored, "float32" or "bfloat16".
        overwrite: whether an earlier export may be replaced.

    Returns:
        {"saved_model": export_dir, "bytes"}.

    Raises:
        InputError: where `export_dir` holds something, or cannot be written.
    """
    model = inference_model(model)
    module = tf.Module()
    module.tokenizer = tokenizer  # tracked, for its vocabulary
    module.weights, reading_weights = stored_weights(model, weights)
    graphs = text_graphs(model, tokenizer, config, reading_weights)
    del graphs["continuation"]  # a third search would make the export half as large again
    card = {
        **{"task": "translation", "task_options": {}, **card},
        **numbers(model, tokenizer, config),
        "weights": weights,
        "tensorflow": tf.__version__,
    }

    def write(folder):
        tf.saved_model.save(module, str(folder), signatures=graphs)

    return {
        "saved_model": str(export_dir),
        "bytes": write_export(write, export_dir, card, overwrite),
    }


def numbers(model: keras.Model, tokenizer: Subwords, config: DecodingConfig) -> dict[str, Any]:
    """The fields of DecodingConfig, and {"config", "parameters", "vocabulary_fingerprint"}."""
    return {
        **dataclasses.asdict(config),
        "max_source_length": config.limits(model.config)[0],
        "config": dataclasses.asdict(model.config),
        "parameters": model.count_params(),
        "vocabulary_fingerprint": tokenizer.fingerprint,
    }


def load_graphs(path: str | os.PathLike) -> dict[str, Callable[..., dict[str, tf.Tensor]]]:
    """Loads the signatures of a SavedModel of `export_saved_model`.

    Raises:
        InputError: where it cannot be loaded; `read_card` says more of what is wrong.
    """
    import tensorflow_text  # noqa: F401  (registers the operations of the vocabulary)

    try:
        return dict(tf.saved_model.load(str(path)).signatures)
    except Exception as error:  # damaged bytes can end in any
        rule = "--saved_model must be a directory that bin/export.py made"
        raise InputError(f"{rule}. Received: {str(path)!r}: {reason(error)}") from None
