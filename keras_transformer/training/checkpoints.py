"""Checkpoints: written whole or not at all, indexed by one small file, and averaged (section 6.1).

`checkpoints/index.json` lists what is complete; a file that it does not list was never finished, is
ignored, and is removed at the next start. A listed one is checked as it is read (TensorFlow keeps a
checksum of every tensor); where it is damaged, training goes on from the one before. Every variable
of model and optimizer is saved under its place in `model.variables`, the random states of dropout
among them, and the position in the shuffled data beside them.
"""

import contextlib
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
        keep: how many to keep; the best one is kept besides.
        best_metric: what the best is the best by: "loss", or a score that is the better the higher
            it is; by default what the directory says.
    """

    def __init__(self, model_dir: str | Path, keep: int = 20, best_metric: str | None = None):
        self.directory = Path(model_dir) / "checkpoints"
        self.keep, self.best_metric = keep, best_metric or "loss"
        self.entries: list[dict[str, Any]] = []
        index = self.directory / "index.json"
        if index.exists():
            content = read_json(index)
            self.entries = content.get("checkpoints")
            listed = isinstance(self.entries, list)
            require(listed, f"{index} must list checkpoints", self.entries)
            self.best_metric = best_metric or content.get("best_metric", "loss")

    @property
    def latest(self) -> dict[str, Any] | None:
        return self.entries[-1] if self.entries else None

    @property
    def best(self) -> dict[str, Any] | None:
        """The entry that did best in validation; None where there was none."""
        return _best(self.entries, self.best_metric)

    def path(self, entry: dict[str, Any]) -> str:
        """The prefix of an entry's files."""
        return str(self.directory / entry["name"])

    def restore(self, trackables: dict[str, Any]) -> dict[str, Any] | None:
        """Reads the newest whole checkpoint; those after it, which are damaged, are struck out.

        Args:
            trackables: as in `save`.

        Returns:
            Its entry; None where there are no checkpoints.

        Raises:
            InputError: where there are some and none is whole.
        """
        damaged: list[str] = []
        for place in reversed(range(len(self.entries))):
            path = self.path(self.entries[place])
            try:
                tf.train.Checkpoint(**trackables).read(path).assert_existing_objects_matched()
            except (ValueError, AssertionError, IndexError, tf.errors.OpError) as error:
                damaged.append(f"checkpoint {path} must be whole. Received: {reason(error)}")
                continue
            for message in damaged:
                logging.warning("%s; going on from %s", message, self.entries[place]["name"])
            if damaged:
                self._write_index(self.entries[: place + 1])
            return self.entries[place]
        if damaged:
            raise InputError(f"--model_dir: {damaged[0]}; nor is any before it")
        return None

    def restore_only(self, name: str | None, trackables: dict[str, Any]) -> dict[str, Any] | None:
        """Reads the checkpoint that another process has restored here; None where it had none.

        Raises:
            InputError: where it is not here, or not whole.
        """
        if name is None:
            return None
        self.entries = [entry for entry in self.entries if entry["name"] == name]
        if not self.entries:
            rule = "--model_dir must be the same directory on every worker"
            raise InputError(f"{rule}. Received: {self.directory}, which has no {name}")
        return self.restore(trackables)

    def remove_unfinished(self) -> None:
        """Removes what a process left that was killed while it wrote or removed a checkpoint.

        Only for the process that writes here: to another one, its checkpoint looks unfinished.
        """
        listed = {entry["name"] for entry in self.entries}
        for file in self.directory.glob("step-*"):
            name = file.name.partition(".")[0].partition("_temp")[0]
            if name not in listed:
                self._remove({"name": name})

    def save(self, trackables: dict[str, Any], **facts) -> dict[str, Any]:
        """Writes a checkpoint, then lists it, then removes those no longer kept.

        Args:
            trackables: what tf.train.Checkpoint is made of.
            facts: for the index; `step` is one of them.

        Returns:
            The new entry.

        Raises:
            InputError: where it cannot be written; those before stay as they were.
        """
        entry = {"name": f"step-{facts['step']:08d}", **facts}
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            tf.train.Checkpoint(**trackables).write(self.path(entry))
            others = [old for old in self.entries if old["name"] != entry["name"]]
            every = [*others, entry]
            best = _best(every, self.best_metric)
            entries = [old for old in every if old in every[-self.keep :] or old is best]
            dropped = [old for old in others if old not in entries]
            self._write_index(entries)
        except (OSError, tf.errors.OpError) as error:
            if all(old["name"] != entry["name"] for old in self.entries):
                self._remove(entry)
            why = reason(error)
            last = f"step {self.latest['step']}" if self.entries else "none"
            raise InputError(
                f"--model_dir must have room for a checkpoint. Received: {self.directory}: "
                f"{why}. The last complete checkpoint ({last}) is as it was"
            ) from None
        for old in dropped:
            self._remove(old)
        return entry

    def _write_index(self, entries: list[dict[str, Any]]) -> None:
        content = {"best_metric": self.best_metric, "checkpoints": entries}
        write_json(self.directory / "index.json", content)
        self.entries = entries

    def _remove(self, entry) -> None:
        for file in self.directory.glob(f"{entry['name']}.*"):
            file.unlink(missing_ok=True)
        for folder in self.directory.glob(f"{entry['name']}_temp*"):
            for file in folder.iterdir():
                file.unlink(missing_ok=True)
            folder.rmdir()


def newest_checkpoint(model_dir: str | Path) -> str | None:
    """The name of the newest complete checkpoint of a directory, as its index has it now.

    None where there is none, or where the index cannot be read.
    """
    with contextlib.suppress(InputError):
        entry = CheckpointStore(model_dir).latest
        return entry and entry["name"]
    return None


def is_better(metric: str, value: float, other: float) -> bool:
    """Whether `value` is better than `other`, as a "loss" or as a score of another name."""
    return value < other if metric == "loss" else value > other


def _best(entries: list[dict[str, Any]], metric: str) -> dict[str, Any] | None:
    """The first of the best: a later equal does not take its place."""
    name, best = f"validation_{metric}", None
    for entry in entries:
        if entry.get(name) is not None and (
            best is None or is_better(metric, entry[name], best[name])
        ):
            best = entry
    return best


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
    if len(weights) != len(model.variables):
        raise InputError(
            f"--checkpoint must hold the {len(model.variables)} variables of the model in "
            f"{model_dir}. Received: {facts['checkpoint']}, which holds {len(weights)}"
        )
    for variable, weight in zip(model.variables, weights, strict=True):
        if tuple(variable.shape) != weight.shape:
            raise InputError(
                f"--checkpoint: {variable.path} must have shape {tuple(variable.shape)}. "
                f"Received: {weight.shape} in {facts['checkpoint']}"
            )
        variable.assign(weight)
    return model, facts


def read_weights(model_dir: str | Path, checkpoint: str) -> tuple[list[np.ndarray], dict[str, Any]]:
    """Reads the model's variables from a checkpoint, or the mean of several; see restore_model."""
    store = CheckpointStore(model_dir)
    if checkpoint.startswith("average:"):
        entries = _last(store, checkpoint)
        paths = [store.path(entry) for entry in entries]
        facts = {"checkpoint": checkpoint, "averaged": len(entries), **_position(entries[-1])}
    elif checkpoint in ("latest", "best"):
        entry = store.latest if checkpoint == "latest" else store.best
        if entry is None:
            raise InputError(
                f"--checkpoint={checkpoint} needs a checkpoint"
                f"{' with a validation loss' if checkpoint == 'best' else ''} in {store.directory}."
                " Received: none"
            )
        paths, facts = [store.path(entry)], {"checkpoint": entry["name"], **_position(entry)}
    else:
        path = checkpoint.removesuffix(".index")
        inside = store.directory / path
        paths = [str(inside) if (store.directory / f"{path}.index").exists() else path]
        facts = {"checkpoint": checkpoint}
        for entry in store.entries:
            if entry["name"] == Path(path).name:
                facts |= _position(entry)
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
    path = CheckpointStore(model_dir).directory / f"average-{last}-step-{facts['step']:08d}"
    variables = {str(place): tf.Variable(weight) for place, weight in enumerate(weights)}
    try:
        tf.train.Checkpoint(model=variables).write(str(path))
    except (OSError, tf.errors.OpError) as error:
        raise InputError(
            f"--model_dir must have room for a checkpoint. Received: {path}: {reason(error)}"
        ) from None
    return {**facts, "checkpoint": str(path)}


def _last(store: CheckpointStore, checkpoint: str) -> list[dict[str, Any]]:
    text = checkpoint.removeprefix("average:")
    if not text.isdecimal() or int(text) < 1:
        raise InputError(
            f"the number of checkpoints to average must be 1 or more. Received: {text!r}"
        )
    if int(text) > len(store.entries):
        raise InputError(
            f"the number of checkpoints to average must be at most the {len(store.entries)} in "
            f"{store.directory}. Received: {text}"
        )
    return store.entries[-int(text) :]


def _position(entry: dict[str, Any]) -> dict[str, Any]:
    return {key: entry[key] for key in ("step", "validation_loss") if entry.get(key) is not None}


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
        why = reason(error)
        raise InputError(
            f"--checkpoint must be latest, best, average:K or the path of a whole checkpoint. "
            f"Received: {path} ({why})"
        ) from None
    if not weights:
        raise InputError(f"--checkpoint must be a checkpoint of this program. Received: {path}")
    return weights
