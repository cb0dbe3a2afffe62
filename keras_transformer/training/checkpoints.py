"""Checkpoints: written whole or not at all, each with its record, and averaged (section 6.1).

A checkpoint is three files: TensorFlow's NAME.data-00000-of-00001 and NAME.index, and NAME.json,
its record (checkpoint_record.py). They have other names until all three are on the disk, and are
marked before they are removed. So what a killed process has left is told from checkpoints by its
name, and nothing else is ever removed. TensorFlow keeps a checksum of every tensor; if a checkpoint
is damaged, training resumes from the one before it. Every variable of model and optimizer, the
random states of dropout among them, is saved under its place in `model.variables`, and with them
the position in the shuffled data.
"""

import contextlib
import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from absl import logging

from keras_transformer.config import TransformerConfig
from keras_transformer.errors import InputError, reason, require
from keras_transformer.fields import whole_number
from keras_transformer.files.json_files import write_json
from keras_transformer.files.locks import locked
from keras_transformer.files.paths import remove_folder, to_path
from keras_transformer.model.transformer import Transformer
from keras_transformer.training.checkpoint_info import CheckpointInfo
from keras_transformer.training.checkpoint_record import (
    CheckpointRecord,
    Progress,
    checkpoint_directory,
    read_record,
    read_records,
)
from keras_transformer.training.model_directory import ModelDescription, read_description

_WRITING = "writing-"  # before the names of files until a checkpoint is complete
_REMOVING = "removing-"  # before the name of a record whose checkpoint is being removed
_DAMAGED = "damaged-"  # before the names of files that a run could not resume from


class CheckpointStore:
    """The checkpoints of a model directory's run: the last ones and the best one.

    Args:
        model_dir: the model directory; the records of its checkpoints are read at once.
        model: the configuration of the model whose checkpoints they are; None to read those of any
            model.
        keep: how many of the last checkpoints stay when a new one is written, beside the best.
        best_metric: the metric of a validation that chooses the best checkpoint: "loss", or a score
            of which more is better. If not given, the one of the newest record, or else the loss.

    Attributes:
        directory: the folder of the checkpoints.
        records: of the checkpoints, oldest first.

    Raises:
        InputError: where a record is damaged, or is of another model.
    """

    def __init__(
        self,
        model_dir: str | Path,
        model: TransformerConfig | None = None,
        keep: int = 20,
        best_metric: str | None = None,
    ):
        self.model_dir = to_path(model_dir)
        self.directory = checkpoint_directory(model_dir)
        self.model = model
        self.keep = keep
        self.records: list[CheckpointRecord] = self._read_records()
        known_metric = self.latest.best_metric if self.latest else None
        self.best_metric = best_metric or known_metric or "loss"

    def _read_records(self) -> list[CheckpointRecord]:
        records = read_records(self.model_dir)
        for record in records:
            self._check_model(record, self.path(record))
        return records

    def _check_model(self, record: CheckpointRecord, path: str) -> None:
        """Raises InputError where a checkpoint was written for another model."""
        rule = f"{self.model_dir / 'config.json'} must describe the model of {path}.json"
        received = "another configuration than the checkpoint was written with"
        is_same = self.model is None or record.model == self.model.fingerprint
        require(is_same, rule, received)

    @property
    def latest(self) -> CheckpointRecord | None:
        """The newest checkpoint; None without any."""
        return self.records[-1] if self.records else None

    @property
    def best(self) -> CheckpointRecord | None:
        """The first checkpoint with the best validation; None if there was no validation."""
        return self._best_of(self.records)

    def would_be_best(self, validation: dict[str, float | None]) -> bool:
        """Whether a checkpoint with this validation would be better than all that there are."""
        value = validation.get(self.best_metric)
        if value is None:
            return False
        best = self.best
        return best is None or self._rank(validation) > self._rank(best.validation)

    def _best_of(self, records: Sequence[CheckpointRecord]) -> CheckpointRecord | None:
        measured = [r for r in records if r.validation.get(self.best_metric) is not None]
        return max(measured, key=lambda record: self._rank(record.validation), default=None)

    def _rank(self, validation: dict[str, float | None]) -> float:
        """A number that is larger for a better validation."""
        value = validation[self.best_metric]
        return -value if self.best_metric == "loss" else value

    def path(self, record: CheckpointRecord) -> str:
        """The prefix of the files of a checkpoint."""
        return str(self.directory / record.name)

    def find(self, checkpoint: str) -> tuple[str, CheckpointRecord]:
        """Finds the checkpoint that a path names, or a name in the directory.

        Returns:
            The prefix of its files, and its record.

        Raises:
            InputError: where there is none, or it is of another model.
        """
        path = checkpoint.removesuffix(".index")
        inside = str(self.directory / path)
        if to_path(f"{inside}.index").exists():
            path = inside
        rule = "checkpoint must be latest, best, average:K or the path of a whole checkpoint"
        require(to_path(f"{path}.json").exists(), rule, f"{checkpoint}, without {path}.json")
        record = read_record(path)
        self._check_model(record, path)
        return path, record

    def restore(
        self, trackables: dict[str, Any], name: str | None = None
    ) -> CheckpointRecord | None:
        """Reads the newest checkpoint that is whole.

        The files of damaged checkpoints after it stay under another name, "damaged-NAME...".

        Args:
            trackables: what is restored, as it was saved.
            name: the only checkpoint that may be read, as another worker has read it. If not given,
                any may be.

        Returns:
            The record of the checkpoint, or None where there is none.

        Raises:
            InputError: where no checkpoint is whole, or none has that name.
        """
        if name is not None:
            self.records = [record for record in self._read_records() if record.name == name]
            rule = "model_dir must be the same directory on every worker"
            require(self.records != [], rule, f"{self.directory}, which has no {name}")
        damaged: list[str] = []
        for record in reversed(self.records):
            path = self.path(record)
            try:
                tf.train.Checkpoint(**trackables).read(path).assert_existing_objects_matched()
            except (ValueError, AssertionError, IndexError, tf.errors.OpError) as error:
                damaged.append(f"checkpoint {path} must be whole. Received: {_damage(error)}")
                continue
            for message in damaged:
                logging.warning("%s; resuming from %s", message, record.name)
            for other in self.records[len(self.records) - len(damaged) :]:
                self._put_aside(other)
            return record
        if damaged:
            raise InputError(f"{damaged[0]}; nor is any before it. Choose a new model_dir")
        return None

    def _put_aside(self, record: CheckpointRecord) -> None:
        """Gives a damaged checkpoint names under which nothing reads or removes it."""
        _rename_all(self.directory, record.name, _DAMAGED + record.name)
        self.records = [other for other in self.records if other.name != record.name]

    def recover(self) -> None:
        """Finishes what a killed process has begun to write or to remove.

        Only the process that writes here may call this, as it takes what another writes for what a
        killed one has left.

        Raises:
            InputError: where a file of a checkpoint has no record beside it. Nothing says then what
                the run's checkpoints are, so that the run can neither go on nor begin again.
        """
        _recover(self.directory, "step-")
        self.records = self._read_records()
        names = {record.name for record in self.records}
        for path in self.directory.glob("step-*"):
            name = path.name.partition(".")[0]
            rule = f"{path} must have its record {name}.json beside it"
            advice = "put it back, or move the files of this checkpoint elsewhere"
            require(name in names, rule, f"none; {advice}")

    def save(
        self,
        trackables: dict[str, Any],
        step: int,
        seconds: float | None = None,
        validation: dict[str, float | None] | None = None,
        progress: Progress | None = None,
    ) -> CheckpointRecord:
        """Writes a checkpoint, and then removes those that are no longer kept.

        Args:
            trackables: what is saved, by name.
            step: how many optimizer steps have been taken.
            seconds: of training, over all starts of the run.
            validation: the metrics of the validation before, None where one was not finite.
            progress: what a resumed run continues with.

        Returns:
            The record of the new checkpoint.

        Raises:
            InputError: where it cannot be written; earlier ones stay as they were.
        """
        record = CheckpointRecord(
            name=checkpoint_name(step),
            step=step,
            model=self.model.fingerprint,
            seconds=seconds,
            progress=progress,
            validation=validation or {},
            best_metric=self.best_metric,
        )
        records = [other for other in self.records if other.name != record.name] + [record]
        best = self._best_of(records)
        last = records[-self.keep :]
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            _write(self.directory, record, trackables)
            self.records = records
            for other in records:
                if other not in last and other is not best:
                    self._remove(other)
        except (OSError, tf.errors.OpError) as error:
            complete = "none" if self.latest is None else f"step {self.latest.step}"
            unchanged = f"The last complete checkpoint ({complete}) is unchanged"
            raise _no_room(self.directory, f"{reason(error)}. {unchanged}") from None
        return record

    def _remove(self, record: CheckpointRecord) -> None:
        """Removes a checkpoint that is no longer kept."""
        self.records = [other for other in self.records if other is not record]
        mark = self.directory / f"{_REMOVING}{record.name}.json"
        (self.directory / f"{record.name}.json").replace(mark)
        _remove_marked(self.directory, record.name)


def _write(directory: Path, record: CheckpointRecord, trackables: dict[str, Any]) -> None:
    """Writes a checkpoint, which has its name when all of it is on the disk.

    Raises:
        OSError, tf.errors.OpError: where it cannot be written. Nothing is left of it then.
    """
    name = _WRITING + record.name
    try:
        tf.train.Checkpoint(**trackables).write(str(directory / name))
        write_json(directory / f"{name}.json", record.to_json())
        _rename_all(directory, name, record.name)
    except (OSError, tf.errors.OpError):
        with contextlib.suppress(OSError):
            _recover(directory, record.name)
        raise


def _rename_all(directory: Path, name: str, new_name: str) -> None:
    """Renames the files of a checkpoint, its record as the last of them."""
    files = sorted(directory.glob(f"{name}.*"), key=lambda file: file.suffix == ".json")
    for file in files:
        file.replace(directory / (new_name + file.name.removeprefix(name)))


def _recover(directory: Path, prefix: str) -> None:
    """Finishes what a killed process has begun with checkpoints whose names have a prefix.

    One whose record had been written was complete but for its name. Of another, what there is of it
    is removed.
    """
    for mark in list(directory.glob(f"{_WRITING}{prefix}*.json")):
        name = mark.name.removesuffix(".json")
        _rename_all(directory, name, name.removeprefix(_WRITING))
    for path in list(directory.glob(f"{_WRITING}{prefix}*")):
        if path.is_dir():
            remove_folder(path)
        else:
            path.unlink()
    for path in list(directory.glob(f".{_WRITING}{prefix}*.json.*.tmp")):
        path.unlink(missing_ok=True)
    for mark in list(directory.glob(f"{_REMOVING}{prefix}*.json")):
        _remove_marked(directory, mark.name.removeprefix(_REMOVING).removesuffix(".json"))


def _remove_marked(directory: Path, name: str) -> None:
    """Removes the files of a checkpoint that has been marked, and the mark after them."""
    if not (directory / f"{name}.json").exists():  # else it was written again
        for path in list(directory.glob(f"{name}.*")):
            path.unlink()
    (directory / f"{_REMOVING}{name}.json").unlink()


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


def _damage(error: BaseException) -> str:
    """What is said of a checkpoint that could not be read, beside the text of TensorFlow."""
    return f"damaged or missing files ({reason(error)})"


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
        raise InputError(f"{rule}. Received: {path}, with {_damage(error)}") from None
    require(weights != [], "checkpoint must be one that training has written", path)
    return weights


def read_checkpoint(
    model_dir: str | Path,
    checkpoint: str,
    model: TransformerConfig | None = None,
    read: Callable[[str], list[np.ndarray]] = read_variables,
) -> tuple[list[np.ndarray], CheckpointInfo]:
    """Reads the model's variables from a checkpoint, or the mean of several.

    Args:
        model_dir: a directory that training has made.
        checkpoint: "latest", "best", "average:K", a path or a name, or several of these, separated
            by commas; see restore_model.
        model: the model that they must be of; None for any.
        read: gives what is wanted of the checkpoint whose files begin with a path; `read_variables`
            gives all variables.

    Returns:
        The variables in the order of `model.variables`, or the mean of what `read` gives; and which
        weights they are.

    Raises:
        InputError: where the checkpoint is missing or incomplete, or of another model.
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
        return read(path), _info(checkpoint, record)
    return read(store.path(record)), _info(record.name, record)


def _read_average(
    store: CheckpointStore, checkpoint: str, read: Callable[[str], list[np.ndarray]]
) -> tuple[list[np.ndarray], CheckpointInfo]:
    """Reads the mean of the last checkpoints: "average:K"."""
    text = checkpoint.removeprefix("average:")
    count = whole_number(text)
    rule = "the number of checkpoints to average must be 1 or more"
    require(count is not None and count >= 1, rule, repr(text))
    records = store.records[-count:]
    _require_checkpoint(records != [], store, checkpoint, "a checkpoint")
    if len(records) < count:
        logging.warning("averaging all %d checkpoints: there are not %s", len(records), count)
    models = [read(store.path(record)) for record in records]
    info = dataclasses.replace(_info(f"average:{len(records)}", records[-1]), averaged=len(records))
    return _mean(models, checkpoint), info


def _info(checkpoint: str, record: CheckpointRecord) -> CheckpointInfo:
    """What a set of weights is called that are those of a record, or end with them."""
    return CheckpointInfo(checkpoint, record.step, validation_loss=record.validation.get("loss"))


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
    description = read_description(model_dir)
    rule = "model_dir must hold a whole model; of an adapter, use checkpoint=average:K"
    require(description.base is None, rule, f"{model_dir}, an adapter")
    model = description.model
    weights, info = read_checkpoint(model_dir, f"average:{last}", model)
    directory = checkpoint_directory(model_dir)
    name = f"average-{info.averaged}-{checkpoint_name(info.step)}"
    record = CheckpointRecord(name, info.step, model.fingerprint)
    with locked(directory / "averages.lock", "model_dir"):
        _recover(directory, "average-")
        try:
            _write(directory, record, {"model": [tf.Variable(weight) for weight in weights]})
        except (OSError, tf.errors.OpError) as error:
            raise _no_room(directory / name, reason(error)) from None
    return dataclasses.replace(info, checkpoint=str(directory / name))
