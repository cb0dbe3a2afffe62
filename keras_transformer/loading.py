"""`keras_transformer.load`: one translator for whatever holds a trained model."""

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import keras

from keras_transformer.config import TransformerConfig
from keras_transformer.decoding.answers import text_graphs
from keras_transformer.decoding.candidates import SamplingConfig
from keras_transformer.decoding.inference import DecodingConfig, Tokenizer
from keras_transformer.decoding.inference_model import inference_model
from keras_transformer.decoding.parser import Parser
from keras_transformer.decoding.tasks import task_decoding
from keras_transformer.decoding.translator import Translator
from keras_transformer.errors import InputError, reason, require
from keras_transformer.export.model_card import describe, read_card
from keras_transformer.export.saved_model import load_graphs, numbers
from keras_transformer.parsing.linearisation import Linearisation
from keras_transformer.training.checkpoints import restore_model
from keras_transformer.training.model_directory import read_description
from keras_transformer.vocabulary.subwords import Subwords

KERAS_FILE = ".keras"
# What an export keeps as it was made: the parameters of `load` that are for other models only.
FIXED_IN_EXPORT = ("checkpoint", "beam_size", "alpha", "batch_tokens", "sampling")


class TrainedModel(NamedTuple):
    """A model in this process, with all that is needed to use it."""

    model: keras.Model  # of the layout of training
    tokenizer: Tokenizer
    facts: dict[str, Any]  # what its weights are: {"checkpoint", "step", ...}
    about: dict[str, Any]  # as of model_card.describe
    max_length: int  # of the sources in training


def load(
    path: str | os.PathLike,
    checkpoint: str | None = None,
    beam_size: int | None = None,
    alpha: float | None = None,
    batch_tokens: int | None = None,
    n_best: int | None = None,
    sampling: SamplingConfig | None = None,
) -> Translator:
    """Loads a trained model, to translate and score texts, and to see its attention.

    Args:
        path: a model directory (bin/train.py), a checkpoint in one, an export (bin/export.py
            --format=saved_model), or a .keras file with its vocabulary beside it. A config.json of
            a model directory beside a .keras file says what it was trained for.
        checkpoint: of a model directory: "latest", "best" (in validation), "average:K" (the mean
            of the last K), or a checkpoint's path. The latest if not given.
        beam_size, alpha: of the search (section 6.1). If not given, those of the model's task.
        batch_tokens: padded source tokens that are translated at once.
        n_best: how many of the `beam_size` translations must be the best; with fewer of them, the
            search ends sooner. All if not given.
        sampling: draws translations at random in place of the best.

    Returns:
        A Translator; of a parsing model, a Parser, which answers with trees.

    Raises:
        InputError: where there is no such model, or it cannot be used so.
    """
    path = Path(path)
    if is_export(path):
        given = (checkpoint, beam_size, alpha, batch_tokens, sampling)
        for name, value in zip(FIXED_IN_EXPORT, given, strict=True):
            rule = f"--{name} is fixed in an export, and goes with --model_dir only"
            require(value is None, rule, value)
        card = read_card(path)
        names = [field.name for field in dataclasses.fields(DecodingConfig)]
        config = DecodingConfig(**{**{name: card[name] for name in names}, "n_best": n_best})
        if card["sampling"] is not None:
            config = dataclasses.replace(config, sampling=SamplingConfig(**card["sampling"]))
        return translator_of(load_graphs(path), config, TransformerConfig(**card["config"]), card)
    trained = restore(path, checkpoint)
    config = decoding_config(trained, beam_size, alpha)
    config = dataclasses.replace(
        config, batch_tokens=batch_tokens or config.batch_tokens, n_best=n_best, sampling=sampling
    )
    if trained.about["task"] == "parsing" and n_best != 1:
        # As an export has it: the answers that repair chooses among are certain, or the first is.
        config = dataclasses.replace(config, n_best=None)
    card = {
        **trained.facts,
        **trained.about,
        **numbers(trained.model, trained.tokenizer, config),
    }
    model = inference_model(trained.model)
    graphs = text_graphs(model, trained.tokenizer, config)
    return translator_of(graphs, config, model.config, card)


def translator_of(
    graphs: Mapping[str, Any],
    config: DecodingConfig,
    model_config: TransformerConfig,
    card: Mapping[str, Any],
) -> Translator:
    """Makes the translator of the model's task."""
    if card["task"] == "parsing":
        linearisation = Linearisation(**card["task_options"])
        return Parser(graphs, config, model_config, linearisation, card)
    return Translator(graphs, config, model_config, card)


def is_export(path: Path) -> bool:
    """Whether a path is a SavedModel, a damaged one included."""
    return (path / "saved_model.pb").exists() or (path / "assets.extra").exists()


def decoding_config(
    trained: TrainedModel, beam_size: int | None, alpha: float | None
) -> DecodingConfig:
    """How a model's task is decoded, but for what is given; sources are cut where training's were.

    Args:
        beam_size, alpha: as of DecodingConfig; None for what the task has.
    """
    task = task_decoding(trained.about["task"])
    return DecodingConfig(
        task.beam_size if beam_size is None else beam_size,
        task.alpha if alpha is None else alpha,
        task.extra_length,
        max_source_length=max(trained.max_length, task.max_source_length),
    )


def restore(path: str | os.PathLike, checkpoint: str | None = None) -> TrainedModel:
    """Reads a model directory, a checkpoint in one, or a .keras file; see `load`.

    Raises:
        InputError: where directory, checkpoint, file or vocabulary cannot be used.
    """
    path = Path(path)
    if path.suffix == KERAS_FILE:
        return _restore_keras_file(path, checkpoint)
    if path.parent.name == "checkpoints":
        _refuse_checkpoint(path, checkpoint)
        path, checkpoint = path.parent.parent, path.name
    description = read_description(path)
    tokenizer = Subwords.load(path)
    same = tokenizer.fingerprint == description.vocabulary_fingerprint
    rule = f"{path / description.vocabulary} must be the vocabulary that the model was trained with"
    require(same, rule, f"fingerprint {tokenizer.fingerprint}")
    model, facts = restore_model(path, "latest" if checkpoint is None else checkpoint)
    return TrainedModel(model, tokenizer, facts, describe(path, facts), description.max_length)


def _refuse_checkpoint(path: Path, checkpoint: str | None) -> None:
    rule = "--checkpoint goes with a model directory only"
    require(checkpoint is None, rule, f"{checkpoint} of {path}")


def _restore_keras_file(path: Path, checkpoint: str | None) -> TrainedModel:
    _refuse_checkpoint(path, checkpoint)
    try:
        model = keras.models.load_model(path, compile=False)
    except (OSError, ValueError, TypeError, KeyError) as error:
        rule = "a .keras file must be a Transformer that was saved with model.save"
        raise InputError(f"{rule}. Received: {path}: {reason(error)}") from None
    folder, facts = path.parent, {"checkpoint": path.name}
    tokenizer = Subwords.load(folder)
    if (folder / "config.json").exists():
        about, max_length = describe(folder, facts), read_description(folder).max_length
    else:
        about = {"task": "translation", "task_options": {}}
        max_length = DecodingConfig.max_source_length
    rule = f"{tokenizer.file} must have the {model.config.vocab_size} subwords of the model"
    require(tokenizer.vocab_size == model.config.vocab_size, rule, tokenizer.vocab_size)
    return TrainedModel(model, tokenizer, facts, about, max_length)
