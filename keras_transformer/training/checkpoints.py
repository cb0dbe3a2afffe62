"""The checkpoints of a model directory's run: which there are, and which of them stay.

checkpoint_files.py says how each is written. TensorFlow keeps a checksum of every tensor; if a
checkpoint is damaged, training resumes from the one before it. Every variable of model and
optimizer, the random states of dropout among them, is saved under its place in `model.variables`,
and with them the position in the shuffled data.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf
from absl import logging

from keras_transformer.config import TransformerConfig
from keras_transformer.errors import InputError, require
from keras_transformer.files.paths import to_path
from keras_transformer.training.checkpoint_files import (
    damage_of,
    put_aside,
    recover_checkpoints,
    remove_checkpoint,
    write_checkpoint,
)
from keras_transformer.training.checkpoint_record import (
    CheckpointRecord,
    Progress,
    checkpoint_directory,
    checkpoint_name,
    read_record,
    read_records,
)


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
        received = "another configuration than the checkpoint was written with"
        is_same = self.model is None or record.model == self.model.fingerprint
        file = self.model_dir / "config.json"
        require(is_same, None, f"must describe the model of {path}.json", received, file)

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
        rule = "must be latest, best, average:K or the path of a whole checkpoint"
        received = f"{checkpoint}, without {path}.json"
        require(to_path(f"{path}.json").exists(), "checkpoint", rule, received)
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
            rule = "must be the same directory on every worker"
            require(self.records != [], "model_dir", rule, f"{self.directory}, which has no {name}")
        damaged: list[InputError] = []
        for record in reversed(self.records):
            path = self.path(record)
            try:
                tf.train.Checkpoint(**trackables).read(path).assert_existing_objects_matched()
            except (ValueError, AssertionError, IndexError, tf.errors.OpError) as error:
                damaged.append(InputError(None, "must be whole", damage_of(error), path))
                continue
            for error in damaged:
                logging.warning("%s; resuming from %s", error, record.name)
            for other in self.records[len(self.records) - len(damaged) :]:
                self._put_aside(other)
            return record
        if damaged:
            newest = damaged[0]
            received = f"{newest.received}; nor is any before it. Choose a new model_dir"
            raise InputError(None, newest.rule, received, newest.place)
        return None

    def _put_aside(self, record: CheckpointRecord) -> None:
        """Gives a damaged checkpoint names under which nothing reads or removes it."""
        put_aside(self.directory, record.name)
        self.records = [other for other in self.records if other.name != record.name]

    def recover(self) -> None:
        """Finishes what a killed process has begun to write or to remove.

        Only the process that writes here may call this, as it takes what another writes for what a
        killed one has left.

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
        best = self._best_of(records)
        last = records[-self.keep :]
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            write_checkpoint(self.directory, record, trackables)
            self.records = records
            for other in records:
                if other not in last and other is not best:
                    self._remove(other)
        except OSError as error:
            complete = "none" if self.latest is None else f"step {self.latest.step}"
            error.add_note(f"the last complete checkpoint ({complete}) is unchanged")
            raise
        return record

    def _remove(self, record: CheckpointRecord) -> None:
        """Removes a checkpoint that is no longer kept."""
        self.records = [other for other in self.records if other is not record]
        remove_checkpoint(self.directory, record.name)
