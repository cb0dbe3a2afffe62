"""The checkpoints of a model directory's run: which there are, and which of them stay.

TensorFlow keeps a checksum of every tensor; if a checkpoint is damaged, training resumes from the
one before it. Every variable of model and optimizer, the random states of dropout among them, is
saved under its place in `model.variables`, and with them the position in the shuffled data.
"""

from pathlib import Path
from typing import Any

import tensorflow as tf
from absl import logging

from keras_transformer.config import TransformerConfig
from keras_transformer.errors import InputError, require
from keras_transformer.files.paths import to_path
from keras_transformer.training.checkpoint_files import (
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


class CheckpointStore:
    """The checkpoints of a model directory's run: the last ones and the best one.

    Args:
        model_dir: the model directory; the records of its checkpoints are read at once.
        model: the configuration of the model whose checkpoints they are; None to read those of any
            model.
        keep: how many of the last checkpoints stay when a new one is written, besides the best.
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
        self.records = self._read_records()
        known_metric = self.latest.best_metric if self.latest else None
        self.best_metric = best_metric or known_metric or "loss"

    @property
    def latest(self) -> CheckpointRecord | None:
        """The newest checkpoint; None without any."""
        return self.records[-1] if self.records else None

    @property
    def best(self) -> CheckpointRecord | None:
        """The first checkpoint with the best validation; None if there was no validation."""
        measured = [r for r in self.records if r.validation.get(self.best_metric) is not None]
        return max(measured, key=lambda record: self._rank(record.validation), default=None)

    def would_be_best(self, validation: dict[str, float | None]) -> bool:
        """Whether a checkpoint with this validation would be better than all that there are."""
        if validation.get(self.best_metric) is None:
            return False
        best = self.best
        return best is None or self._rank(validation) > self._rank(best.validation)

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
        rule = "must be latest, best, average:K or the path of a whole checkpoint"
        received = f"{checkpoint}, without {path}.json"
        require(to_path(f"{path}.json").exists(), "checkpoint", rule, received)
        record = read_record(path)
        self._check_model(record, path)
        return path, record

    def recover(self) -> None:
        """Finishes what a killed process has begun to write or to remove.

        Only the process that writes here may call this: it removes unfinished checkpoints, also
        those that another process is writing.

        Raises:
            InputError: where a file of a checkpoint has no record beside it. Nothing says then what
                the run's checkpoints are, so that the run can neither go on nor begin again.
        """
        recover_checkpoints(self.directory, "step-")
        self.records = self._read_records()
        names = {record.name for record in self.records}
        for path in self.directory.glob("step-*"):
            name = path.name.partition(".")[0]
            rule = f"must have its record {name}.json beside it"
            advice = "put it back, or move the files of this checkpoint elsewhere"
            require(name in names, None, rule, f"none; {advice}", path)

    def restore(self, trackables: dict[str, Any]) -> CheckpointRecord | None:
        """Reads the newest checkpoint that is whole.

        The files of damaged checkpoints after it stay under another name, "damaged-NAME...".

        Args:
            trackables: what is restored, as it was saved.

        Returns:
            The record of the checkpoint, or None where there is none.

        Raises:
            InputError: where no checkpoint is whole.
        """
        errors: list[InputError] = []
        for record in reversed(self.records):
            try:
                self._read(trackables, record)
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
            received = f"{errors[0].received}; nor is any before it. Choose a new model_dir"
            raise errors[0].replaced(received=received)
        return None

    def restore_named(self, trackables: dict[str, Any], name: str) -> CheckpointRecord:
        """Reads the checkpoint of a name, which another worker has read.

        Raises:
            InputError: where it is missing or damaged.
        """
        self.records = self._read_records()
        found = [record for record in self.records if record.name == name]
        rule = "must be the same directory on every worker"
        require(found != [], "model_dir", rule, f"{self.directory}, which has no {name}")
        self._read(trackables, found[0])
        return found[0]

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
            OSError: where it cannot be written; earlier ones stay as they were.
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
        """Removes all checkpoints but the last ones and the best one."""
        best = self.best
        for record in self.records[: -self.keep]:
            if record is not best:
                self.records = [other for other in self.records if other is not record]
                remove_checkpoint(self.directory, record.name)

    def _read(self, trackables: dict[str, Any], record: CheckpointRecord) -> None:
        """Reads a checkpoint into variables; raises InputError where it is damaged."""
        path = self.path(record)
        try:
            tf.train.Checkpoint(**trackables).read(path).assert_existing_objects_matched()
        except (ValueError, AssertionError, IndexError, tf.errors.OpError) as error:
            raise InputError(None, "must be whole", damage_of(error), path) from None

    def _read_records(self) -> list[CheckpointRecord]:
        records = read_records(self.model_dir)
        for record in records:
            self._check_model(record, self.path(record))
        return records

    def _check_model(self, record: CheckpointRecord, path: str) -> None:
        """Raises InputError where a checkpoint was written for another model."""
        received = "another configuration than the checkpoint was written with"
        is_same = self.model is None or record.model == self.model.fingerprint
        file = self.model_dir / "config.json"
        require(is_same, None, f"must describe the model of {path}.json", received, file)

    def _rank(self, validation: dict[str, float | None]) -> float:
        """A number that is larger for a better validation."""
        value = validation[self.best_metric]
        return -value if self.best_metric == "loss" else value
