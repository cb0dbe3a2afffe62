"""What a model directory holds about its model: config.json, and the vocabulary beside it.

config.json       configurations and the vocabulary's fingerprint, written before training
*vocabulary.*     the vocabulary, or those of both sides: the directory alone is enough to translate
checkpoints/      see training/checkpoints.py
tensorboard/      curves; training_log.jsonl has them as text
lock              held by the process that trains here; see files.py
"""

import dataclasses
from pathlib import Path
from typing import Annotated, Any

from keras_transformer.config import Task, TrainingConfig, TransformerConfig
from keras_transformer.errors import require
from keras_transformer.fields import Amount, Count, FileName, Size, from_json, one_of
from keras_transformer.files import read_json, to_path, write_file, write_json
from keras_transformer.training.loop_config import METRICS

FORMAT_VERSION = 1

# What is used of checkpoints/index.json, and of a run's state in it (run_state.py).
_PROGRESS = {"sums": list[float], "summed": Count, "sum_seconds": Amount, "since_best": Count}
_ENTRY = {
    **{"name": FileName, "step": Count, "seconds?": Amount, "progress?": _PROGRESS},
    **{f"validation_{metric}?": float for metric in METRICS},
}
_INDEX = {"checkpoints": list[_ENTRY], "best_metric?": Annotated[str, one_of(*METRICS)]}


@dataclasses.dataclass(frozen=True)
class ModelDescription:
    """What is needed to build the model again and to feed it."""

    preset: str
    model: TransformerConfig
    training: TrainingConfig
    vocabulary: FileName  # in the directory
    vocabulary_fingerprint: str  # sha256 of that file
    max_length: Size  # of a sentence in training, in ids with EOS
    source_vocabulary: FileName | None = None  # both of the source's own, if it is not shared
    source_vocabulary_fingerprint: str | None = None
    task: Task = "translation"
    task_options: dict[str, Any] = dataclasses.field(default_factory=dict)  # of parsing

    def flat(self) -> dict[str, Any]:
        """The fields in one level, with those of the two configurations."""
        fields = dataclasses.asdict(self)
        one_level = {name: value for name, value in fields.items() if not isinstance(value, dict)}
        return {**one_level, **fields["model"], **fields["training"]}


def create_or_check(
    model_dir: str | Path, description: ModelDescription, data_dir: str | Path
) -> None:
    """Makes a directory for this model and vocabulary. Raises InputError if it holds another."""
    model_dir = to_path(model_dir)
    if (model_dir / "config.json").exists():
        held, wanted = read_description(model_dir).flat(), description.flat()
        differences = [f"{k}: {held[k]}, not {wanted[k]}" for k in held if held[k] != wanted[k]]
        rule = "--model_dir must be new or hold the model asked for"
        found = f"{model_dir}, which has {'; '.join(differences)}"
        of_preset = held["preset"] != wanted["preset"]
        same = f"--preset={held['preset']}" if of_preset else "the data and settings it has"
        require(not differences, rule, f"{found}. Choose another directory, or {same}")
        return
    model_dir.mkdir(parents=True, exist_ok=True)
    for name in filter(None, (description.source_vocabulary, description.vocabulary)):
        write_file(model_dir / name, (to_path(data_dir) / name).read_bytes())
    content = {"format_version": FORMAT_VERSION, **dataclasses.asdict(description)}
    write_json(model_dir / "config.json", content)


def require_new(model_dir: Path) -> None:
    """Raises InputError where a new model directory would join what is there."""
    free = not model_dir.exists() or (model_dir.is_dir() and not any(model_dir.glob("*")))
    require(free, "--model_dir must not exist yet, or be empty", model_dir)


def described_in(path: str | Path) -> Path:
    """The directory whose config.json describes a model directory, checkpoint or .keras file."""
    path = to_path(path)
    if path.parent.name == "checkpoints":
        return path.parent.parent
    return path.parent if path.suffix == ".keras" else path


def read_description(model_dir: str | Path, flag: str = "--model_dir") -> ModelDescription:
    """Reads config.json. Raises InputError if there is none that this version can read."""
    path = to_path(model_dir) / "config.json"
    rule = f"{flag} must be a directory that bin/train.py made"
    require(path.exists(), rule, f"{model_dir}, which has no config.json")
    content = read_json(path)
    version = content.pop("format_version", None)
    require(version == FORMAT_VERSION, f"{path}: format_version must be {FORMAT_VERSION}", version)
    if isinstance(content.get("model"), dict):
        content["model"].pop("layout", None)  # a field of earlier versions
    return from_json(ModelDescription, content, path)


def read_index(model_dir: str | Path) -> dict[str, Any]:
    """Reads the list of checkpoints, or an empty one. Raises InputError where it is damaged."""
    path = to_path(model_dir) / "checkpoints" / "index.json"
    return read_json(path, _INDEX) if path.exists() else {"checkpoints": []}
