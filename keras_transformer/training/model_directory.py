"""What a model directory holds about its model: config.json, and the vocabulary beside it.

config.json       configurations and the vocabulary's fingerprint, written before training
*vocabulary.*     the vocabulary, or those of both sides: the directory alone is enough to translate
checkpoints/      see training/checkpoints.py
tensorboard/      curves; training_log.jsonl has them as text
lock              held by the process that trains here; see files.py
"""

import dataclasses
import shutil
from pathlib import Path
from typing import Any

from keras_transformer.config import TrainingConfig, TransformerConfig
from keras_transformer.errors import InputError, require
from keras_transformer.files import from_json, read_json, write_json

FORMAT_VERSION = 1


@dataclasses.dataclass(frozen=True)
class ModelDescription:
    """What is needed to build the model again and to feed it."""

    preset: str
    model: TransformerConfig
    training: TrainingConfig
    vocabulary: str  # file name in the directory
    vocabulary_fingerprint: str  # sha256 of that file
    max_length: int  # of a sentence in training, in ids with EOS
    source_vocabulary: str | None = None  # both of the source's own, if it is not shared
    source_vocabulary_fingerprint: str | None = None
    task: str = "translation"  # or "parsing"
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
    model_dir = Path(model_dir)
    if (model_dir / "config.json").exists():
        held, wanted = read_description(model_dir).flat(), description.flat()
        differences = [f"{k}: {wanted[k]}, not {held[k]}" for k in held if held[k] != wanted[k]]
        rule = "--model_dir must be new or hold the model asked for"
        require(not differences, rule, f"{model_dir}, which has {'; '.join(differences)}")
        return
    model_dir.mkdir(parents=True, exist_ok=True)
    for name in filter(None, (description.source_vocabulary, description.vocabulary)):
        shutil.copyfile(Path(data_dir, name), model_dir / name)
    content = {"format_version": FORMAT_VERSION, **dataclasses.asdict(description)}
    write_json(model_dir / "config.json", content)


def read_description(model_dir: str | Path) -> ModelDescription:
    """Reads config.json. Raises InputError if there is none that this version can read."""
    path = Path(model_dir) / "config.json"
    try:
        content = read_json(path)
    except FileNotFoundError:
        rule = "--model_dir must be a directory that bin/train.py made"
        raise InputError(f"{rule}. Received: {model_dir}, which has no config.json") from None
    version = content.pop("format_version", None)
    require(version == FORMAT_VERSION, f"{path}: format_version must be {FORMAT_VERSION}", version)
    if isinstance(content.get("model"), dict):
        content["model"].pop("layout", None)  # a field of earlier versions
    return from_json(ModelDescription, content, path)
