"""The facts of a trained model: a ModelCard, which an export keeps as checked JSON.

Imports no TensorFlow, so that programs can refuse a wrong directory before they wait for it.
"""

import dataclasses
import os
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Annotated, Any

from keras_transformer.config import Task, TransformerConfig
from keras_transformer.errors import require
from keras_transformer.fields import Count, Size, from_json, one_of
from keras_transformer.files.json_files import read_json
from keras_transformer.files.paths import require_name, to_path
from keras_transformer.files.replacing import put_back
from keras_transformer.search.config import DecodingConfig
from keras_transformer.training.checkpoint_files import CheckpointInfo
from keras_transformer.vocabulary.pair import VocabularyPair

CARD = Path("assets.extra") / "model_card.json"
FORMAT_VERSION = 4
# The formats of exports that `keras_transformer.load` takes, and the file with the weights.
FORMATS = {"saved_model": "saved_model.pb", "ctranslate2": "model.bin"}
# What the data says about a model: fields of ModelDescription.
DATA_FIELDS = (
    "vocabulary",
    "vocabulary_fingerprint",
    "source_vocabulary",
    "source_vocabulary_fingerprint",
    "max_length",
    "languages",
)

Storage = Annotated[str, one_of("float32", "bfloat16", "int8")]


@dataclasses.dataclass(frozen=True)
class ModelOrigin:
    """The task, training and data of a model, as far as they are known."""

    task: Task = "translation"
    # Of parsing, or of several target languages (language_codes.py).
    task_options: dict[str, Any] = dataclasses.field(default_factory=dict)
    preset: str | None = None
    training: dict[str, Any] | None = None  # the fields of TrainingConfig
    data: dict[str, Any] | None = None  # the DATA_FIELDS of ModelDescription
    evaluation: dict[str, Any] | None = None  # what evaluation found on the test split

    @property
    def max_length(self) -> int | None:
        """The longest sentence of training, in ids with EOS."""
        return None if self.data is None else self.data.get("max_length")


@dataclasses.dataclass(frozen=True)
class ModelCard:
    """The facts of a trained model.

    In JSON (`to_json`), the fields of `origin`, `checkpoint` and `decoding` are beside the others.
    """

    config: TransformerConfig
    decoding: DecodingConfig  # how it translates
    vocabulary_fingerprint: str  # of the target's vocabulary, SHA-256
    parameters: Size
    origin: ModelOrigin = ModelOrigin()
    checkpoint: CheckpointInfo | None = None  # which weights it has; None if that is not known
    ensemble: tuple[CheckpointInfo, ...] = ()  # those of each model, where there are several
    source_vocabulary_fingerprint: str | None = None  # if the source has its own vocabulary
    weights: Storage = "float32"  # how the weights are stored
    date: str | None = None  # of the export, YYYY-MM-DD
    tensorflow: str | None = None  # the version that made the export
    ctranslate2: str | None = None  # the version that made the export
    onnx: str | None = None  # the version that made the export
    max_positions: Size | None = None  # rows of CTranslate2's table of positions

    @property
    def format(self) -> str:
        """The format of the export, by the name that programs give it."""
        versions = {"ctranslate2": self.ctranslate2, "onnx": self.onnx}
        return next((name for name in versions if versions[name]), "saved_model")

    @property
    def contains_search(self) -> bool:
        """Whether the export contains its search, so that the options of it are fixed."""
        return self.format == "saved_model"

    def to_json(self) -> dict[str, Any]:
        """All of it as one JSON object, which from_json reads."""
        values = dataclasses.asdict(self)
        origin, decoding = values.pop("origin"), values.pop("decoding")
        checkpoint = values.pop("checkpoint") or {}
        known = {name: value for name, value in checkpoint.items() if value is not None}
        optional = {name: value for name, value in values.items() if value not in (None, ())}
        always = {
            "config_fingerprint": self.config.fingerprint,
            "source_vocabulary_fingerprint": None,
        }
        return {**known, **origin, **decoding, **always, **optional}


def card_from_json(content: dict[str, Any], place: str | os.PathLike) -> ModelCard:
    """Makes a ModelCard of what ModelCard.to_json gave; `place` is the file, for errors.

    Raises:
        InputError: if a field is missing, or has a value that it cannot have, or the configuration
            is not the one that the card was written with.
    """
    nested = {"origin": ModelOrigin, "checkpoint": CheckpointInfo, "decoding": DecodingConfig}
    names = [field.name for field in dataclasses.fields(ModelCard)]
    values = {name: content[name] for name in names if name in content and name not in nested}
    for name, kind in nested.items():
        inner_names = [field.name for field in dataclasses.fields(kind)]
        inner = {key: content[key] for key in inner_names if key in content}
        if name == "checkpoint" and not inner:
            continue
        from_json(kind, inner, place)  # so that an error names a field as it is called in the file
        values[name] = inner
    card = from_json(ModelCard, values, place)
    fingerprint = from_json({"config_fingerprint": str}, content, place)["config_fingerprint"]
    rule = "must be that of the exported weights, whose config_fingerprint it has"
    require(card.config.fingerprint == fingerprint, "config", rule, "another config", place)
    return card


def read_card(
    export_dir: str | os.PathLike,
    argument: str = "export_dir",
    formats: Collection[str] = ("saved_model",),
) -> ModelCard:
    """Reads the card of an export.

    Args:
        export_dir: the folder of the export.
        argument: what the caller calls it, for errors.
        formats: those of FORMATS that the caller can use.

    Returns:
        What the export says of its model. All of its files are there, with their sizes.

    Raises:
        InputError: if it is no export, or of another version or format, or not whole.
    """
    require_name(export_dir, argument)
    folder = to_path(export_dir)
    put_back(folder)
    rule = "must be a directory that an export has made"
    is_model_dir = (folder / "checkpoints").is_dir()
    what = "a model directory" if is_model_dir else f"which has no {CARD}"
    require((folder / CARD).exists(), argument, rule, f"{str(folder)!r}, {what}")
    content = read_json(folder / CARD)
    version = content.get("format_version")
    rule = f"must be of format_version {FORMAT_VERSION}; export the model again"
    require(version == FORMAT_VERSION, argument, rule, f"{str(folder)!r}, of {version}")
    expected_sizes = from_json({"files": dict[str, Count]}, content, folder / CARD)["files"]
    card = card_from_json(content, folder / CARD)
    rule = f"must be of format {' or '.join(formats)}"
    is_known = card.format in formats and FORMATS[card.format] in expected_sizes
    require(is_known, argument, rule, f"{str(folder)!r}, of format {card.format}")
    sizes = file_sizes(folder)
    for name, size in expected_sizes.items():
        found = f"has {sizes[name]} of {size} bytes" if name in sizes else "is missing"
        rule = "must be whole"
        require(sizes.get(name) == size, argument, rule, f"{str(folder)!r}, where {name} {found}")
    return card


def exported_vocabularies(export_dir: str | os.PathLike, card: ModelCard) -> VocabularyPair:
    """Reads the vocabularies of an export.

    Raises:
        InputError: if they are missing, damaged, or others than its card says.
    """
    file = to_path(export_dir) / CARD
    is_beside_card = card.format == "saved_model"
    vocabularies = VocabularyPair.load(file.parent if is_beside_card else export_dir)
    fingerprints = {
        "vocabulary_fingerprint": card.vocabulary_fingerprint,
        "source_vocabulary_fingerprint": card.source_vocabulary_fingerprint,
    }
    rule = "must be of the vocabulary beside it"
    require(vocabularies.fingerprints == fingerprints, None, rule, "another", file)
    return vocabularies


def file_sizes(folder: Path) -> dict[str, int]:
    """The sizes in bytes of the files of an export, by their paths in it."""
    files = [*folder.glob("*"), *folder.glob("*/*")]
    return {
        path.relative_to(folder).as_posix(): path.stat().st_size
        for path in sorted(files)
        if path.is_file()
    }


def require_unset(options: dict[str, Any], names: Sequence[str] = ()) -> None:
    """Refuses options that an export has fixed.

    Args:
        options: those that the caller gave, by name; None for one that was not given.
        names: of those that may be given all the same.

    Raises:
        InputError: for the first one that was given.
    """
    for name, value in options.items():
        rule = "must be given when the model is exported; in an export it is fixed"
        require(value is None or name in names, name, rule, value)
