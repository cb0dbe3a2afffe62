"""A trained model as ONNX graphs, for runtimes without TensorFlow.

Tokens in, log probabilities out: docs/reference/onnx.md describes the graphs' inputs and outputs,
and docs/examples/onnx_translate.py searches with them. The vocabularies are next to the graphs.
"""

import dataclasses
import functools
import os
from typing import Any

from keras_transformer.core.model.transformer import Transformer
from keras_transformer.core.search.compiled_model import compile_model
from keras_transformer.core.vocabulary.pair import VocabularyPair
from keras_transformer.kit.exchange.directory import write_export, write_files
from keras_transformer.kit.exchange.formats import check_config, check_weights
from keras_transformer.support.errors import import_extra
from keras_transformer.use.store.card import ModelCard

ENCODER, DECODER = "encoder.onnx", "decoder.onnx"


def export_onnx(
    model: Transformer,
    vocabularies: VocabularyPair,
    export_dir: str | os.PathLike,
    card: ModelCard,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Writes the directory, with copies of the vocabularies and a model card.

    Args:
        model, vocabularies, export_dir, overwrite: see formats.export.
        card: the model card; its `weights`, "float32" or "int8", is how the weights are stored.

    Returns:
        {"onnx": export_dir, "bytes"}.

    Raises:
        InputError: if the package onnx is not installed, the model is too large for an ONNX file,
            or `export_dir` is not empty or not writable.
    """
    onnx = import_extra("onnx")
    files = {**graph_files(model, card.weights), **vocabularies.contents()}
    card = dataclasses.replace(card, onnx=onnx.__version__)
    write = functools.partial(write_files, contents=files)
    size = write_export(write, export_dir, card, overwrite)
    return {"onnx": str(export_dir), "bytes": size}


def graph_files(model: Transformer, weights: str) -> dict[str, bytes]:
    """Makes a model's graphs: the contents of their files, by name.

    Raises:
        InputError: if the weights are not float32 or int8, or too large for an ONNX file, or if
            such a graph cannot hold the model.
    """
    from keras_transformer.kit.exchange.onnx_model import decoder_graph, encoder_graph

    check_weights("onnx", weights)
    check_config("onnx", model.config)
    compiled = compile_model(model, weights)
    return {
        ENCODER: encoder_graph(compiled).SerializeToString(),
        DECODER: decoder_graph(compiled).SerializeToString(),
    }
