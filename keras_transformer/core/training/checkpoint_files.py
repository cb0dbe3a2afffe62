"""A checkpoint: its record and its files, written and removed atomically.

A checkpoint is three files: TensorFlow's NAME.data-00000-of-00001 and NAME.index, and NAME.json,
its record. They have temporary names until all three are on disk, and the record is renamed before
the files are removed. So the files that a killed process leaves behind have names that no
checkpoint has, and nothing else is ever removed.

No file lists all checkpoints: a run's checkpoints are those with records in the folder. Records are
read without TensorFlow.

A record has the fingerprint of the model's configuration. Shapes do not reveal the number of heads,
the kind of positions or norm_epsilon, so with a changed config.json, translations would be wrong
without warning.
"""

import contextlib
import dataclasses
import hashlib
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from keras_transformer.core.training.model_directory import FORMAT_VERSION
from keras_transformer.core.training.run_config import METRICS
from keras_transformer.support.errors import InputError, reason, require, with_file_name
from keras_transformer.support.fields import Amount, Count, from_json, one_of, to_json
from keras_transformer.support.files.json_files import read_json, write_json
from keras_transformer.support.files.paths import remove_folder, to_path

_CHOSEN = "checkpoint.json"  # in the model directory
_WRITING = "writing-"  # prefix of file names until a checkpoint is complete
_REMOVING = "removing-"  # prefix of a record whose checkpoint is being removed
_DAMAGED = "damaged-"  # prefix of files that a run could not resume from


class StepSums(NamedTuple):
    """Sums over the training steps since the last point on the curves.

    The values are floats in a RunState and in files. Within TensorFlow they are scalar tensors:
        float32 for a single step, float64 for sums. A step with non-finite gradients is skipped; it
        counts only in `skipped` and `skipped_in_row`.
    """

    smoothed_loss: float = 0.0  # label-smoothed, over target tokens without padding, in nats
    loss: float = 0.0  # the same without label smoothing, for perplexity
    target_tokens: float = 0.0  # without padding
    source_tokens: float = 0.0  # without padding
    target_positions: float = 0.0  # with padding
    source_positions: float = 0.0  # with padding
    gradient_norm: float = 0.0  # norm of the gradient of the mean loss over the global batch
    skipped: float = 0.0  # number of skipped steps
    skipped_in_row: float = 0.0  # not a sum: consecutive skipped steps, up to the last one


@dataclasses.dataclass(frozen=True)
class CheckpointInfo:
    """Which weights a model has."""

    checkpoint: str  # a name in the model directory, a path, or an average: "average:5"
    step: int | None = None  # of the checkpoint, or the last one in an average; None if unknown
    averaged: int | None = None  # the number of averaged checkpoints
    # Nats per token, of the last checkpoint in an average; None if not measured.
    validation_loss: float | None = None
    epochs: float | None = None  # passes over the training data up to `step`; None if unknown
    adapter_scale: float | None = None  # factor on an adapter's updates, if not 1

    def to_json(self) -> dict[str, Any]:
        """Returns the fields that are not None, as JSON values."""
        return to_json(self)


@dataclasses.dataclass(frozen=True)
class Progress:
    """The state of a resumed run besides its variables and its position in the data."""

    # Since the last point on the curves.
    sums: StepSums = dataclasses.field(default_factory=StepSums)
    summed_steps: Count = 0  # how many steps were summed
    summed_seconds: Amount = 0.0  # how long these steps took
    validations_since_best: Count = 0  # validations without a better best_metric
    tokens: Amount = 0.0  # target tokens that the run has trained on


@dataclasses.dataclass(frozen=True)
class CheckpointRecord:
    """A checkpoint's description besides its weights: the content of NAME.json, and the name."""

    name: str  # prefix of its files
    step: Count  # number of optimizer steps taken
    model: str  # fingerprint of the model's configuration
    seconds: Amount | None = None  # training time, over all starts of the run; None if unknown
    epochs: Amount | None = None  # passes over the training data, likewise; None if unknown
    progress: Progress | None = None  # None for a model not written by a training loop
    # The metrics of the preceding validation, such as {"loss": 2.1, "bleu": 31.2}; empty without
    # one, None for values that were not finite.
    validation: dict[str, float | None] = dataclasses.field(default_factory=dict)
    # The metric that selects the best checkpoint; None if no run has set it.
    best_metric: Annotated[str, one_of(*METRICS)] | None = None

    def info(self, checkpoint: str | None = None) -> CheckpointInfo:
        """Describes its weights, named `checkpoint` instead of its name if given."""
        loss = self.validation.get("loss")
        return CheckpointInfo(
            checkpoint or self.name, self.step, validation_loss=loss, epochs=self.epochs
        )


def average_name(averaged: int, step: int) -> str:
    """Returns the name of a checkpoint that averages the last ones."""
    return f"average-{averaged}-{checkpoint_name(step)}"


def checkpoint_name(step: int) -> str:
    """Returns the name of a run's checkpoint after `step` steps, and of its files."""
    return f"step-{step:08d}"


def checkpoint_directory(model_dir: str | Path) -> Path:
    """Returns the checkpoint folder in a model directory."""
    return to_path(model_dir) / "checkpoints"


def choose_checkpoint(model_dir: str | Path, checkpoint: str) -> None:
    """Stores which weights of a model directory to use: "latest", "best" or "average:K".

    After further training, "average:K" is the mean of the newer checkpoints.
    """
    write_json(to_path(model_dir) / _CHOSEN, {"checkpoint": checkpoint})


def chosen_checkpoint(model_dir: str | Path) -> str:
    """Returns which weights to use by default: "latest", if none were chosen.

    Raises:
        InputError: if the file is damaged.
    """
    file = to_path(model_dir) / _CHOSEN
    if not file.exists():
        return "latest"
    checkpoint = read_json(file, {"checkpoint": str})["checkpoint"]
    is_rule = checkpoint in ("latest", "best") or checkpoint.startswith("average:")
    require(is_rule, "checkpoint", "must be latest, best or average:K", repr(checkpoint), file)
    return checkpoint


def read_record(path: str | Path) -> CheckpointRecord:
    """Reads the record of the checkpoint whose files begin with `path`.

    Raises:
        InputError: if it is missing, damaged or of another version.
    """
    file = to_path(f"{path}.json")
    content = read_json(file)
    version = content.pop("format_version", None)
    rule = f"must be {FORMAT_VERSION}"
    require(version == FORMAT_VERSION, "format_version", rule, version, file)
    return from_json(CheckpointRecord, {**content, "name": to_path(path).name}, file)


def write_record(file: Path, record: CheckpointRecord) -> None:
    """Writes the record of a checkpoint; its name is that of the file."""
    content = to_json(record)
    del content["name"]
    write_json(file, {"format_version": FORMAT_VERSION, **content})


def read_records(model_dir: str | Path) -> list[CheckpointRecord]:
    """Reads the records of a model directory's checkpoints, oldest first.

    Averages of these checkpoints are not included.

    Raises:
        InputError: if one is damaged, of another version, or its step differs from its name's.
    """
    directory = checkpoint_directory(model_dir)
    records = []
    for file in list(directory.glob("step-*.json")):
        name = file.name.removesuffix(".json")
        try:
            record = read_record(directory / name)
            rule = "must match the step in its name"
            require(name == checkpoint_name(record.step), None, rule, record.step, file)
        except InputError as error:
            if not file.exists():  # the run just removed it
                continue
            advice = f"to continue without this checkpoint, move the files {name}.* elsewhere"
            raise error.replaced(received=f"{error.received}; {advice}") from None
        records.append(record)
    return sorted(records, key=lambda record: record.step)


def weights_digest(model_dir: str | Path, checkpoint: str) -> str:
    """Identifies the weights that `checkpoint` selects in a directory, without reading them.

    TensorFlow's index of a checkpoint has the checksums of its variables. A rule, such as "latest",
    depends on all checkpoints of the run.

    Args:
        model_dir: a local model directory.
        checkpoint: as for checkpoint_weights.read_checkpoint.
    """
    directory = checkpoint_directory(model_dir)
    named = [_files_of(directory, name) for name in checkpoint.split(",")]
    files = {file for part in named for file in part} if all(named) else directory.glob("step-*.*")
    digest = hashlib.sha256(checkpoint.encode())
    for file in sorted(files):
        with contextlib.suppress(FileNotFoundError):  # the run just removed it
            is_small = file.suffix in (".index", ".json")
            content = file.read_bytes() if is_small else str(file.stat().st_size).encode()
            digest.update(f"\n{file.name} {len(content)} ".encode() + content)
    return digest.hexdigest()


def _files_of(directory: Path, checkpoint: str) -> list[Path]:
    """Returns the files of the checkpoint with a name in the directory, or a path; [] if none."""
    name = f"{checkpoint.removesuffix('.index')}.index"
    index = directory / name if (directory / name).exists() else Path(name)
    if not index.exists():
        return []
    prefix = index.name.removesuffix("index")
    return [file for file in index.parent.iterdir() if file.name.startswith(prefix)]


def write_checkpoint(directory: Path, record: CheckpointRecord, trackables: dict[str, Any]) -> None:
    """Writes a checkpoint, which gets its name once all of it is on disk.

    Raises:
        OSError: if it cannot be written, with a file name. Nothing of it is left then.
    """
    import tensorflow as tf

    name = _WRITING + record.name
    try:
        tf.train.Checkpoint(**trackables).write(str(directory / name))
        write_record(directory / f"{name}.json", record)
        _rename_all(directory, name, record.name)
    except (OSError, tf.errors.OpError) as error:
        with contextlib.suppress(OSError):
            recover_checkpoints(directory, record.name)
        raise with_file_name(error, directory / record.name) from None


def remove_checkpoint(directory: Path, name: str) -> None:
    """Removes the files of a checkpoint."""
    (directory / f"{name}.json").replace(directory / f"{_REMOVING}{name}.json")
    _remove_marked(directory, name)


def put_aside(directory: Path, name: str) -> None:
    """Renames a damaged checkpoint so that nothing reads or removes it."""
    _rename_all(directory, name, _DAMAGED + name)


def recover_checkpoints(directory: Path, prefix: str) -> None:
    """Completes or removes what a killed process left behind of checkpoints with a prefix.

    If the record was written, the checkpoint was complete except for its name, and is renamed. The
    files of other unfinished checkpoints are removed.
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


def damage_of(error: BaseException) -> str:
    """Describes a checkpoint that TensorFlow could not read, for a message."""
    return f"damaged or missing files ({reason(error)})"


def _rename_all(directory: Path, name: str, new_name: str) -> None:
    """Renames the files of a checkpoint, its record last."""
    files = sorted(directory.glob(f"{name}.*"), key=lambda file: file.suffix == ".json")
    for file in files:
        file.replace(directory / (new_name + file.name.removeprefix(name)))


def _remove_marked(directory: Path, name: str) -> None:
    """Removes the files of a marked checkpoint, and then the mark."""
    if not (directory / f"{name}.json").exists():  # else it was rewritten
        for path in list(directory.glob(f"{name}.*")):
            path.unlink()
    (directory / f"{_REMOVING}{name}.json").unlink()
