"""The checkpoints in a model directory: which exist, and which are kept.

TensorFlow stores a checksum for every tensor; if a checkpoint is damaged, training resumes from the
previous one. Every variable of the model and the optimizer, including dropout's random states, is
saved by its index in `model.variables`, together with the position in the shuffled data.
(tf.train.Checkpoint finds none of a functional model's variables by itself.)
"""

from pathlib import Path
from typing import Any

import tensorflow as tf
from absl import logging

from keras_transformer.core.config import TransformerConfig
from keras_transformer.core.training.checkpoint_files import (
    CheckpointRecord,
    Progress,
    checkpoint_directory,
    checkpoint_name,
    damage_of,
    put_aside,
    read_record,
    read_records,
    recover_checkpoints,
    remove_checkpoint,
    write_checkpoint,
)
from keras_transformer.support.errors import InputError, require
from keras_transformer.support.files.paths import to_path


class CheckpointStore:
    """The checkpoints in a model directory: the last ones and the best one.

    Args:
        model_dir: the model directory; the checkpoints' records are read immediately.
        model: the configuration of the checkpoints' model; None accepts any model.
        keep: how many of the last checkpoints to keep when a new one is written, besides the best.
        best_metric: the validation metric that selects the best checkpoint: "loss", or a score
            where higher is better. By default that of the newest record, or else the loss.

    Attributes:
        directory: the checkpoint folder.
        records: the checkpoints' records, oldest first.

    Raises:
        InputError: if a record is damaged, or for another model.
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
        self.records = self._read_records()
        known_metric = self.latest.best_metric if self.latest else None
        self.best_metric = best_metric or known_metric or "loss"

    @property
    def latest(self) -> CheckpointRecord | None:
        """The newest checkpoint; None if there is none."""
        return self.records[-1] if self.records else None

    @property
    def best(self) -> CheckpointRecord | None:
        """The first checkpoint with the best validation result; None without validation."""
        measured = [r for r in self.records if r.validation.get(self.best_metric) is not None]
        return max(measured, key=lambda record: self._rank(record.validation), default=None)

    def would_be_best(self, validation: dict[str, float | None]) -> bool:
        """Whether a checkpoint with this validation result would be the best."""
        if validation.get(self.best_metric) is None:
            return False
        best = self.best
        return best is None or self._rank(validation) > self._rank(best.validation)

    def path(self, record: CheckpointRecord) -> str:
        """Returns the prefix of a checkpoint's files."""
        return str(self.directory / record.name)

    def find(self, checkpoint: str) -> tuple[str, CheckpointRecord]:
        """Finds a checkpoint by its path, or its name in the directory.

        Returns:
            The prefix of its files, and its record.

        Raises:
            InputError: if there is none, or it is for another model.
        """
        path = checkpoint.removesuffix(".index")
        inside = str(self.directory / path)
        if to_path(f"{inside}.index").exists():
            path = inside
        rule = "must be latest, best, average:K or the path of a complete checkpoint"
        received = f"{checkpoint}, without {path}.json"
        require(to_path(f"{path}.json").exists(), "checkpoint", rule, received)
        record = read_record(path)
        self._check_model(record, path)
        return path, record

    def recover(self) -> None:
        """Completes or removes what a killed process was writing or removing.

        Only the process that writes here may call this: it removes unfinished checkpoints, even if
        another process is writing them.

        Raises:
            InputError: if a checkpoint file has no record. The run's checkpoints are then unknown,
                so the run can neither continue nor restart.
        """
        recover_checkpoints(self.directory, "step-")
        self.records = self._read_records()
        names = {record.name for record in self.records}
        for path in self.directory.glob("step-*"):
            name = path.name.partition(".")[0]
            rule = f"must have its record {name}.json next to it"
            advice = "put it back, or move the files of this checkpoint elsewhere"
            require(name in names, None, rule, f"none; {advice}", path)

    def restore(
        self, trackables: dict[str, Any], iterator: str | None = None
    ) -> CheckpointRecord | None:
        """Restores the newest complete checkpoint.

        The files of newer, damaged checkpoints are renamed to "damaged-NAME...".

        Args:
            trackables: the objects to restore, as they were saved.
            iterator: the name of the position in the data. A checkpoint that was written with
                another form of batches lacks it, and the data then begins anew.

        Returns:
            The checkpoint's record, or None if there is none.

        Raises:
            InputError: if all checkpoints are damaged.
        """
        errors: list[InputError] = []
        for record in reversed(self.records):
            try:
                self._read(trackables, record, iterator)
            except InputError as error:
                errors.append(error)
                continue
            whole = self.records.index(record) + 1
            for error, damaged in zip(reversed(errors), self.records[whole:], strict=True):
                logging.warning("%s; resuming from %s", error, record.name)
                put_aside(self.directory, damaged.name)
            self.records = self.records[:whole]
            return record
        if errors:
            received = f"{errors[0].received}; so are all earlier ones. Choose a new model_dir"
            raise errors[0].replaced(received=received)
        return None

    def restore_named(
        self, trackables: dict[str, Any], name: str, iterator: str | None = None
    ) -> CheckpointRecord:
        """Restores the named checkpoint, which another worker has restored.

        Args:
            trackables: as for `restore`.
            name: the name of the checkpoint.
            iterator: as for `restore`.

        Raises:
            InputError: if it is missing or damaged.
        """
        self.records = self._read_records()
        matches = [record for record in self.records if record.name == name]
        rule = "must be the same directory on every worker"
        require(matches != [], "model_dir", rule, f"{self.directory}, which has no {name}")
        self._read(trackables, matches[0], iterator)
        return matches[0]

    def save(
        self,
        trackables: dict[str, Any],
        step: int,
        seconds: float | None = None,
        validation: dict[str, float | None] | None = None,
        progress: Progress | None = None,
        epochs: float | None = None,
    ) -> CheckpointRecord:
        """Writes a checkpoint, and then removes those that are no longer kept.

        Args:
            trackables: the objects to save, by name.
            step: number of optimizer steps taken.
            seconds: training time, over all starts of the run.
            validation: the metrics of the preceding validation, None for non-finite values.
            progress: the state that a resumed run continues with.
            epochs: passes over the training data, over all starts of the run.

        Returns:
            The record of the new checkpoint.

        Raises:
            OSError: if it cannot be written; earlier ones are unchanged.
        """
        record = CheckpointRecord(
            name=checkpoint_name(step),
            step=step,
            model=self.model.fingerprint,
            seconds=seconds,
            epochs=epochs,
            progress=progress,
            validation=validation or {},
            best_metric=self.best_metric,
        )
        records = [other for other in self.records if other.name != record.name] + [record]
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            write_checkpoint(self.directory, record, trackables)
            self.records = records
            self._remove_old()
        except OSError as error:
            complete = "none" if self.latest is None else f"step {self.latest.step}"
            error.add_note(f"the last complete checkpoint ({complete}) is unchanged")
            raise
        return record

    def _remove_old(self) -> None:
        """Removes all checkpoints except the last ones and the best one."""
        best = self.best
        for record in self.records[: -self.keep]:
            if record is not best:
                self.records = [other for other in self.records if other is not record]
                remove_checkpoint(self.directory, record.name)

    def _read(
        self, trackables: dict[str, Any], record: CheckpointRecord, iterator: str | None
    ) -> None:
        """Reads a checkpoint into variables; raises InputError if it is damaged."""
        path = self.path(record)
        try:
            saved = {name.partition("/")[0] for name, _ in tf.train.list_variables(path)}
            if iterator is not None and iterator not in saved:
                logging.info("%s was written with other batches: the data begins anew", path)
                trackables = {name: trackables[name] for name in trackables if name != iterator}
            tf.train.Checkpoint(**trackables).read(path).assert_existing_objects_matched()
        except (ValueError, AssertionError, IndexError, tf.errors.OpError) as error:
            raise InputError(None, "must be complete", damage_of(error), path) from None

    def _read_records(self) -> list[CheckpointRecord]:
        records = read_records(self.model_dir)
        for record in records:
            self._check_model(record, self.path(record))
        return records

    def _check_model(self, record: CheckpointRecord, path: str) -> None:
        """Raises InputError if a checkpoint was written for another model."""
        received = "another configuration than the checkpoint was written with"
        is_same = self.model is None or record.model == self.model.fingerprint
        file = self.model_dir / "config.json"
        require(is_same, None, f"must describe the model of {path}.json", received, file)

    def _rank(self, validation: dict[str, float | None]) -> float:
        """Returns a number that is larger for a better validation result."""
        value = validation[self.best_metric]
        return -value if self.best_metric == "loss" else value
