"""The weights in checkpoints: reading, averaging (section 6.1), and loading into a model."""

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf
from absl import logging

from keras_transformer.core.config import TransformerConfig
from keras_transformer.core.model.transformer import Transformer
from keras_transformer.core.training.checkpoint_files import (
    CheckpointInfo,
    CheckpointRecord,
    average_name,
    checkpoint_directory,
    choose_checkpoint,
    damage_of,
    recover_checkpoints,
    write_checkpoint,
)
from keras_transformer.core.training.checkpoints import CheckpointStore
from keras_transformer.core.training.model_directory import ModelDescription, read_description
from keras_transformer.support.errors import InputError, require
from keras_transformer.support.fields import whole_number
from keras_transformer.support.files.locks import locked


def restore_model(
    model_dir: str | Path,
    checkpoint: str = "latest",
    description: ModelDescription | None = None,
) -> tuple[keras.Model, CheckpointInfo]:
    """Builds the model in a model directory, with the weights of a checkpoint.

    Args:
        model_dir: a model directory from training.
        checkpoint: "latest", "best" (in validation), "average:K" (the mean of the last K, or of all
            if there are fewer), or the path of a checkpoint or its name in the directory. Several,
            separated by commas, are averaged, which gives a good model if their runs started from
            the same weights (Wortsman et al. 2022, arXiv 2203.05482).
        description: the content of the directory's config.json, if already read.

    Returns:
        The model, in float32, and which weights it has.

    Raises:
        InputError: if the directory or the checkpoint is missing, incomplete, or not written by
            training.
    """
    if description is None:
        description = read_description(model_dir)
    weights, info = read_checkpoint(model_dir, checkpoint, description.model)
    file = f"{model_dir}/config.json"
    model = build_model(description.model, weights, file, f"checkpoint {info.checkpoint}")
    return model, info


def build_model(
    config: TransformerConfig,
    weights: list[np.ndarray],
    file: str,
    source: str,
) -> Transformer:
    """Builds a float32 model and sets its weights.

    Args:
        config: the model's configuration.
        weights: the model's variables in order; random states among them are ignored.
        file: the file that `config` was read from, for messages.
        source: where the weights were read from, for messages.

    Raises:
        InputError: if the weights do not match the model.
    """
    weights = [weight for weight in weights if not np.issubdtype(weight.dtype, np.integer)]
    require_plausible_sizes(config, weights, file)
    model = Transformer(config, dtype="float32")
    count = len(model.trainable_variables)
    rule = f"must match the model in {file}, which has {count} variables"
    require(len(weights) == count, None, rule, len(weights), source)
    for variable, weight in zip(model.trainable_variables, weights, strict=True):
        rule = f"must have shape {tuple(variable.shape)}"
        require(tuple(variable.shape) == weight.shape, variable.path, rule, weight.shape, source)
        variable.assign(weight)
    return model


def require_plausible_sizes(
    config: TransformerConfig, weights: list[np.ndarray], file: str
) -> None:
    """Rejects a configuration whose model would be much larger than the weights.

    A damaged file may describe a model of any size, which must not be built.

    Args:
        config: the configuration in the file.
        weights: the model's weights.
        file: the file, for the message.

    Raises:
        InputError: if the model needs more weights than there are.
    """
    available = sum(weight.size for weight in weights)
    heads = config.num_heads * (config.d_k + config.d_v)
    needed = config.d_model * (config.vocab_size + config.d_ff + heads) + config.num_layers
    rule = f"must describe the model with the {available} weights"
    require(needed <= available, None, rule, f"sizes for {needed} weights or more", file)


def read_variables(path: str, name: str = "model") -> list[np.ndarray]:
    """Reads a list of variables from a checkpoint.

    Args:
        path: the prefix of the checkpoint's files, as TensorFlow writes them.
        name: the name under which the list was saved.

    Raises:
        InputError: if the checkpoint does not exist, is incomplete, or lacks the list.
    """
    weights = []
    try:
        reader = tf.train.load_checkpoint(path)
        while reader.has_tensor(key := f"{name}/{len(weights)}/.ATTRIBUTES/VARIABLE_VALUE"):
            weights.append(reader.get_tensor(key))
    except (ValueError, OSError, RuntimeError, IndexError, tf.errors.OpError) as error:
        rule = "must be latest, best, average:K or the path of a complete checkpoint"
        raise InputError("checkpoint", rule, f"{path}, with {damage_of(error)}") from None
    require(weights != [], "checkpoint", "must be one written by training", path)
    return weights


def read_checkpoint(
    model_dir: str | Path,
    checkpoint: str,
    model: TransformerConfig | None = None,
    read: Callable[[str], list[np.ndarray]] = read_variables,
) -> tuple[list[np.ndarray], CheckpointInfo]:
    """Reads the model's variables from a checkpoint, or the mean of several.

    Args:
        model_dir: a model directory from training.
        checkpoint: "latest", "best", "average:K", a path or a name, or several of these, separated
            by commas; see restore_model.
        model: the model that the checkpoints must belong to; None for any.
        read: reads arrays from the checkpoint with a path prefix; `read_variables` reads all
            variables.

    Returns:
        The variables in the order of `model.variables`, or the result of `read`, or the mean; and
        which weights they are.

    Raises:
        InputError: if the checkpoint is missing, incomplete, or for another model.
    """
    if "," in checkpoint:
        names = checkpoint.split(",")
        models = [read_checkpoint(model_dir, name, model, read)[0] for name in names]
        return _mean(models, checkpoint), CheckpointInfo(checkpoint, averaged=len(names))
    store = CheckpointStore(model_dir, model)
    if checkpoint.startswith("average:"):
        return _read_average(store, checkpoint, read)
    if checkpoint == "latest":
        record = store.latest
        _require_checkpoint(record is not None, store, checkpoint, "a checkpoint")
    elif checkpoint == "best":
        record = store.best
        wanted = "a checkpoint with a validation loss"
        _require_checkpoint(record is not None, store, checkpoint, wanted)
    else:
        path, record = store.find(checkpoint)
        return read(path), record.info(checkpoint)
    return read(store.path(record)), record.info()


def _read_average(
    store: CheckpointStore, checkpoint: str, read: Callable[[str], list[np.ndarray]]
) -> tuple[list[np.ndarray], CheckpointInfo]:
    """Reads the mean of the last checkpoints: "average:K"."""
    count = whole_number(checkpoint.removeprefix("average:"))
    is_count = count is not None and count >= 1
    require(is_count, "checkpoint", "must be average:K with K at least 1", repr(checkpoint))
    records = store.records[-count:]
    _require_checkpoint(records != [], store, checkpoint, "a checkpoint")
    if len(records) < count:
        logging.warning("averaging all %d checkpoints: fewer than %s", len(records), count)
    models = [read(store.path(record)) for record in records]
    name = f"average:{len(records)}"
    info = dataclasses.replace(records[-1].info(name), averaged=len(records))
    return _mean(models, checkpoint), info


def _require_checkpoint(exists: bool, store: CheckpointStore, checkpoint: str, wanted: str) -> None:
    """Raises InputError if a directory lacks the requested checkpoint."""
    rule = f"must contain {wanted} for checkpoint={checkpoint}"
    advice = "training writes checkpoints, and validates if the data has a validation split"
    require(exists, None, rule, f"none; {advice}", store.directory)


def _mean(models: list[list[np.ndarray]], checkpoint: str) -> list[np.ndarray]:
    """Returns the mean of several models, variable by variable."""
    shapes = {tuple(variable.shape for variable in model) for model in models}
    rule = "must name checkpoints of models of the same size"
    require(len(shapes) == 1, "checkpoint", rule, f"{checkpoint}, of {len(shapes)} sizes")
    return [_mean_variable(versions) for versions in zip(*models, strict=True)]


def _mean_variable(versions: Sequence[np.ndarray]) -> np.ndarray:
    last = versions[-1]
    if not np.issubdtype(last.dtype, np.floating):
        return last  # random states cannot be averaged
    return np.mean(versions, axis=0, dtype=np.float64).astype(last.dtype)


def average_checkpoints(model_dir: str | Path, last: int) -> CheckpointInfo:
    """Writes the mean of the last checkpoints' weights as a new checkpoint (section 6.1).

    The model directory stores this choice: from now on, "average:K" is loaded by default. The paper
    averages the last 5 checkpoints for base models, and the last 20 for big ones.

    Args:
        model_dir: a model directory from training.
        last: how many checkpoints to average, at least 1; all if there are fewer.

    Returns:
        Which weights were written; `checkpoint` is the path of the new checkpoint.

    Raises:
        InputError: if there are no checkpoints.
        OSError: if the mean cannot be written.
    """
    description = read_description(model_dir)
    rule = "must contain a whole model; for an adapter, use checkpoint=average:K"
    require(description.base is None, "model_dir", rule, f"{model_dir}, an adapter")
    model = description.model
    weights, info = read_checkpoint(model_dir, f"average:{last}", model)
    directory = checkpoint_directory(model_dir)
    name = average_name(info.averaged, info.step)
    record = CheckpointRecord(name, info.step, model.fingerprint)
    with locked(directory / "averages.lock", "model_dir"):
        recover_checkpoints(directory, "average-")
        write_checkpoint(directory, record, {"model": [tf.Variable(weight) for weight in weights]})
    choose_checkpoint(model_dir, info.checkpoint)
    return dataclasses.replace(info, checkpoint=str(directory / name))
