"""The facts about a trained model: one record, which an export keeps as checked JSON.

Does not import TensorFlow, so that programs can reject a wrong directory quickly.
"""

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from keras_transformer.core.config import TransformerConfig
from keras_transformer.core.search.config import DecodingConfig
from keras_transformer.core.training.checkpoint_files import CheckpointInfo
from keras_transformer.core.training.hardly_trained import hardly_trained
from keras_transformer.core.training.model_directory import ModelDescription
from keras_transformer.support.errors import require
from keras_transformer.support.fields import Count, Size, from_json, one_of
from keras_transformer.support.files.json_files import read_json
from keras_transformer.support.files.paths import require_name, to_path
from keras_transformer.support.files.replacing import put_back
from keras_transformer.use.store.calibration import Calibration
from keras_transformer.use.store.decoding import with_options
from keras_transformer.use.store.languages import ModelLanguages, model_languages

CARD = Path("assets.extra") / "model_card.json"
FORMAT_VERSION = 5

# Fields of the description in the flat form, and those of them within "data".
_DESCRIPTION_FIELDS = ("task", "task_options", "preset", "training")
_FINGERPRINTS = ("vocabulary_fingerprint", "source_vocabulary_fingerprint")
_DATA_FIELDS = (
    "vocabulary",
    "vocabulary_fingerprint",
    "source_vocabulary",
    "source_vocabulary_fingerprint",
    "max_length",
    "languages",
)

Storage = Annotated[str, one_of("float32", "bfloat16", "int8")]


@dataclasses.dataclass(frozen=True)
class ModelCard:
    """The facts about a trained model."""

    # Its configuration, training, vocabularies, task and languages. For an ensemble, those of the
    # first model, with the configuration of the one that has the fewest positions.
    description: ModelDescription
    decoding: DecodingConfig  # how it translates
    parameters: Size
    checkpoint: CheckpointInfo | None = None  # which weights it has; None if unknown
    ensemble: tuple[CheckpointInfo, ...] = ()  # each model's checkpoint, if there are several
    evaluation: dict[str, Any] | None = None  # results of these weights on the test split
    calibration: Calibration | None = None  # of the confidence in its translations
    weights: Storage = "float32"  # how the weights are stored
    date: str | None = None  # date of the export, YYYY-MM-DD
    tensorflow: str | None = None  # the version that wrote the export
    ctranslate2: str | None = None  # the version that wrote the export
    onnx: str | None = None  # the version that wrote the export
    max_positions: Size | None = None  # rows in CTranslate2's position table, if any

    @property
    def config(self) -> TransformerConfig:
        """The model's configuration."""
        return self.description.model

    @property
    def languages(self) -> ModelLanguages | None:
        """Its languages; see languages.model_languages."""
        evaluated = (self.evaluation or {}).get("languages")
        return model_languages(self.description, evaluated)

    @property
    def format(self) -> str:
        """The export's format, as named by programs."""
        versions = {"ctranslate2": self.ctranslate2, "onnx": self.onnx}
        return next((name for name in versions if versions[name]), "saved_model")

    @property
    def which_weights(self) -> dict[str, Any]:
        """Which weights the model or the ensemble has, as JSON: {"checkpoint", "step", ...}."""
        weights = {} if self.checkpoint is None else self.checkpoint.to_json()
        if self.ensemble:
            weights["ensemble"] = [info.to_json() for info in self.ensemble]
        return weights

    @property
    def hardly_trained(self) -> str | None:
        """One line that says why it is hardly trained; see training/hardly_trained.py."""
        config, training = self.config, self.description.training
        infos = self.ensemble or (() if self.checkpoint is None else (self.checkpoint,))
        lines = [hardly_trained(info, config.vocab_size, training) for info in infos]
        return next((line for line in lines if line is not None), None)

    def with_options(self, options: Mapping[str, Any]) -> "ModelCard":
        """Returns the card with search options replaced; those that are None are ignored.

        Sources are truncated to the positions that the model has.

        Raises:
            InputError: for an invalid option value.
        """
        decoding = with_options(self.decoding, options)
        limit = decoding.limits(self.config).source
        return dataclasses.replace(
            self, decoding=dataclasses.replace(decoding, max_source_length=limit)
        )

    def to_json(self) -> dict[str, Any]:
        """Returns the card as JSON, as `card_from_json` reads it."""
        return {"config_fingerprint": self.config.fingerprint, **dataclasses.asdict(self)}

    def flat(self) -> dict[str, Any]:
        """Returns the card as one JSON object, as servers and web pages show it."""
        fields = {**dataclasses.asdict(self), "hardly_trained": self.hardly_trained}
        description, decoding = fields.pop("description"), fields.pop("decoding")
        checkpoint = fields.pop("checkpoint") or {}
        has_data = description["vocabulary"] is not None
        return {
            **{name: value for name, value in checkpoint.items() if value is not None},
            **_selected(description, _DESCRIPTION_FIELDS),
            "data": _selected(description, _DATA_FIELDS) if has_data else None,
            "evaluation": fields.pop("evaluation"),
            **decoding,
            "config": description["model"],
            "config_fingerprint": self.config.fingerprint,
            **_selected(description, _FINGERPRINTS),
            **{name: value for name, value in fields.items() if value not in (None, ())},
        }


def _selected(content: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: content[name] for name in names if name in content}


def card_from_json(content: dict[str, Any], place: str | os.PathLike) -> ModelCard:
    """Makes a ModelCard from the output of ModelCard.to_json; `place` is the file, for errors.

    Raises:
        InputError: if a field is missing or invalid, or the configuration is not the one that the
            card was written with.
    """
    from_json({"config_fingerprint": str}, content, place)
    fingerprint = content["config_fingerprint"]
    fields = {name: value for name, value in content.items() if name != "config_fingerprint"}
    card = from_json(ModelCard, fields, place)
    rule = "must match config_fingerprint, that of the exported weights"
    is_same = card.config.fingerprint == fingerprint
    require(is_same, "description.model", rule, "another configuration", place)
    return card


def read_card(export_dir: str | os.PathLike, argument: str = "export_dir") -> ModelCard:
    """Reads the card of an export.

    Args:
        export_dir: the folder of the export.
        argument: the caller's name for it, for errors.

    Returns:
        The card. All of the export's files exist and have the right sizes.

    Raises:
        InputError: if it is not an export, has another version, or is incomplete.
    """
    require_name(export_dir, argument)
    folder = to_path(export_dir)
    put_back(folder)
    rule = "must be a directory written by an export"
    received = f"{str(folder)!r}, which has no {CARD}"
    require((folder / CARD).exists(), argument, rule, received)
    content = read_json(folder / CARD)
    version = content.pop("format_version", None)
    rule = f"must have format_version {FORMAT_VERSION}; export the model again"
    require(version == FORMAT_VERSION, argument, rule, f"{str(folder)!r}, of {version}")
    expected_sizes = from_json({"files": dict[str, Count]}, content, folder / CARD)["files"]
    del content["files"]
    card = card_from_json(content, folder / CARD)
    sizes = file_sizes(folder)
    for name, size in expected_sizes.items():
        fault = f"has {sizes[name]} of {size} bytes" if name in sizes else "is missing"
        rule = "must be complete"
        require(sizes.get(name) == size, argument, rule, f"{str(folder)!r}, where {name} {fault}")
    return card


def file_sizes(folder: Path) -> dict[str, int]:
    """Returns the sizes in bytes of an export's files, by their paths in it."""
    files = [*folder.glob("*"), *folder.glob("*/*")]
    return {
        path.relative_to(folder).as_posix(): path.stat().st_size
        for path in sorted(files)
        if path.is_file()
    }
