"""Checkpoints: written whole or not at all, indexed by one small file, and averaged (section 6.1).

`checkpoints/index.json` lists the complete ones. Files that it does not list were never finished;
they are ignored, and removed at the next start. TensorFlow keeps a checksum of every tensor; if a
checkpoint is damaged, training resumes from the one before it. Every variable of model and
optimizer, the random states of dropout among them, is saved under its place in `model.variables`,
and with them the position in the shuffled data.
"""

from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from absl import logging

from keras_transformer.config import TransformerConfig
from keras_transformer.errors import InputError, reason, require
from keras_transformer.files import remove_folder, to_path, write_json
from keras_transformer.model.transformer import Transformer
from keras_transformer.training.model_directory import read_description, read_index


class CheckpointStore:
    """The checkpoints of a model directory: the last `keep` and the best one.

    `best_metric` is "loss", or a score of which more is better; by default what the index names.
    `entries` is the index, oldest checkpoint first: {"name", "step", "validation_loss", ...}.
    """

    def __init__(self, model_dir: str | Path, keep: int = 20, best_metric: str | None = None):
        self.directory = to_path(model_dir) / "checkpoints"
        self.keep, index = keep, read_index(model_dir)
        self.entries: list[dict[str, Any]] = index["checkpoints"]
        self.best_metric = best_metric or index.get("best_metric") or "loss"

    @property
    def latest(self) -> dict[str, Any] | None:
        return self.entries[-1] if self.entries else None

    @property
    def best(self) -> dict[str, Any] | None:
        return self.best_of(self.entries)

    def best_of(self, entries: list[dict[str, Any]]) -> dict[str, Any] | None:
        """The first entry with the best validation; None if there was no validation."""
        name, sign = f"validation_{self.best_metric}", -1 if self.best_metric == "loss" else 1
        measured = [entry for entry in entries if entry.get(name) is not None]
        return max(measured, key=lambda entry: sign * entry[name], default=None)

    def path(self, entry: dict[str, Any]) -> str:
        """The prefix of an entry's files."""
        return str(self.directory / entry["name"])

    def restore(self, trackables: dict[str, Any], name: str | None = None) -> dict[str, Any] | None:
        """Reads the newest whole checkpoint, or only the one that another process has read.

        Damaged later ones are removed from the index. Returns the entry, or None where there are no
        checkpoints. Raises InputError where none is whole, or none has that name.
        """
        if name is not None:
            self.entries = [entry for entry in self.entries if entry["name"] == name]
            rule = "--model_dir must be the same directory on every worker"
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
                logging.warning("%s; resuming from %s", message, entry["name"])
            if damaged:
                self._write_index(self.entries[: -len(damaged)])
            return entry
        if damaged:
            raise InputError(f"{damaged[0]}; nor is any before it. Choose a new --model_dir")
        return None

    def remove_unlisted(self) -> None:
        """Removes checkpoints no longer kept, and what a killed process left of unfinished ones.

        Only the process that writes here may call this: no checkpoint under way is listed yet.
        """
        listed = {entry["name"] for entry in self.entries}
        for path in self.directory.glob("step-*"):
            if path.is_dir():
                remove_folder(path)
            elif path.name.partition(".")[0] not in listed:
                path.unlink()

    def save(self, trackables: dict[str, Any], **facts) -> dict[str, Any]:
        """Writes a checkpoint, lists it with its `facts`, `step` among them, and returns its entry.

        Then those no longer kept are removed. Raises InputError where it cannot be written; earlier
        ones stay as they were.
        """
        entry = {"name": checkpoint_name(facts["step"]), **facts}
        every = [*self.entries, entry]
        best = self.best_of(every)
        kept = [old for old in every if old in every[-self.keep :] or old is best]
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            tf.train.Checkpoint(**trackables).write(self.path(entry))
            self._write_index(kept)
        except (OSError, tf.errors.OpError) as error:
            last = f"step {self.latest['step']}" if self.entries else "none"
            unchanged = f"The last complete checkpoint ({last}) is unchanged"
            raise _no_room(self.directory, f"{reason(error)}. {unchanged}") from None
        finally:
            self.remove_unlisted()
        return entry

    def _write_index(self, entries: list[dict[str, Any]]) -> None:
        content = {"best_metric": self.best_metric, "checkpoints": entries}
        write_json(self.directory / "index.json", content)
        self.entries = entries


def _no_room(path: str | Path, why: str) -> InputError:
    rule = "--model_dir must have room for a checkpoint"
    return InputError(f"{rule}. Received: {path}: {why}")


def checkpoint_name(step: int) -> str:
    """The name of a run's checkpoint after `step` steps, and of its files."""
    return f"step-{step:08d}"


def restore_model(
    model_dir: str | Path, checkpoint: str = "latest", description=None
) -> tuple[keras.Model, Any]:
    """Builds the model of a directory that bin/train.py made, with the weights of a checkpoint.

    `checkpoint` is "latest", "best" (in validation), "average:K" (the mean of the last K, or of all
    where there are fewer), or the path of a checkpoint or its name in the directory. Several of
    these, separated by commas, are their mean, which is a good model where their runs began with
    the same weights (Wortsman et al. 2022, arXiv 2203.05482). Returns the model, in float32, and
    what it is: {"checkpoint", "step", ...}.

    Raises:
        InputError: where the directory or the checkpoint is missing, foreign or incomplete.
    """
    description = read_description(model_dir)
    weights, facts = read_weights(model_dir, checkpoint)
    found = f"--checkpoint {facts['checkpoint']}"
    from keras_transformer.training.checkpoint_info import CheckpointInfo

    return build_model(
        description.model, weights, f"{model_dir}/config.json", found
    ), CheckpointInfo(**facts)


def build_model(
    c: TransformerConfig, weights: list[np.ndarray], file: str, found: str, kind=Transformer
) -> Transformer:
    """Builds the float32 model that `file` configures, with `weights`, less random states."""
    weights = [weight for weight in weights if not np.issubdtype(weight.dtype, np.integer)]
    needed = c.d_model * (c.vocab_size + c.d_ff + c.num_heads * (c.d_k + c.d_v)) + c.num_layers
    rule = f"{file} must be of the {sum(map(np.size, weights))} weights' model"
    require(needed <= sum(map(np.size, weights)), rule, f"sizes of {needed} weights or more")
    model = kind(c, dtype="float32")
    count = len(model.trainable_variables)
    rule = f"{found} must be of the model in {file}, with {count} variables"
    require(len(weights) == count, rule, len(weights))
    for variable, weight in zip(model.trainable_variables, weights, strict=True):
        rule = f"{found}: {variable.path} must have shape {tuple(variable.shape)}"
        require(tuple(variable.shape) == weight.shape, rule, weight.shape)
        variable.assign(weight)
    return model


def require_plausible_sizes(config, weights, file):
    needed = (
        config.d_model
        * (config.vocab_size + config.d_ff + config.num_heads * (config.d_k + config.d_v))
        + config.num_layers
    )
    rule = f"{file} must be of the {sum(map(np.size, weights))} weights' model"
    require(needed <= sum(map(np.size, weights)), rule, f"sizes of {needed} weights or more")


def read_weights(model_dir: str | Path, checkpoint: str) -> tuple[list[np.ndarray], dict[str, Any]]:
    """Reads the model's variables from a checkpoint, or the mean of several; see restore_model."""
    if "," in checkpoint:
        names = checkpoint.split(",")
        versions = [read_weights(model_dir, name)[0] for name in names]
        return _mean(versions, checkpoint), {"checkpoint": checkpoint, "averaged": len(names)}
    store, facts = CheckpointStore(model_dir), {"checkpoint": checkpoint}
    needed = "a checkpoint" + " with a validation loss" * (checkpoint == "best")
    rule = f"--checkpoint={checkpoint} needs {needed} in {store.directory}"
    none = "none. bin/train.py writes them, and validates if the data has a validation split"
    if checkpoint.startswith("average:"):
        count = checkpoint.removeprefix("average:")
        positive = "the number of checkpoints to average must be 1 or more"
        require(count.isdecimal() and int(count) >= 1, positive, repr(count))
        entries = store.entries[-int(count) :]
        require(entries != [], rule, none)
        if len(entries) < int(count):
            logging.warning("averaging all %d checkpoints: there are not %s", len(entries), count)
        facts = {"checkpoint": f"average:{len(entries)}", "averaged": len(entries)}
        paths = map(store.path, entries)
    elif checkpoint in ("latest", "best"):
        entry = store.latest if checkpoint == "latest" else store.best
        require(entry is not None, rule, none)
        entries, paths, facts = [entry], [store.path(entry)], {"checkpoint": entry["name"]}
    else:
        path = checkpoint.removesuffix(".index")
        inside = store.directory / path
        paths = [str(inside) if to_path(f"{inside}.index").exists() else path]
        entries = [entry for entry in store.entries if entry["name"] == inside.name]
    last = entries[-1] if entries else {}
    facts |= {key: last[key] for key in ("step", "validation_loss") if last.get(key) is not None}
    return _mean([read_variables(path) for path in paths], checkpoint), facts


def _mean(models: list[list[np.ndarray]], checkpoint: str) -> list[np.ndarray]:
    """The mean of the models, variable by variable; of integers (random states), the last one."""
    shapes = {tuple(variable.shape for variable in model) for model in models}
    rule = f"--checkpoint={checkpoint} must name checkpoints of models of one size"
    require(len(shapes) == 1, rule, f"{len(shapes)} sizes")
    return [
        np.mean(versions, axis=0, dtype=np.float64).astype(versions[-1].dtype)
        if np.issubdtype(versions[-1].dtype, np.floating)
        else versions[-1]
        for versions in zip(*models, strict=True)
    ]


def read_variables(path: str, name: str = "model") -> list[np.ndarray]:
    """Reads the list of variables that a file of TensorFlow has under `name`."""
    weights = []
    try:
        reader = tf.train.load_checkpoint(path)
        while reader.has_tensor(key := f"{name}/{len(weights)}/.ATTRIBUTES/VARIABLE_VALUE"):
            weights.append(reader.get_tensor(key))
    except (ValueError, OSError, RuntimeError, IndexError, tf.errors.OpError) as error:
        rule = "--checkpoint must be latest, best, average:K or the path of a whole checkpoint"
        raise InputError(f"{rule}. Received: {path} ({reason(error)})") from None
    require(weights != [], "--checkpoint must be a checkpoint of this program", path)
    return weights


def average_checkpoints(model_dir: str | Path, last: int) -> dict[str, Any]:
    """Writes the mean of the last checkpoints' weights as a checkpoint of its own (section 6.1).

    The paper averages the last 5 of base models, and the last 20 of big ones. Returns {"checkpoint"
    (its path), "averaged", "step"}; raises InputError if there are none, or it cannot be written.
    """
    weights, facts = read_weights(model_dir, f"average:{last}")
    name = f"average-{facts['averaged']}-{checkpoint_name(facts['step'])}"
    path = CheckpointStore(model_dir).directory / name
    try:
        tf.train.Checkpoint(model=[tf.Variable(weight) for weight in weights]).write(str(path))
    except (OSError, tf.errors.OpError) as error:
        raise _no_room(path, reason(error)) from None
    return {**facts, "checkpoint": str(path)}
