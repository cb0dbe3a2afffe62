"""What a model directory holds about its model: config.json, and the vocabulary beside it.

config.json       configurations and the vocabulary's fingerprint, written before training
*vocabulary.*     the vocabulary, or those of both sides: the directory alone is enough to translate
checkpoints/      see checkpoints.py and checkpoint_index.py
tensorboard/      curves; training_log.jsonl has them as text
lock              held by the process that trains here; see keras_transformer/files.py
"""

import dataclasses
from pathlib import Path
from typing import Any

from keras_transformer.config import Task, TrainingConfig, TransformerConfig
from keras_transformer.errors import require
from keras_transformer.fields import FileName, Size, from_json
from keras_transformer.files import read_json, to_path, write_file, write_json

FORMAT_VERSION = 3  # 1 had another index of checkpoints; 2 no languages


@dataclasses.dataclass(frozen=True)
class ModelDescription:
    """What is needed to build a model again, and to turn text into its inputs."""

    preset: str  # the name of the preset, or "imported"
    model: TransformerConfig
    training: TrainingConfig
    vocabulary: FileName  # in the directory
    vocabulary_fingerprint: str  # sha256 of that file
    max_length: Size  # of a sentence in training, in ids with EOS
    # The vocabulary of the source, if it is not the same one, and its fingerprint.
    source_vocabulary: FileName | None = None
    source_vocabulary_fingerprint: str | None = None
    task: Task = "translation"
    task_options: dict[str, Any] = dataclasses.field(default_factory=dict)  # see Linearisation
    languages: list[str] | None = None  # of source and target, as the data set calls them

    def flat(self) -> dict[str, Any]:
        """All fields by name in one level, those of the two configurations among them."""
        fields = dataclasses.asdict(self)
        one_level = {name: value for name, value in fields.items() if not isinstance(value, dict)}
        return {**one_level, **fields["model"], **fields["training"]}


def create_or_check(
    model_dir: str | Path, description: ModelDescription, data_dir: str | Path
) -> None:
    """Makes a model directory, or checks that an existing one is for the same model.

    Args:
        model_dir: the directory, which need not exist.
        description: the model, its training and its vocabulary.
        data_dir: the folder that the vocabulary is copied from.

    Raises:
        InputError: where the directory holds another model.
    """
    model_dir = to_path(model_dir)
    if (model_dir / "config.json").exists():
        _check_same(model_dir, description)
        return
    model_dir.mkdir(parents=True, exist_ok=True)
    vocabularies = [description.vocabulary]
    if description.source_vocabulary is not None:
        vocabularies.append(description.source_vocabulary)
    for name in vocabularies:
        write_file(model_dir / name, (to_path(data_dir) / name).read_bytes())
    content = {"format_version": FORMAT_VERSION, **dataclasses.asdict(description)}
    write_json(model_dir / "config.json", content)


def _check_same(model_dir: Path, description: ModelDescription) -> None:
    existing = read_description(model_dir).flat()
    wanted = description.flat()
    differences = [
        f"{name}: {existing[name]}, not {wanted[name]}"
        for name in existing
        if existing[name] != wanted[name] and name != "languages"  # names are no part of the model
    ]
    if existing["preset"] != wanted["preset"]:
        advice = f"preset={existing['preset']}"
    else:
        advice = "the data and settings it has"
    rule = "model_dir must be new or hold the model asked for"
    received = f"{model_dir}, which has {'; '.join(differences)}"
    require(not differences, rule, f"{received}. Choose another directory, or {advice}")


def require_new(model_dir: Path) -> None:
    """Raises InputError where a new model directory would join what is there."""
    is_new = not model_dir.exists() or (model_dir.is_dir() and not any(model_dir.glob("*")))
    require(is_new, "model_dir must not exist yet, or be empty", model_dir)


def described_in(path: str | Path) -> Path:
    """The folder whose config.json describes a model directory, a checkpoint or a .keras file."""
    path = to_path(path)
    if path.parent.name == "checkpoints":
        return path.parent.parent
    return path.parent if path.suffix == ".keras" else path


def read_description(model_dir: str | Path, argument: str = "model_dir") -> ModelDescription:
    """Reads config.json.

    Args:
        model_dir: a directory that training has made.
        argument: what an error calls it.

    Raises:
        InputError: where there is none, or it is damaged or of another version.
    """
    path = to_path(model_dir) / "config.json"
    rule = f"{argument} must be a directory that training has made"
    require(path.exists(), rule, f"{model_dir}, which has no config.json")
    content = read_json(path)
    version = content.pop("format_version", None)
    require(version == FORMAT_VERSION, f"{path}: format_version must be {FORMAT_VERSION}", version)
    return from_json(ModelDescription, content, path)
