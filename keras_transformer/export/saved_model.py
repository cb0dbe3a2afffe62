"""A trained model as one SavedModel that takes text and gives text.

    serving_default    text -> translation, score
    best               text -> one translation: the first of `beams`, and whether the text was cut
    n_best             text -> all beams; `beams` is the same from a search that ends when the first
                       of them is certain
    complete           source, target -> n_best of the translations that begin as the target does
    constrain          source, target, phrases -> complete, of those that contain the phrases
    score, score_ids   source, target -> the probability of the target, of texts or of ids
    align, align_ids   source, target -> subwords, their log-probabilities, and an alignment; of
                       texts or of ids, as those that n_best gives
    lengths, tokenize  text -> its number of subwords, and the subwords; `target_lengths` counts
                       those of a target, whose vocabulary may be another
    attention          source, target -> the weights of all heads, and an alignment

decoding/answers.py gives the names, shapes and dtypes of all outputs. `text`, `source` and `target`
are string [B], of ids int32 [B, S] and [B, T]. B may be 0, or as large as texts fit in
memory. Vocabulary, beam search and weights are inside, in operations of TensorFlow and
tensorflow_text only: whoever loads it needs those two packages and nothing of this one. A parsing
model reads words and writes the tokens of a tree: here as it wrote them, while a loaded export
gives trees (keras_transformer.load).
"""

import contextlib
import dataclasses
import os
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from keras_transformer.decoding.answers import text_graphs
from keras_transformer.decoding.config import DecodingConfig
from keras_transformer.decoding.inference_model import inference_model
from keras_transformer.decoding.int8 import int8_model
from keras_transformer.decoding.shortlist import Shortlist
from keras_transformer.errors import InputError, reason
from keras_transformer.export.model_card import CARD, write_export
from keras_transformer.vocabulary.pair import VocabularyPair


def export_saved_model(
    model: keras.Model,
    vocabularies: VocabularyPair,
    config: DecodingConfig,
    export_dir: str | os.PathLike,
    card: dict[str, Any],
    weights: str = "float32",
    overwrite: bool = False,
    shortlist: Shortlist | None = None,
    constraints: bool = False,
) -> dict[str, Any]:
    """Writes the SavedModel.

    Args:
        model: any Transformer.
        vocabularies: what it was trained with.
        config: how the SavedModel translates.
        export_dir, overwrite: as of model_card.write_export.
        card: what is known of the checkpoint, and of its model directory (model_card.describe).
            Without a task, it is translation.
        weights: how they are stored, "float32", "bfloat16" or "int8". Of bfloat16, half the size,
            every call makes float32 copies: computing in bfloat16 rounds more, and few CPUs are
            faster at it. Of int8, a quarter of the size, products are computed (decoding/int8).
        shortlist: of the tokens that translations consist of; all if not given. Scores of given
            translations are always of the whole vocabulary.
        constraints: whether there is the signature `constrain`, which is a further search.

    Returns:
        {"saved_model": export_dir, "bytes"}.

    Raises:
        InputError: where `export_dir` holds something, or cannot be written; or for int8 where
            TensorFlow has no product of it.
    """
    module = tf.Module()
    module.vocabularies = vocabularies  # tracked, for their files
    # The variables alone: what else a Keras model would save is not needed.
    reading_weights = contextlib.nullcontext
    if weights == "int8":
        model, module.matrices, variables = int8_model(model)
    else:
        model = inference_model(model)
        variables = model.trainable_variables
    module.weights = [variable.value for variable in variables]
    if weights == "bfloat16":
        module.weights = [tf.Variable(tf.cast(variable.value, weights)) for variable in variables]

        def reading_weights():
            copies = [tf.cast(stored, tf.float32) for stored in module.weights]
            return keras.StatelessScope(zip(variables, copies, strict=True))

    module.shortlist = shortlist
    graphs = text_graphs(model, vocabularies, config, reading_weights, shortlist)
    if not constraints:
        graphs.pop("constrain", None)
    card = {
        **{"task": "translation", "task_options": {}, **card},
        **numbers(model, vocabularies, config),
        "weights": weights,
        "shortlist": shortlist and shortlist.sizes,
        "tensorflow": tf.__version__,
    }

    def write(folder):
        tf.saved_model.save(module, str(folder), signatures=graphs)
        for file in {vocabulary.file for vocabulary in vocabularies}:  # for loading.restore
            (folder / CARD.parent / file.name).write_bytes(file.read_bytes())

    size = write_export(write, export_dir, card, overwrite)
    return {"saved_model": str(export_dir), "bytes": size}


def numbers(
    model: keras.Model, vocabularies: VocabularyPair, config: DecodingConfig
) -> dict[str, Any]:
    """The fields of DecodingConfig, {"config", "parameters"} and the vocabularies' fingerprints."""
    return {
        **dataclasses.asdict(config),
        "max_source_length": config.limits(model.config)[0],
        "config": dataclasses.asdict(model.config),
        "parameters": model.count_params(),
        **vocabularies.fingerprints,
    }


def load_graphs(path: str | os.PathLike) -> dict[str, Callable[..., dict[str, tf.Tensor]]]:
    """Loads the signatures of an export; InputError where that fails (`read_card` says why)."""
    try:  # the operations of tensorflow_text have been registered by vocabulary/subwords.py
        return dict(tf.saved_model.load(str(path)).signatures)
    except Exception as error:  # damaged bytes can end in any
        rule = "--saved_model must be a directory that bin/export.py made"
        raise InputError(f"{rule}. Received: {str(path)!r}: {reason(error)}") from None
