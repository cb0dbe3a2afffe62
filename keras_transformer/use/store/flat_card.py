"""The flat form of a card: one JSON object with all fields at the top level.

Servers and web pages show it, and exports of format version 4 have it.
"""

import dataclasses
import os
from typing import TYPE_CHECKING, Any

from keras_transformer.core.search.config import DecodingConfig
from keras_transformer.core.training.checkpoint_files import CheckpointInfo
from keras_transformer.support.fields import from_json

if TYPE_CHECKING:  # it imports this module
    from keras_transformer.use.store.card import ModelCard

FLAT_VERSION = 4

# Fields of the description, and those of them within "data".
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
# Fields of the card that are the same in both forms.
_UNCHANGED = (
    "config_fingerprint",
    "parameters",
    "ensemble",
    "evaluation",
    "weights",
    "date",
    "tensorflow",
    "ctranslate2",
    "onnx",
    "max_positions",
)


def flat_card(card: "ModelCard") -> dict[str, Any]:
    """Returns a card in its flat form."""
    fields = dataclasses.asdict(card)
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
        "config_fingerprint": card.config.fingerprint,
        **_selected(description, _FINGERPRINTS),
        **{name: value for name, value in fields.items() if value not in (None, ())},
    }


def nested_card(content: dict[str, Any], place: str | os.PathLike) -> dict[str, Any]:
    """Returns the flat form of a card as `card_from_json` reads it.

    Args:
        content: the JSON object.
        place: the file, for errors.
    """
    known = {"config": dict[str, Any], "data?": dict[str, Any]}
    from_json(known, content, place)
    data = content.get("data") or {}
    description = {
        "model": content["config"],
        # Those that training always writes are unknown for a .keras file without its directory.
        **dict.fromkeys(("preset", "training", "vocabulary", "max_length")),
        **_selected(content, _DESCRIPTION_FIELDS),
        **_selected(data, _DATA_FIELDS),
        **_selected(content, _FINGERPRINTS),
    }
    checkpoint = _selected(content, _names(CheckpointInfo))
    return {
        "description": description,
        "decoding": _selected(content, _names(DecodingConfig)),
        "checkpoint": checkpoint or None,
        **_selected(content, _UNCHANGED),
    }


def _selected(content: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: content[name] for name in names if name in content}


def _names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind))
