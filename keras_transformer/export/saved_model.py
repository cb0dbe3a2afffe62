"""A trained model as one SavedModel that takes text and gives text.

    serving_default    text -> translation, score, and `truncated`: whether the text was cut
    best               text -> one translation: the first of `beams`, and whether the text was cut
    n_best             text -> all beams; `beams` is the same from a search that ends when the first
                       of them is certain
    document           text -> translation of all its lines and sentences, however long
    complete           source, target -> n_best of the translations that begin as the target does
    constrain          source, target, phrases -> complete, of those that contain the phrases
    score              source, target -> the probability of the target
    align              source, target -> subwords, their log-probabilities, and an alignment
    attention          source, target -> the weights of all heads, and an alignment
    tokenize           text -> its subwords

text_graphs.py documents the names, shapes and dtypes of all outputs. keras_transformer.load uses
further signatures, of ids (search/tensorflow_engine.py), and the vocabulary beside them. `text`,
`source` and `target` are string [B]. B may be 0, or any number of texts that memory holds.
Vocabulary, beam search and weights are inside, in operations of TensorFlow and tensorflow_text
only: whoever loads it needs these two packages and nothing of this one. TensorFlow Serving finds
requests in it to warm up with (warm_up.py). A parsing model reads words and writes the tokens of a
tree: the signatures return them as they are, while keras_transformer.load returns trees.
"""

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from keras_transformer.errors import InputError, reason, require
from keras_transformer.export.directory import write_export
from keras_transformer.export.text_graphs import TextGraphs
from keras_transformer.export.warm_up import write_warm_up
from keras_transformer.model.transformer import Transformer
from keras_transformer.model_card import CARD, ModelCard
from keras_transformer.quiet_tensorflow import without_information
from keras_transformer.search.compiled_model import compile_model
from keras_transformer.search.ensemble import ensemble_of
from keras_transformer.search.matrices import require_int8
from keras_transformer.search.tensorflow_engine import ExportedGraphs, SearchGraphs
from keras_transformer.search.weights import variables_of
from keras_transformer.translate.texts import search_settings
from keras_transformer.vocabulary.pair import VocabularyPair


def export_saved_model(
    models: Sequence[Transformer],
    vocabularies: VocabularyPair,
    export_dir: str | os.PathLike,
    card: ModelCard,
    overwrite: bool = False,
    constraints: bool = False,
    signatures: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Writes the SavedModel.

    Args:
        models: one Transformer, or those of an ensemble.
        vocabularies: what they were trained with.
        export_dir: a new or empty folder.
        card: what is known of the model. `card.decoding` says how the SavedModel translates, and
            `card.weights` how the weights are stored: "float32", "bfloat16" or "int8". Of bfloat16,
            half the size, every call makes float32 copies: computing in bfloat16 rounds more, and
            few CPUs are faster at it. Of int8, a quarter of the size, products are computed.
        overwrite: whether an earlier export in `export_dir` is replaced.
        constraints: whether there is the signature `constrain`, which is a further search.
        signatures: the names of those that it has; all if not given. A process that loads the
            SavedModel holds the graphs of every signature, whether they are called or not.

    Returns:
        {"saved_model": export_dir, "bytes"}.

    Raises:
        InputError: where `export_dir` holds something, or cannot be written; where there is no such
            signature; or for int8 where TensorFlow has no product of it.
    """
    if card.weights == "int8":
        require_int8("weights")
    compiled = [compile_model(model, card.weights) for model in models]
    settings = search_settings(card.decoding, vocabularies.target)
    graphs = SearchGraphs(ensemble_of(compiled), settings, constraints)
    texts = TextGraphs(graphs, vocabularies)
    exported = _graphs_named({**texts.named, **graphs.named}, signatures)
    card = dataclasses.replace(card, tensorflow=tf.__version__)
    module = tf.Module()
    module.vocabularies = texts.vocabularies  # tracked, for their tables
    module.weights = [variable for model in compiled for variable in variables_of(model.weights)]

    def write(folder):
        tf.saved_model.save(module, str(folder), signatures=exported)
        for file in {vocabulary.file for vocabulary in vocabularies}:  # for restoring.restore
            (folder / CARD.parent / file.name).write_bytes(file.read_bytes())
        write_warm_up(folder, exported)

    size = write_export(write, export_dir, card, overwrite)
    return {"saved_model": str(export_dir), "bytes": size}


def _graphs_named(
    graphs: Mapping[str, Callable], names: Sequence[str] | None
) -> dict[str, Callable]:
    """The graphs of these names; all of them where no names are given."""
    if names is None:
        return dict(graphs)
    rule = f"must be some of {', '.join(graphs)}"
    unknown = [name for name in names if name not in graphs]
    require(names and not unknown, "signatures", rule, ", ".join(map(repr, unknown)) or "none")
    return {name: graphs[name] for name in names}


def load_signatures(path: str | os.PathLike) -> ExportedGraphs:
    """Loads the graphs of an export.

    Args:
        path: the directory, which `model_card.read_card` has checked.

    Returns:
        The signatures by name. Each keeps the weights that it needs.

    Raises:
        InputError: if the files are damaged.
    """
    import tensorflow_text  # noqa: F401 (registers the operations of its text signatures)

    try:
        with without_information():
            return ExportedGraphs(dict(tf.saved_model.load(str(path)).signatures))
    except Exception as error:  # damaged bytes can end in any
        rule = "must be a directory that an export has made"
        raise InputError("path", rule, f"{str(path)!r}: {reason(error)}") from None
