"""The list of a run's complete checkpoints: checkpoints/index.json, read without TensorFlow."""

import dataclasses
from pathlib import Path
from typing import Annotated, Any

from keras_transformer.fields import Amount, Count, FileName, one_of
from keras_transformer.files import read_json, to_path, write_json
from keras_transformer.training.loop_config import METRICS
from keras_transformer.training.step_sums import StepSums

# What is used of the file.
_PROGRESS = {
    "sums": {name: float for name in StepSums._fields},
    "summed_steps": Count,
    "summed_seconds": Amount,
    "validations_since_best": Count,
}
_ENTRY = {
    "name": FileName,
    "step": Count,
    "seconds?": Amount,
    "progress?": _PROGRESS,
    **{f"validation_{metric}?": float for metric in METRICS},
}
_INDEX = {"checkpoints": list[_ENTRY], "best_metric?": Annotated[str, one_of(*METRICS)]}
_VALIDATION = "validation_"  # before the name of a metric in an entry of the file


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
class CheckpointEntry:
    """What the index says of a checkpoint."""

    name: str  # of its files
    step: int  # how many optimizer steps had been taken
    seconds: float | None = None  # of training, over all starts of the run; None if unknown
    progress: Progress | None = None  # None for a model that no training loop has written
    # The metrics of the validation before it, such as {"loss": 2.1, "bleu": 31.2}; empty without
    # one, None where a value was not finite.
    validation: dict[str, float | None] = dataclasses.field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The fields as JSON values, those of the validation in one level with the others."""
        values: dict[str, Any] = {"name": self.name, "step": self.step}
        if self.seconds is not None:
            values["seconds"] = self.seconds
        if self.progress is not None:
            values["progress"] = self.progress.to_json()
        for metric, value in self.validation.items():
            values[_VALIDATION + metric] = value
        return values

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "CheckpointEntry":
        """Makes an entry of values that are checked already."""
        progress = values.get("progress")
        validation = {
            name.removeprefix(_VALIDATION): value
            for name, value in values.items()
            if name.startswith(_VALIDATION)
        }
        return cls(
            name=values["name"],
            step=values["step"],
            seconds=values.get("seconds"),
            progress=None if progress is None else Progress.from_json(progress),
            validation=validation,
        )


@dataclasses.dataclass(frozen=True)
class CheckpointIndex:
    """The content of the file."""

    entries: tuple[CheckpointEntry, ...] = ()  # oldest first
    best_metric: str | None = None  # that chooses the best checkpoint; None if no run has said so


def read_index(model_dir: str | Path) -> CheckpointIndex:
    """Reads the index of a model directory, or gives an empty one where there is none.

    Raises:
        InputError: where it is damaged or of another version.
    """
    path = _path(model_dir)
    if not path.exists():
        return CheckpointIndex()
    content = read_json(path, _INDEX)
    entries = tuple(CheckpointEntry.from_json(values) for values in content["checkpoints"])
    return CheckpointIndex(entries, content.get("best_metric"))


def write_index(model_dir: str | Path, index: CheckpointIndex) -> None:
    """Writes the index of a model directory, as a whole or not at all."""
    entries = [entry.to_json() for entry in index.entries]
    write_json(_path(model_dir), {"best_metric": index.best_metric, "checkpoints": entries})


def _path(model_dir: str | Path) -> Path:
    return to_path(model_dir) / "checkpoints" / "index.json"
