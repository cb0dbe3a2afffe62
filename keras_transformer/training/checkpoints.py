"""Checkpoints: written whole or not at all, indexed by one small file, and averaged (section 6.1).

`checkpoints/index.json` lists the complete ones. Files that it does not list were never finished;
they are ignored, and removed at the next start. A checkpoint is checked as it is read (TensorFlow
keeps a checksum of every tensor); if it is damaged, training resumes from the checkpoint before it.
Every variable of model and optimizer, the random states of dropout among them, is saved under its
place in `model.variables`, and with them the position in the shuffled data.
"""

import contextlib
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from absl import logging

from keras_transformer.errors import InputError, reason, require
from keras_transformer.files import read_json, write_json
from keras_transformer.model.transformer import Transformer
from keras_transformer.training.model_directory import read_description


class CheckpointStore:
    """The checkpoints of a model directory, oldest first.

    Args:
        model_dir: the model directory.
        keep: how many to keep, besides the best one.
        best_metric: chooses the best one: "loss", or a score of which more is better; by default
            the metric named in the index.
    """

    def __init__(self, model_dir: str | Path, keep: int = 20, best_metric: str | None = None):
        self.directory = Path(model_dir) / "checkpoints"
        self.keep, self.best_metric = keep, best_metric or "loss"
        self.entries: list[dict[str, Any]] = []
        index = self.directory / "index.json"
        if index.exists():
            content = read_json(index)
            self.entries = content.get("checkpoints")
            rule = f"{index} must list checkpoints"
            require(isinstance(self.entries, list), rule, self.entries)
            self.best_metric = best_metric or content.get("best_metric", "loss")

    @property
    def latest(self) -> dict[str, Any] | None:
        return self.entries[-1] if self.entries else None

    @property
    def best(self) -> dict[str, Any] | None:
        """The entry with the best validation; None if there was no validation."""
        return _best(self.entries, self.best_metric)

    def path(self, entry: dict[str, Any]) -> str:
        """The prefix of an entry's files."""
        return str(self.directory / entry["name"])

    def restore(self, trackables: dict[str, Any], name: str | None = None) -> dict[str, Any] | None:
        """Reads the newest whole checkpoint; removes damaged later ones from the index.

        Args:
            trackables: as in `save`.
            name: reads this checkpoint alone, which another process has restored.

        Returns:
            Its entry; None where there are no checkpoints.

        Raises:
            InputError: where there are some and none is whole, or none has that name.
        """
        if name is not None:
            self.entries = [entry for entry in self.entries if entry["name"] == name]
            rule = "--model_dir must be the same directory on every worker"
            require(self.entries != [], rule, f"{self.directory}, which has no {name}")
        damaged: list[str] = []
        for place, entry in reversed(list(enumerate(self.entries))):
            path = self.path(entry)
            try:
                tf.train.Checkpoint(**trackables).read(path).assert_existing_objects_matched()
            except (ValueError, AssertionError, IndexError, tf.errors.OpError) as error:
                damaged.append(f"checkpoint {path} must be whole. Received: {reason(error)}")
                continue
            for message in damaged:
                logging.warning("%s; resuming from %s", message, entry["name"])
            if damaged:
                self._write_index(self.entries[: place + 1])
            return entry
        if damaged:
            raise InputError(f"--model_dir: {damaged[0]}; nor is any checkpoint before it")
        return None

    def remove_unlisted(self) -> None:
        """Removes checkpoints no longer kept, and what a killed process left of unfinished ones.

        Only the process that writes here may call this: no checkpoint under way is listed yet.
        """
        listed = {entry["name"] for entry in self.entries}
        for path in self.directory.glob("step-*"):
            if path.name.partition(".")[0].partition("_temp")[0] in listed:
                continue
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()

    def save(self, trackables: dict[str, Any], **facts) -> dict[str, Any]:
        """Writes a checkpoint, then lists it, then removes those no longer kept.

        Args:
            trackables: what tf.train.Checkpoint is made of.
            facts: for the index; `step` is one of them.

        Returns:
            The new entry.

        Raises:
            InputError: where it cannot be written; earlier ones stay as they were.
        """
        entry = {"name": checkpoint_name(facts["step"]), **facts}
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            tf.train.Checkpoint(**trackables).write(self.path(entry))
            every = [*(old for old in self.entries if old["name"] != entry["name"]), entry]
            best = _best(every, self.best_metric)
            self._write_index([old for old in every if old in every[-self.keep :] or old is best])
        except (OSError, tf.errors.OpError) as error:
            self.remove_unlisted()
            last = f"step {self.latest['step']}" if self.entries else "none"
            raise InputError(
                f"--model_dir must have room for a checkpoint. Received: {self.directory}: "
                f"{reason(error)}. The last complete checkpoint ({last}) is unchanged"
            ) from None
        self.remove_unlisted()
        return entry

    def _write_index(self, entries: list[dict[str, Any]]) -> None:
        content = {"best_metric": self.best_metric, "checkpoints": entries}
        write_json(self.directory / "index.json", content)
        self.entries = entries


def checkpoint_name(step: int) -> str:
    """The name of a run's checkpoint after `step` steps, and of its files."""
    return f"step-{step:08d}"


def newest_checkpoint(model_dir: str | Path) -> str | None:
    """Reads the name of the newest complete checkpoint; None without one or a readable index."""
    with contextlib.suppress(InputError):
        entry = CheckpointStore(model_dir).latest
        return entry and entry["name"]
    return None


def is_better(metric: str, value: float, other: float) -> bool:
    """Whether `value` is better than `other`, as a "loss" or as a score of another name."""
    return value < other if metric == "loss" else value > other


def _best(entries: list[dict[str, Any]], metric: str) -> dict[str, Any] | None:
    """The entry of the best value; the first of equal ones."""
    name, sign = f"validation_{metric}", -1 if metric == "loss" else 1
    measured = [entry for entry in entries if entry.get(name) is not None]
    return max(measured, key=lambda entry: sign * entry[name], default=None)


def named_variables(variables: Iterable[keras.Variable]) -> dict[str, Any]:
    """The variables of a model or optimizer under their places, for tf.train.Checkpoint.

    tf.train.Checkpoint finds none of a functional Keras model's variables by itself.
    """
    return {str(place): variable.value for place, variable in enumerate(variables)}


def restore_model(
    model_dir: str | Path, checkpoint: str = "latest"
) -> tuple[keras.Model, dict[str, Any]]:
    """Builds the model of a directory, with the weights of a checkpoint.

    Args:
        model_dir: as bin/train.py made it.
        checkpoint: "latest", "best" (in validation), "average:K" (the mean of the last
            K), or the path of a checkpoint or its name in the directory.

    Returns:
        The model, in float32, and what it is: {"checkpoint", "step", ...}.

    Raises:
        InputError: where the directory or the checkpoint is missing, foreign or incomplete.
    """
    description = read_description(model_dir)
    weights, facts = read_weights(model_dir, checkpoint)
    model = Transformer(description.model, dtype="float32")
    found, rule = f"in {facts['checkpoint']}", f"--checkpoint must be of the model in {model_dir}"
    equal = len(weights) == len(model.variables)
    require(equal, f"{rule}, with {len(model.variables)} variables", f"{len(weights)} {found}")
    for variable, weight in zip(model.variables, weights, strict=True):
        rule = f"--checkpoint: {variable.path} must have shape {tuple(variable.shape)}"
        require(tuple(variable.shape) == weight.shape, rule, f"{weight.shape} {found}")
        variable.assign(weight)
    return model, facts


def read_weights(model_dir: str | Path, checkpoint: str) -> tuple[list[np.ndarray], dict[str, Any]]:
    """Reads the model's variables from a checkpoint, or the mean of several; see restore_model."""
    store = CheckpointStore(model_dir)
    facts, path = {"checkpoint": checkpoint}, None
    if checkpoint.startswith("average:"):
        entries = _last(store, checkpoint.removeprefix("average:"))
        facts["averaged"] = len(entries)
    elif checkpoint in ("latest", "best"):
        entry = store.latest if checkpoint == "latest" else store.best
        needed = "a checkpoint" + " with a validation loss" * (checkpoint == "best")
        rule = f"--checkpoint={checkpoint} needs {needed} in {store.directory}"
        require(entry is not None, rule, "none")
        entries, facts = [entry], {"checkpoint": entry["name"]}
    else:
        path = checkpoint.removesuffix(".index")
        inside = store.directory / path
        path = str(inside) if inside.with_name(f"{inside.name}.index").exists() else path
        entries = [entry for entry in store.entries if entry["name"] == inside.name]
    paths = [store.path(entry) for entry in entries] if path is None else [path]
    for key in ("step", "validation_loss"):
        if entries and entries[-1].get(key) is not None:
            facts[key] = entries[-1][key]
    return _mean([_read(path) for path in paths]), facts


def average_checkpoints(model_dir: str | Path, last: int) -> dict[str, Any]:
    """Writes the mean of the last checkpoints' weights as a checkpoint of its own (section 6.1).

    Args:
        model_dir: as bin/train.py made it.
        last: how many; the paper averages 5 for base models and 20 for big ones.

    Returns:
        {"checkpoint": path of the new checkpoint, "averaged", "step"}.

    Raises:
        InputError: where there are fewer, or it cannot be written.
    """
    weights, facts = read_weights(model_dir, f"average:{last}")
    path = CheckpointStore(model_dir).directory / f"average-{last}-{checkpoint_name(facts['step'])}"
    variables = {str(place): tf.Variable(weight) for place, weight in enumerate(weights)}
    try:
        tf.train.Checkpoint(model=variables).write(str(path))
    except (OSError, tf.errors.OpError) as error:
        rule = "--model_dir must have room for a checkpoint"
        raise InputError(f"{rule}. Received: {path}: {reason(error)}") from None
    return {**facts, "checkpoint": str(path)}


def _last(store: CheckpointStore, count: str) -> list[dict[str, Any]]:
    """The entries that average:COUNT names."""
    largest, rule = len(store.entries), "the number of checkpoints to average must be"
    require(count.isdecimal() and int(count) >= 1, f"{rule} 1 or more", repr(count))
    require(int(count) <= largest, f"{rule} at most the {largest} in {store.directory}", count)
    return store.entries[-int(count) :]


def _mean(all_weights: list[list[np.ndarray]]) -> list[np.ndarray]:
    """The mean of each variable; of integers (random states), the last value."""
    means = []
    for versions in zip(*all_weights, strict=True):
        floating = np.issubdtype(versions[0].dtype, np.floating)
        mean = np.mean(versions, axis=0, dtype=np.float64) if floating else versions[-1]
        means.append(mean.astype(versions[0].dtype))
    return means


def _read(path: str) -> list[np.ndarray]:
    try:
        reader = tf.train.load_checkpoint(path)
        weights = []
        while reader.has_tensor(name := f"model/{len(weights)}/.ATTRIBUTES/VARIABLE_VALUE"):
            weights.append(reader.get_tensor(name))
    except (ValueError, OSError, RuntimeError, IndexError, tf.errors.OpError) as error:
        rule = "--checkpoint must be latest, best, average:K or the path of a whole checkpoint"
        raise InputError(f"{rule}. Received: {path} ({reason(error)})") from None
    require(weights != [], "--checkpoint must be a checkpoint of this program", path)
    return weights
