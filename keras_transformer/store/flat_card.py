"""Cards of earlier exports, format version 4, whose JSON has all fields at the top level."""

import dataclasses
import os
from typing import Any

from keras_transformer.fields import from_json
from keras_transformer.search.config import DecodingConfig
from keras_transformer.training.checkpoint_files import CheckpointInfo

FLAT_VERSION = 4

# Fields of the description that have the same name in both versions, and those within "data".
_OF_DESCRIPTION = ("preset", "training", "task", "task_options")
_OF_DATA = ("vocabulary", "source_vocabulary", "max_length", "languages")
_FINGERPRINTS = ("vocabulary_fingerprint", "source_vocabulary_fingerprint")
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


def nested_card(content: dict[str, Any], place: str | os.PathLike) -> dict[str, Any]:
    """Returns the content of such a card as `card_from_json` reads it.

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
        **_selected(content, _OF_DESCRIPTION),
        **_selected(content, _FINGERPRINTS),
        **_selected(data, _OF_DATA),
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
