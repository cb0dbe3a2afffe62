"""What is known of a checkpoint: the record beside its files, NAME.json, read without TensorFlow.

There is no list of all checkpoints that could be lost, or come from an earlier day: those of a run
are the ones whose records are in the folder.
"""

import dataclasses
from pathlib import Path
from typing import Annotated, Any

from keras_transformer.errors import InputError, require
from keras_transformer.fields import Amount, Count, from_json, one_of
from keras_transformer.files.json_files import read_json
from keras_transformer.files.paths import to_path
from keras_transformer.training.loop_config import METRICS
from keras_transformer.training.model_directory import FORMAT_VERSION
from keras_transformer.training.step_sums import StepSums

# What is used of the file.
_PROGRESS = {
    "sums": {name: float for name in StepSums._fields},
    "summed_steps": Count,
    "summed_seconds": Amount,
    "validations_since_best": Count,
}
_RECORD = {
    "model": str,
    "step": Count,
    "seconds?": Amount,
    "progress?": _PROGRESS,
    "best_metric?": Annotated[str, one_of(*METRICS)],
    **{f"validation_{metric}?": float for metric in METRICS},
}
_VALIDATION = "validation_"  # before the name of a metric in the file


@dataclasses.dataclass(frozen=True)
class Progress:
    """What a resumed run continues with, beside its variables and its position in the data."""

    # Since the last point of the curves.
    sums: StepSums = dataclasses.field(default_factory=StepSums)
    summed_steps: int = 0  # the steps that were summed
    summed_seconds: float = 0.0  # the time that these steps took
    validations_since_best: int = 0  # validations without a better best_metric

    def to_json(self) -> dict[str, Any]:
        """The fields as JSON values."""
        return {**dataclasses.asdict(self), "sums": self.sums._asdict()}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "Progress":
        """Makes a Progress of values that are checked already."""
        return cls(
            sums=StepSums(**{name: values["sums"][name] for name in StepSums._fields}),
            summed_steps=values["summed_steps"],
            summed_seconds=values["summed_seconds"],
            validations_since_best=values["validations_since_best"],
        )


@dataclasses.dataclass(frozen=True)
class CheckpointRecord:
    """What is known of a checkpoint beside its weights."""

    name: str  # of its files
    step: int  # how many optimizer steps had been taken
    model: str  # the fingerprint of the model's configuration
    seconds: float | None = None  # of training, over all starts of the run; None if unknown
    progress: Progress | None = None  # None for a model that no training loop has written
    # The metrics of the validation before it, such as {"loss": 2.1, "bleu": 31.2}; empty without
    # one, None where a value was not finite.
    validation: dict[str, float | None] = dataclasses.field(default_factory=dict)
    best_metric: str | None = None  # that chooses the best checkpoint; None if no run has said so

    def to_json(self) -> dict[str, Any]:
        """All but the name as JSON values, those of the validation in one level with the others."""
        values: dict[str, Any] = {"format_version": FORMAT_VERSION, "model": self.model}
        values["step"] = self.step
        if self.seconds is not None:
            values["seconds"] = self.seconds
        if self.progress is not None:
            values["progress"] = self.progress.to_json()
        for metric, value in self.validation.items():
            values[_VALIDATION + metric] = value
        if self.best_metric is not None:
            values["best_metric"] = self.best_metric
        return values

    @classmethod
    def from_json(cls, name: str, values: dict[str, Any]) -> "CheckpointRecord":
        """Makes the record of a checkpoint of values that are checked already."""
        progress = values.get("progress")
        validation = {
            key.removeprefix(_VALIDATION): value
            for key, value in values.items()
            if key.startswith(_VALIDATION)
        }
        return cls(
            name=name,
            step=values["step"],
            model=values["model"],
            seconds=values.get("seconds"),
            progress=None if progress is None else Progress.from_json(progress),
            validation=validation,
            best_metric=values.get("best_metric"),
        )


def read_record(path: str | Path) -> CheckpointRecord:
    """Reads the record of the checkpoint whose files begin with `path`.

    Raises:
        InputError: where there is none, or it is damaged or of another version.
    """
    file = to_path(f"{path}.json")
    content = read_json(file)
    version = content.get("format_version")
    rule = f"must be {FORMAT_VERSION}"
    require(version == FORMAT_VERSION, "format_version", rule, version, file)
    return CheckpointRecord.from_json(to_path(path).name, from_json(_RECORD, content, file))


def read_records(model_dir: str | Path) -> list[CheckpointRecord]:
    """Reads the records of the checkpoints of a model directory's run, oldest first.

    Averages of these checkpoints are not among them.

    Raises:
        InputError: where one is damaged, of another version or of another step than its name says.
    """
    directory = checkpoint_directory(model_dir)
    records = []
    for file in list(directory.glob("step-*.json")):
        name = file.name.removesuffix(".json")
        try:
            record = read_record(directory / name)
            rule = "must have the step of its name"
            require(name == checkpoint_name(record.step), None, rule, record.step, file)
        except InputError as error:
            if not file.exists():  # the run has removed it in this moment
                continue
            advice = f"without this checkpoint, all goes on: move the files {name}.* elsewhere"
            received = f"{error.received}; {advice}"
            raise error.replaced(received=received) from None
        records.append(record)
    return sorted(records, key=lambda record: record.step)


def checkpoint_name(step: int) -> str:
    """The name of a run's checkpoint after `step` steps, and of its files."""
    return f"step-{step:08d}"


def checkpoint_directory(model_dir: str | Path) -> Path:
    """The folder of the checkpoints of a model directory."""
    return to_path(model_dir) / "checkpoints"
