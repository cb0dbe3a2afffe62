"""Checkpoints: written whole or not at all, indexed by one small file, and averaged (section 6.1).

`checkpoints/index.json` lists the complete ones. Files that it does not list were never finished;
they are ignored, and removed at the next start. TensorFlow keeps a checksum of every tensor; if a
checkpoint is damaged, training resumes from the one before it. Every variable of model and
optimizer, the random states of dropout among them, is saved under its place in `model.variables`,
and with them the position in the shuffled data.
"""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from absl import logging

from keras_transformer.config import TransformerConfig
from keras_transformer.errors import InputError, reason, require
from keras_transformer.fields import whole_number
from keras_transformer.files import remove_folder, to_path
from keras_transformer.model.transformer import Transformer
from keras_transformer.training.checkpoint_index import (
    CheckpointEntry,
    CheckpointIndex,
    Progress,
    read_index,
    write_index,
)
from keras_transformer.training.checkpoint_info import CheckpointInfo
from keras_transformer.training.model_directory import ModelDescription, read_description


class CheckpointStore:
    """The checkpoints of a model directory: the last ones and the best one.

    Args:
        model_dir: the model directory; its index is read at once.
        keep: how many of the last checkpoints stay when a new one is written, beside the best.
        best_metric: the metric of a validation that chooses the best checkpoint: "loss", or a score
            of which more is better. If not given, the one that the index names, or else the loss.

    Attributes:
        directory: the folder of the checkpoints.
        entries: what the index lists, oldest checkpoint first.

    Raises:
        InputError: where the index is damaged.
    """

    def __init__(self, model_dir: str | Path, keep: int = 20, best_metric: str | None = None):
        index = read_index(model_dir)
        self.model_dir = to_path(model_dir)
        self.directory = self.model_dir / "checkpoints"
        self.keep = keep
        self.entries: list[CheckpointEntry] = list(index.entries)
        self.best_metric = best_metric or index.best_metric or "loss"

    @property
    def latest(self) -> CheckpointEntry | None:
        """The newest checkpoint; None without any."""
        return self.entries[-1] if self.entries else None

    @property
    def best(self) -> CheckpointEntry | None:
        """The first checkpoint with the best validation; None if there was no validation."""
        return self._best_of(self.entries)

    def would_be_best(self, validation: dict[str, float | None]) -> bool:
        """Whether a checkpoint with this validation would be better than all that are listed."""
        value = validation.get(self.best_metric)
        if value is None:
            return False
        best = self.best
        return best is None or self._rank(validation) > self._rank(best.validation)

    def _best_of(self, entries: Sequence[CheckpointEntry]) -> CheckpointEntry | None:
        measured = [e for e in entries if e.validation.get(self.best_metric) is not None]
        return max(measured, key=lambda entry: self._rank(entry.validation), default=None)

    def _rank(self, validation: dict[str, float | None]) -> float:
        """A number that is larger for a better validation."""
        value = validation[self.best_metric]
        return -value if self.best_metric == "loss" else value

    def path(self, entry: CheckpointEntry) -> str:
        """The prefix of the files of a checkpoint."""
        return str(self.directory / entry.name)

    def restore(
        self, trackables: dict[str, Any], name: str | None = None
    ) -> CheckpointEntry | None:
        """Reads the newest checkpoint that is whole.

        Damaged checkpoints after it are removed from the index.

        Args:
            trackables: what is restored, as it was saved.
            name: the only checkpoint that may be read, as another worker has read it. If not given,
                any may be.

        Returns:
            The entry of the checkpoint, or None where the index lists none.

        Raises:
            InputError: where no checkpoint is whole, or none has that name.
        """
        if name is not None:
            self.entries = [entry for entry in self.entries if entry.name == name]
            rule = "model_dir must be the same directory on every worker"
            require(self.entries != [], rule, f"{self.directory}, which has no {name}")
        damaged: list[str] = []
        for entry in reversed(self.entries):
            path = self.path(entry)
            try:
                tf.train.Checkpoint(**trackables).read(path).assert_existing_objects_matched()
            except (ValueError, AssertionError, IndexError, tf.errors.OpError) as error:
                damaged.append(f"checkpoint {path} must be whole. Received: {reason(error)}")
                continue
            for message in damaged:
                logging.warning("%s; resuming from %s", message, entry.name)
            if damaged:
                self._write_index(self.entries[: -len(damaged)])
            return entry
        if damaged:
            raise InputError(f"{damaged[0]}; nor is any before it. Choose a new model_dir")
        return None

    def remove_unlisted(self) -> None:
        """Removes checkpoints no longer kept, and what a killed process left of unfinished ones.

        Only the process that writes here may call this: a checkpoint under way is not listed yet.
        """
        listed = {entry.name for entry in self.entries}
        for path in self.directory.glob("step-*"):
            if path.is_dir():
                remove_folder(path)
            elif path.name.partition(".")[0] not in listed:
                path.unlink()

    def save(
        self,
        trackables: dict[str, Any],
        step: int,
        seconds: float | None = None,
        validation: dict[str, float | None] | None = None,
        progress: Progress | None = None,
    ) -> CheckpointEntry:
        """Writes a checkpoint, lists it, and then removes those that are no longer kept.

        Args:
            trackables: what is saved, by name.
            step: how many optimizer steps have been taken.
            seconds: of training, over all starts of the run.
            validation: the metrics of the validation before, None where one was not finite.
            progress: what a resumed run continues with.

        Returns:
            The entry of the new checkpoint.

        Raises:
            InputError: where it cannot be written; earlier ones stay as they were.
        """
        entry = CheckpointEntry(checkpoint_name(step), step, seconds, progress, validation or {})
        entries = [*self.entries, entry]
        best = self._best_of(entries)
        last = entries[-self.keep :]
        kept = [entry for entry in entries if entry in last or entry is best]
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            tf.train.Checkpoint(**trackables).write(self.path(entry))
            self._write_index(kept)
        except (OSError, tf.errors.OpError) as error:
            complete = "none" if self.latest is None else f"step {self.latest.step}"
            unchanged = f"The last complete checkpoint ({complete}) is unchanged"
            raise _no_room(self.directory, f"{reason(error)}. {unchanged}") from None
        finally:
            self.remove_unlisted()
        return entry

    def _write_index(self, entries: list[CheckpointEntry]) -> None:
        write_index(self.model_dir, CheckpointIndex(tuple(entries), self.best_metric))
        self.entries = entries


def _no_room(path: str | Path, why: str) -> InputError:
    rule = "model_dir must have room for a checkpoint"
    return InputError(f"{rule}. Received: {path}: {why}")


def checkpoint_name(step: int) -> str:
    """The name of a run's checkpoint after `step` steps, and of its files."""
    return f"step-{step:08d}"


def restore_model(
    model_dir: str | Path,
    checkpoint: str = "latest",
    description: ModelDescription | None = None,
) -> tuple[keras.Model, CheckpointInfo]:
    """Builds the model of a model directory, with the weights of a checkpoint.

    Args:
        model_dir: a directory that training has made.
        checkpoint: "latest", "best" (in validation), "average:K" (the mean of the last K, or of all
            where there are fewer), or the path of a checkpoint or its name in the directory.
            Several of these, separated by commas, stand for their mean, which is a good model where
            their runs began with the same weights (Wortsman et al. 2022, arXiv 2203.05482).
        description: the content of the directory's config.json, if it has been read already.

    Returns:
        The model, in float32, and which weights it has.

    Raises:
        InputError: where the directory or the checkpoint is missing, incomplete, or not made by
            training.
    """
    if description is None:
        description = read_description(model_dir)
    weights, info = read_weights(model_dir, checkpoint)
    file = f"{model_dir}/config.json"
    model = build_model(description.model, weights, file, f"checkpoint {info.checkpoint}")
    return model, info


def build_model(
    config: TransformerConfig,
    weights: list[np.ndarray],
    file: str,
    source: str,
) -> Transformer:
    """Builds a float32 model and gives it weights.

    Args:
        config: the model to be made.
        weights: the variables of the model in order; random states among them are left out.
        file: the file that `config` was read from, for messages.
        source: what the weights were read from, for messages.

    Raises:
        InputError: where the weights are not those of the model.
    """
    weights = [weight for weight in weights if not np.issubdtype(weight.dtype, np.integer)]
    require_plausible_sizes(config, weights, file)
    model = Transformer(config, dtype="float32")
    count = len(model.trainable_variables)
    rule = f"{source} must be of the model in {file}, with {count} variables"
    require(len(weights) == count, rule, len(weights))
    for variable, weight in zip(model.trainable_variables, weights, strict=True):
        rule = f"{source}: {variable.path} must have shape {tuple(variable.shape)}"
        require(tuple(variable.shape) == weight.shape, rule, weight.shape)
        variable.assign(weight)
    return model


def require_plausible_sizes(
    config: TransformerConfig, weights: list[np.ndarray], file: str
) -> None:
    """Refuses a configuration whose model would have many more numbers than the weights.

    A damaged file may ask for a model of any size, which must not be built.

    Args:
        config: what the file describes.
        weights: of the model.
        file: for the message.

    Raises:
        InputError: if the model needs more numbers than there are.
    """
    given = sum(weight.size for weight in weights)
    heads = config.num_heads * (config.d_k + config.d_v)
    needed = config.d_model * (config.vocab_size + config.d_ff + heads) + config.num_layers
    rule = f"{file} must describe the model of the {given} weights"
    require(needed <= given, rule, f"sizes of {needed} weights or more")


def read_weights(model_dir: str | Path, checkpoint: str) -> tuple[list[np.ndarray], CheckpointInfo]:
    """Reads the model's variables from a checkpoint, or the mean of several.

    Args:
        model_dir: a directory that training has made.
        checkpoint: "latest", "best", "average:K", a path or a name, or several of these, separated
            by commas; see restore_model.

    Returns:
        The variables in the order of `model.variables`, and which weights they are.

    Raises:
        InputError: where the checkpoint is missing or incomplete.
    """
    if "," in checkpoint:
        names = checkpoint.split(",")
        models = [read_weights(model_dir, name)[0] for name in names]
        return _mean(models, checkpoint), CheckpointInfo(checkpoint, averaged=len(names))
    store = CheckpointStore(model_dir)
    if checkpoint.startswith("average:"):
        return _read_average(store, checkpoint)
    if checkpoint == "latest":
        entry = store.latest
        _require_checkpoint(entry is not None, store, checkpoint, "a checkpoint")
    elif checkpoint == "best":
        entry = store.best
        wanted = "a checkpoint with a validation loss"
        _require_checkpoint(entry is not None, store, checkpoint, wanted)
    else:
        return _read_path(store, checkpoint)
    return read_variables(store.path(entry)), _info(entry.name, entry)


def _read_average(
    store: CheckpointStore, checkpoint: str
) -> tuple[list[np.ndarray], CheckpointInfo]:
    """Reads the mean of the last checkpoints: "average:K"."""
    text = checkpoint.removeprefix("average:")
    count = whole_number(text)
    rule = "the number of checkpoints to average must be 1 or more"
    require(count is not None and count >= 1, rule, repr(text))
    entries = store.entries[-count:]
    _require_checkpoint(entries != [], store, checkpoint, "a checkpoint")
    if len(entries) < count:
        logging.warning("averaging all %d checkpoints: there are not %s", len(entries), count)
    models = [read_variables(store.path(entry)) for entry in entries]
    info = dataclasses.replace(_info(f"average:{len(entries)}", entries[-1]), averaged=len(entries))
    return _mean(models, checkpoint), info


def _read_path(store: CheckpointStore, checkpoint: str) -> tuple[list[np.ndarray], CheckpointInfo]:
    """Reads the checkpoint that a path names, or a name in the directory."""
    path = checkpoint.removesuffix(".index")
    inside = store.directory / path
    is_inside = to_path(f"{inside}.index").exists()
    entries = [entry for entry in store.entries if entry.name == inside.name]
    info = _info(checkpoint, entries[-1]) if entries else CheckpointInfo(checkpoint)
    return read_variables(str(inside) if is_inside else path), info


def _info(checkpoint: str, entry: CheckpointEntry) -> CheckpointInfo:
    """What a set of weights is called that are those of an entry, or end with them."""
    return CheckpointInfo(checkpoint, entry.step, validation_loss=entry.validation.get("loss"))


def _require_checkpoint(exists: bool, store: CheckpointStore, checkpoint: str, wanted: str) -> None:
    """Raises InputError where a directory lacks the checkpoint that is wanted."""
    rule = f"checkpoint={checkpoint} needs {wanted} in {store.directory}"
    advice = "training writes them, and validates if the data has a validation split"
    require(exists, rule, f"none; {advice}")


def _mean(models: list[list[np.ndarray]], checkpoint: str) -> list[np.ndarray]:
    """The mean of several models, variable by variable."""
    shapes = {tuple(variable.shape for variable in model) for model in models}
    rule = f"checkpoint={checkpoint} must name checkpoints of models of one size"
    require(len(shapes) == 1, rule, f"{len(shapes)} sizes")
    return [_mean_variable(versions) for versions in zip(*models, strict=True)]


def _mean_variable(versions: Sequence[np.ndarray]) -> np.ndarray:
    last = versions[-1]
    if not np.issubdtype(last.dtype, np.floating):
        return last  # random states have no mean
    return np.mean(versions, axis=0, dtype=np.float64).astype(last.dtype)


def read_variables(path: str, name: str = "model") -> list[np.ndarray]:
    """Reads a list of variables from a checkpoint.

    Args:
        path: the prefix of the checkpoint's files, as TensorFlow writes them.
        name: what the list was saved as.

    Raises:
        InputError: where there is no such checkpoint, or it is not whole, or has no such list.
    """
    weights = []
    try:
        reader = tf.train.load_checkpoint(path)
        while reader.has_tensor(key := f"{name}/{len(weights)}/.ATTRIBUTES/VARIABLE_VALUE"):
            weights.append(reader.get_tensor(key))
    except (ValueError, OSError, RuntimeError, IndexError, tf.errors.OpError) as error:
        rule = "checkpoint must be latest, best, average:K or the path of a whole checkpoint"
        raise InputError(f"{rule}. Received: {path} ({reason(error)})") from None
    require(weights != [], "checkpoint must be one that training has written", path)
    return weights


def average_checkpoints(model_dir: str | Path, last: int) -> CheckpointInfo:
    """Writes the mean of the last checkpoints' weights as a checkpoint of its own (section 6.1).

    The paper averages the last 5 checkpoints of base models, and the last 20 of big ones.

    Args:
        model_dir: a directory that training has made.
        last: how many checkpoints to average, at least 1; all where there are fewer.

    Returns:
        Which weights were written; `checkpoint` is the path of the new checkpoint.

    Raises:
        InputError: where there are no checkpoints, or the mean cannot be written.
    """
    weights, info = read_weights(model_dir, f"average:{last}")
    name = f"average-{info.averaged}-{checkpoint_name(info.step)}"
    path = CheckpointStore(model_dir).directory / name
    try:
        tf.train.Checkpoint(model=[tf.Variable(weight) for weight in weights]).write(str(path))
    except (OSError, tf.errors.OpError) as error:
        raise _no_room(path, reason(error)) from None
    return dataclasses.replace(info, checkpoint=str(path))
