"""Weights that a new run begins with: those of another model, as far as the two are alike."""

import dataclasses

import keras
import numpy as np
from absl import logging

from keras_transformer.config import UNK_ID
from keras_transformer.errors import require
from keras_transformer.model.transformer import Transformer
from keras_transformer.vocabulary.pair import VocabularyPair
from keras_transformer.vocabulary.subwords import Subwords

# What two models may differ in and still have the same layers.
_SIZES = ("vocab_size", "source_vocab_size", "tie_embeddings")
_FREE = (*_SIZES, "dropout", "attention_dropout", "activation_dropout", "attention_window")
_EMBEDDINGS = {"embedding": "source", "target_embedding": "target", "logits_embedding": "target"}


def carry_over(
    trained: Transformer,
    trained_vocabularies: VocabularyPair,
    model: Transformer,
    vocabularies: VocabularyPair,
) -> dict[str, tuple[int, int]]:
    """Gives `model` the weights of a trained one.

    The rows of embeddings go by subword: a subword that both vocabularies have keeps its row, and
    the rows of others stay as they were drawn.

    Returns:
        For each embedding of `model`, by its path: how many rows it has, and how many of them were
        carried over.

    Raises:
        InputError: where the layers differ.
    """
    ours, theirs = dataclasses.asdict(model.config), dataclasses.asdict(trained.config)
    names = [name for name in ours if name not in _FREE and theirs[name] != ours[name]]
    differences = [f"{name}: {theirs[name]}, not {ours[name]}" for name in names]
    rule = "--init_from must have the layers that --preset and --config ask for"
    require(not differences, rule, "; ".join(differences))

    layers = zip(_weights_of_layers(model), _weights_of_layers(trained), strict=True)
    for weight, trained_weight in layers:
        weight.assign(trained_weight)

    # By matrix, as one may serve as several embeddings: it then takes the rows of the last.
    embeddings = {id(getattr(model, name).matrix): name for name in _EMBEDDINGS}
    counts = {}
    for name in embeddings.values():
        new, old = (getattr(p, _EMBEDDINGS[name]) for p in (vocabularies, trained_vocabularies))
        rows, kept = matching_rows(old, new)
        sources = getattr(trained, name).weights  # the matrix, and the bias of logits
        for weight, trained_weight in zip(getattr(model, name).weights, sources, strict=False):
            values = np.array(weight)
            values[rows] = np.array(trained_weight)[kept]
            weight.assign(values)
        matrix = getattr(model, name).matrix
        counts[matrix.path] = (matrix.shape[0], len(rows))
        text = "--init_from: %s has %d subwords, %d of them carried over, the others drawn anew"
        logging.info(text, matrix.path, *counts[matrix.path])
    return counts


def _weights_of_layers(model: Transformer) -> list[keras.Variable]:
    of_vocabulary = [id(w) for name in _EMBEDDINGS for w in getattr(model, name).weights]
    return [weight for weight in model.weights if id(weight) not in of_vocabulary]


def matching_rows(old: Subwords, new: Subwords) -> tuple[list[int], list[int]]:
    """Finds the ids of `new` whose subwords `old` has, too, and their ids in `old`.

    The special ids of both kinds of vocabulary match.
    """
    ids_of = {piece: id for id, piece in enumerate(_pieces(old)) if id > UNK_ID}
    pairs = [(id, ids_of.get(piece)) for id, piece in enumerate(_pieces(new)) if id > UNK_ID]
    special = [(id, id) for id in range(UNK_ID + 1)]
    rows, kept = zip(*special, *(pair for pair in pairs if pair[1] is not None), strict=True)
    return list(rows), list(kept)


def _pieces(vocabulary: Subwords) -> list[bytes]:
    ids = np.arange(vocabulary.vocab_size, dtype="int32")[None]
    return vocabulary.pieces_tensor(ids)[0].numpy().tolist()
