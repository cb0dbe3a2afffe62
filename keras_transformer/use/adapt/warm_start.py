"""Warm start: initializes a new run with another model's weights, as far as they fit.

Subwords in both vocabularies keep their embeddings. A model with fewer layers takes some of the
trained ones, which makes a fast student from its teacher ("shrink and fine-tune", Shleifer and Rush
2020, arXiv 2010.13002).
"""

import dataclasses
from collections.abc import Collection, Iterable
from typing import NamedTuple

import keras
import numpy as np
from absl import logging

from keras_transformer.core.config import DROPOUTS, UNK_ID, TransformerConfig
from keras_transformer.core.model.decoder import Decoder
from keras_transformer.core.model.encoder import Encoder
from keras_transformer.core.model.transformer import Transformer
from keras_transformer.core.vocabulary.pair import VocabularyPair
from keras_transformer.core.vocabulary.subwords import Subwords
from keras_transformer.support.errors import require

# Fields of TransformerConfig in which two models may differ and still have the same layers.
_MAY_DIFFER = (
    "vocab_size",
    "source_vocab_size",
    "tie_embeddings",
    "attention_window",
    "starts_with_zeros",
    *DROPOUTS,
)
_DEPTHS = ("num_layers", "decoder_layers")


class _Embedding(NamedTuple):
    """An embedding in a model, and the vocabulary of its rows."""

    layer: keras.Layer
    vocabulary: Subwords


def carry_over(
    trained: Transformer,
    trained_vocabularies: VocabularyPair,
    model: Transformer,
    vocabularies: VocabularyPair,
) -> dict[str, tuple[int, int]]:
    """Copies a trained model's weights into a new one.

    Embedding rows are matched by subword: a subword in both vocabularies keeps its row, and other
    rows keep their initial values. A stack with fewer layers than the trained one takes those
    returned by `kept_layers`.

    Args:
        trained: the model to copy from.
        trained_vocabularies: the vocabularies of `trained`.
        model: the new model, with the same layers, or fewer of them.
        vocabularies: the vocabularies of `model`.

    Returns:
        For each embedding in `model`, by the path of its matrix: its number of rows, and how many
        of them were copied.

    Raises:
        InputError: if the layers differ, or the trained model has fewer of them.
    """
    trained_depths = _with_both_depths(trained.config)
    depths = _with_both_depths(model.config)
    fewer = [name for name in _DEPTHS if getattr(depths, name) < getattr(trained_depths, name)]
    check_same_layers(trained_depths, depths, (*_MAY_DIFFER, *fewer))
    _copy_weights(_weights_beside_stacks(trained), _weights_beside_stacks(model))
    _carry_stack(trained.encoder, model.encoder)
    _carry_stack(trained.decoder, model.decoder)

    counts = {}
    embeddings = _embeddings(model, vocabularies)
    trained_embeddings = _embeddings(trained, trained_vocabularies)
    for number, embedding in enumerate(embeddings):
        if _shares_its_matrix(embedding, embeddings[number + 1 :]):
            continue
        matrix = embedding.layer.embeddings
        kept = _carry_rows(trained_embeddings[number], embedding)
        counts[matrix.path] = (matrix.shape[0], kept)
        text = "warm start: %s has %d subwords, %d of them copied, the others initialized at random"
        logging.info(text, matrix.path, matrix.shape[0], kept)
    return counts


def check_same_layers(
    trained: TransformerConfig, model: TransformerConfig, may_differ: Collection[str]
) -> None:
    """Raises InputError if a trained model and a new one differ in fields other than these."""
    wanted = dataclasses.asdict(model)
    existing = dataclasses.asdict(trained)
    differences = [
        f"{name}: {existing[name]}, not {wanted[name]}"
        for name in wanted
        if name not in may_differ and existing[name] != wanted[name]
    ]
    rule = "must have the same layers as the model to train"
    require(not differences, "init_from", rule, "; ".join(differences))


def _embeddings(model: Transformer, vocabularies: VocabularyPair) -> list[_Embedding]:
    """Returns a model's embeddings in a fixed order; several may share a matrix."""
    return [
        _Embedding(model.embedding, vocabularies.source),
        _Embedding(model.target_embedding, vocabularies.target),
        _Embedding(model.logits_embedding, vocabularies.target),
    ]


def _shares_its_matrix(embedding: _Embedding, later: list[_Embedding]) -> bool:
    """Whether a later embedding has the same matrix, which then takes the rows for that one."""
    return any(other.layer.embeddings is embedding.layer.embeddings for other in later)


def _carry_rows(trained: _Embedding, new: _Embedding) -> int:
    """Copies the rows of subwords in both vocabularies; returns their number."""
    rows, trained_rows = matching_rows(trained.vocabulary, new.vocabulary)
    _copy_rows(trained.layer.embeddings, trained_rows, new.layer.embeddings, rows)
    if trained.layer.bias is not None and new.layer.bias is not None:
        _copy_rows(trained.layer.bias, trained_rows, new.layer.bias, rows)
    return len(rows)


def _copy_rows(
    trained: keras.Variable, trained_rows: list[int], new: keras.Variable, rows: list[int]
) -> None:
    values = np.array(new)
    values[rows] = np.array(trained)[trained_rows]
    new.assign(values)


def _with_both_depths(config: TransformerConfig) -> TransformerConfig:
    """Returns the configuration with the decoder's depth filled in, which may be omitted."""
    return dataclasses.replace(config, decoder_layers=config.num_decoder_layers)


def kept_layers(trained: int, kept: int) -> list[int]:
    """Returns which layers a stack of `kept` layers takes from one of `trained` layers.

    They are spaced as evenly as possible, and include the first and the last layer. A stack with a
    single layer takes the first.
    """
    if kept == 1:
        return [0]
    return [(2 * number * (trained - 1) + kept - 1) // (2 * (kept - 1)) for number in range(kept)]


def _carry_stack(trained: Encoder | Decoder, stack: Encoder | Decoder) -> None:
    kept = kept_layers(len(trained.layers), len(stack.layers))
    if len(kept) < len(trained.layers):
        numbers = ", ".join(str(number + 1) for number in kept)
        text = "warm start: the %s takes layers %s of %d"
        logging.info(text, stack.name, numbers, len(trained.layers))
    for number, layer in zip(kept, stack.layers, strict=True):
        _copy_weights(trained.layers[number].weights, layer.weights)
    if stack.last_norm is not None:
        _copy_weights(trained.last_norm.weights, stack.last_norm.weights)


def _copy_weights(trained: Iterable[keras.Variable], weights: Iterable[keras.Variable]) -> None:
    for trained_weight, weight in zip(trained, weights, strict=True):
        weight.assign(trained_weight)


def _weights_beside_stacks(model: Transformer) -> list[keras.Variable]:
    """Returns all weights except those of the embeddings and the two stacks."""
    carried_elsewhere = (
        model.embedding,
        model.target_embedding,
        model.logits_embedding,
        model.encoder,
        model.decoder,
    )
    left_out = {id(weight) for layer in carried_elsewhere for weight in layer.weights}
    return [weight for weight in model.weights if id(weight) not in left_out]


def matching_rows(old: Subwords, new: Subwords) -> tuple[list[int], list[int]]:
    """Finds the subwords that two vocabularies share.

    The special ids match, whatever their names.

    Returns:
        The subwords' ids in `new`, and their ids in `old`.
    """
    ids_in_old = {piece: id for id, piece in enumerate(old.pieces) if id > UNK_ID}
    rows = list(range(UNK_ID + 1))
    old_rows = list(range(UNK_ID + 1))
    for id, piece in enumerate(new.pieces):
        if id > UNK_ID and piece in ids_in_old:
            rows.append(id)
            old_rows.append(ids_in_old[piece])
    return rows, old_rows
