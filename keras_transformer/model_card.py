"""The facts about a trained model: a ModelCard, stored in exports as checked JSON.

Does not import TensorFlow, so that programs can reject a wrong directory quickly.
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
# Export formats that `keras_transformer.load` takes, and their weights files.
FORMATS = {"saved_model": "saved_model.pb", "ctranslate2": "model.bin"}
# Fields of ModelDescription that describe the data.
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
    # For parsing, or for several target languages (language_codes.py).
    task_options: dict[str, Any] = dataclasses.field(default_factory=dict)
    preset: str | None = None
    training: dict[str, Any] | None = None  # the fields of TrainingConfig
    data: dict[str, Any] | None = None  # the DATA_FIELDS of ModelDescription
    evaluation: dict[str, Any] | None = None  # results on the test split

    @property
    def max_length(self) -> int | None:
        """The longest training sentence, in ids with EOS."""
        return None if self.data is None else self.data.get("max_length")


@dataclasses.dataclass(frozen=True)
class ModelCard:
    """The facts about a trained model.

    In JSON (`to_json`), the fields of `origin`, `checkpoint` and `decoding` are at the top level.
    """

    config: TransformerConfig
    decoding: DecodingConfig  # how it translates
    vocabulary_fingerprint: str  # SHA-256 of the target vocabulary
    parameters: Size
    origin: ModelOrigin = ModelOrigin()
    checkpoint: CheckpointInfo | None = None  # which weights it has; None if unknown
    ensemble: tuple[CheckpointInfo, ...] = ()  # each model's checkpoint, if there are several
    source_vocabulary_fingerprint: str | None = None  # if the source has its own vocabulary
    weights: Storage = "float32"  # how the weights are stored
    date: str | None = None  # date of the export, YYYY-MM-DD
    tensorflow: str | None = None  # the version that wrote the export
    ctranslate2: str | None = None  # the version that wrote the export
    onnx: str | None = None  # the version that wrote the export
    max_positions: Size | None = None  # rows in CTranslate2's position table, if any

    @property
    def format(self) -> str:
        """The export's format, as named by programs."""
        versions = {"ctranslate2": self.ctranslate2, "onnx": self.onnx}
        return next((name for name in versions if versions[name]), "saved_model")

    @property
    def contains_search(self) -> bool:
        """Whether the export contains its search, so that the search options are fixed."""
        return self.format == "saved_model"

    def to_json(self) -> dict[str, Any]:
        """Returns the card as one JSON object."""
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
    """Makes a ModelCard from the output of ModelCard.to_json; `place` is the file, for errors.

    Raises:
        InputError: if a field is missing or invalid, or the configuration is not the one that the
            card was written with.
    """
    nested = {"origin": ModelOrigin, "checkpoint": CheckpointInfo, "decoding": DecodingConfig}
    names = [field.name for field in dataclasses.fields(ModelCard)]
    values = {name: content[name] for name in names if name in content and name not in nested}
    for name, kind in nested.items():
        inner_names = [field.name for field in dataclasses.fields(kind)]
        inner = {key: content[key] for key in inner_names if key in content}
        if name == "checkpoint" and not inner:
            continue
        from_json(kind, inner, place)  # so that errors use the field names of the file
        values[name] = inner
    card = from_json(ModelCard, values, place)
    fingerprint = from_json({"config_fingerprint": str}, content, place)["config_fingerprint"]
    rule = "must match config_fingerprint, that of the exported weights"
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
        argument: the caller's name for it, for errors.
        formats: the FORMATS that the caller can use.

    Returns:
        The card. All of the export's files exist and have the right sizes.

    Raises:
        InputError: if it is not an export, has another version or format, or is incomplete.
    """
    require_name(export_dir, argument)
    folder = to_path(export_dir)
    put_back(folder)
    rule = "must be a directory written by an export"
    is_model_dir = (folder / "checkpoints").is_dir()
    what = "a model directory" if is_model_dir else f"which has no {CARD}"
    require((folder / CARD).exists(), argument, rule, f"{str(folder)!r}, {what}")
    content = read_json(folder / CARD)
    version = content.get("format_version")
    rule = f"must have format_version {FORMAT_VERSION}; export the model again"
    require(version == FORMAT_VERSION, argument, rule, f"{str(folder)!r}, of {version}")
    expected_sizes = from_json({"files": dict[str, Count]}, content, folder / CARD)["files"]
    card = card_from_json(content, folder / CARD)
    rule = f"must have format {' or '.join(formats)}"
    is_known = card.format in formats and FORMATS[card.format] in expected_sizes
    require(is_known, argument, rule, f"{str(folder)!r}, of format {card.format}")
    sizes = file_sizes(folder)
    for name, size in expected_sizes.items():
        found = f"has {sizes[name]} of {size} bytes" if name in sizes else "is missing"
        rule = "must be complete"
        require(sizes.get(name) == size, argument, rule, f"{str(folder)!r}, where {name} {found}")
    return card


def exported_vocabularies(export_dir: str | os.PathLike, card: ModelCard) -> VocabularyPair:
    """Reads the vocabularies of an export.

    Raises:
        InputError: if they are missing, damaged, or do not match its card.
    """
    file = to_path(export_dir) / CARD
    is_beside_card = card.format == "saved_model"
    vocabularies = VocabularyPair.load(file.parent if is_beside_card else export_dir)
    fingerprints = {
        "vocabulary_fingerprint": card.vocabulary_fingerprint,
        "source_vocabulary_fingerprint": card.source_vocabulary_fingerprint,
    }
    rule = "must match the vocabulary next to it"
    require(vocabularies.fingerprints == fingerprints, None, rule, "another", file)
    return vocabularies


def file_sizes(folder: Path) -> dict[str, int]:
    """Returns the sizes in bytes of an export's files, by their paths in it."""
    files = [*folder.glob("*"), *folder.glob("*/*")]
    return {
        path.relative_to(folder).as_posix(): path.stat().st_size
        for path in sorted(files)
        if path.is_file()
    }


def require_unset(options: dict[str, Any], names: Sequence[str] = ()) -> None:
    """Rejects options that an export has fixed.

    Args:
        options: the caller's options by name; None for one that was not given.
        names: the options that may still be given.

    Raises:
        InputError: for the first fixed option that was given.
    """
    for name, value in options.items():
        rule = "must be given when exporting; it is fixed in an export"
        require(value is None or name in names, name, rule, value)
