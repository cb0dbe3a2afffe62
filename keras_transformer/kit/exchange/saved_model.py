"""A trained model as one SavedModel that takes text and gives text.

    serving_default    text -> the best translation, and its score
    n_best             text -> all beams, with their scores
    score              source, target -> the probability of the target

text_graphs.py documents the names, shapes and dtypes of all outputs. `text`, `source` and `target`
are string [B]. B may be 0, or any number of texts that fits in memory. keras_transformer.load does
everything else with texts in Python, using further signatures on ids (search/engines/graphs.py)
and the vocabulary next to them.

The SavedModel contains vocabulary, beam search and weights, using only operations from TensorFlow
and tensorflow_text: these two packages suffice to load it. It includes warm-up requests for
TensorFlow Serving (warm_up.py). A parsing model reads words and writes the tokens of a tree: the
signatures return them unchanged, while keras_transformer.load returns trees.
"""

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from keras_transformer.core.model.transformer import Transformer
from keras_transformer.core.search.compiled_model import compile_model
from keras_transformer.core.search.engines.graphs import SearchGraphs
from keras_transformer.core.search.ensemble import ensemble_of
from keras_transformer.core.search.matrices import require_int8
from keras_transformer.core.search.weights import variables_of
from keras_transformer.core.vocabulary.pair import VocabularyPair
from keras_transformer.kit.exchange.directory import write_export, write_files
from keras_transformer.kit.exchange.text_graphs import TextGraphs
from keras_transformer.kit.exchange.warm_up import write_warm_up
from keras_transformer.support.errors import require
from keras_transformer.use.store.card import CARD, ModelCard
from keras_transformer.use.store.decoding import search_settings


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
        models: one Transformer, or the members of an ensemble.
        vocabularies: the vocabularies that they were trained with.
        export_dir: a new or empty folder.
        card: the model card. `card.decoding` has the SavedModel's decoding options, and
            `card.weights` the type of the stored weights: "float32", "bfloat16" or "int8". With
            bfloat16, half the size, every call makes float32 copies: computing in bfloat16 is less
            precise, and faster on few CPUs (for GPUs, see store/export.py). With int8, a quarter of
            the size, products are int8.
        overwrite: whether to replace an earlier export in `export_dir`.
        constraints: whether to include the signature `constrain_ids`, an additional search.
        signatures: the names of the signatures to include; all by default. A process that loads the
            SavedModel holds the graphs of every signature, whether called or not.

    Returns:
        {"saved_model": export_dir, "bytes"}.

    Raises:
        InputError: if `export_dir` is not empty or not writable, a signature does not exist, or
            TensorFlow has no int8 product for int8 weights.
    """
    if card.weights == "int8":
        require_int8("weights")
    compiled = [compile_model(model, card.weights) for model in models]
    settings = search_settings(card.decoding, vocabularies.target)
    graphs = SearchGraphs(ensemble_of(compiled), settings, constraints)
    texts = TextGraphs(graphs, vocabularies)
    exported = _graphs_named({**texts.named, **graphs.exported}, signatures)
    card = dataclasses.replace(card, tensorflow=tf.__version__)
    module = tf.Module()
    module.vocabularies = texts.vocabularies  # tracked, for their tables
    module.weights = [variable for model in compiled for variable in variables_of(model.weights)]

    def write(folder):
        tf.saved_model.save(module, str(folder), signatures=exported)
        write_files(folder / CARD.parent, vocabularies.contents())  # for store/export.py
        write_warm_up(folder, exported)

    size = write_export(write, export_dir, card, overwrite)
    return {"saved_model": str(export_dir), "bytes": size}


def _graphs_named(
    graphs: Mapping[str, Callable], names: Sequence[str] | None
) -> dict[str, Callable]:
    """Returns the graphs with these names; all of them without names."""
    if names is None:
        return dict(graphs)
    rule = f"must be among {', '.join(graphs)}"
    unknown = [name for name in names if name not in graphs]
    require(names and not unknown, "signatures", rule, ", ".join(map(repr, unknown)) or "none")
    return {name: graphs[name] for name in names}
