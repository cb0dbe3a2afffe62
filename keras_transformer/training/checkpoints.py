"""Checkpoints: written whole or not at all, indexed by one small file, and averaged (section 6.1).

`checkpoints/index.json` lists what is complete; a file that it does not list was never finished and
is ignored. Every variable of model and optimizer is saved under its place in `model.variables`, the
random states of dropout among them, and the position in the shuffled data beside them.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_transformer.errors import InputError, reason
from keras_transformer.model.transformer import build_transformer
from keras_transformer.training.model_directory import read_description, write_json


class CheckpointStore:
    """The checkpoints of a model directory, oldest first.

    Args:
        model_dir: the model directory.
        keep: how many to keep; the best one is kept besides.
    """

    def __init__(self, model_dir: str | Path, keep: int = 20):
        self.directory = Path(model_dir) / "checkpoints"
        self.keep = keep
        self.entries: list[dict[str, Any]] = []
        index = self.directory / "index.json"
        if index.exists():
            try:
                self.entries = json.loads(index.read_text(encoding="utf-8"))["checkpoints"]
            except (OSError, ValueError, KeyError, TypeError) as error:
                raise InputError(f"{index} must list checkpoints. Received: {error}") from None

    @property
    def latest(self) -> dict[str, Any] | None:
        return self.entries[-1] if self.entries else None

    @property
    def best(self) -> dict[str, Any] | None:
        """The entry of the smallest validation loss; None where none was measured."""
        return _best(self.entries)

    def path(self, entry: dict[str, Any]) -> str:
        """The prefix of an entry's files."""
        return str(self.directory / entry["name"])

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
            entries = [old for old in every if old in every[-self.keep :] or old is _best(every)]
            write_json(self.directory / "index.json", {"checkpoints": entries})
        except (OSError, tf.errors.OpError) as error:
            if all(old["name"] != entry["name"] for old in self.entries):
                self._remove(entry)
            why = reason(error)
            last = f"step {self.latest['step']}" if self.entries else "none"
            raise InputError(
                f"--model_dir must have room for a checkpoint. Received: {self.directory}: "
                f"{why}. The last complete checkpoint ({last}) is as it was"
            ) from None
        dropped = [old for old in others if old not in entries]
        self.entries = entries
        for old in dropped:
            self._remove(old)
        return entry

    def _remove(self, entry) -> None:
        for file in self.directory.glob(f"{entry['name']}.*"):
            file.unlink(missing_ok=True)
        for folder in self.directory.glob(f"{entry['name']}_temp*"):
            for file in folder.iterdir():
                file.unlink(missing_ok=True)
            folder.rmdir()


def _best(entries: list[dict[str, Any]]) -> dict[str, Any] | None:
    scored = [entry for entry in entries if entry.get("validation_loss") is not None]
    return min(scored, key=lambda entry: entry["validation_loss"], default=None)


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
        checkpoint: "latest", "best" (smallest validation loss), "average:K" (the mean of the last
            K), or the path of a checkpoint or its name in the directory.

    Returns:
        The model, in float32, and what it is: {"checkpoint", "step", ...}.

    Raises:
        InputError: where the directory or the checkpoint is missing, foreign or incomplete.
    """
    description = read_description(model_dir)
    weights, facts = read_weights(model_dir, checkpoint)
    model = build_transformer(description.model)
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
