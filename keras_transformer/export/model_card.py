"""An export's directory, with a card that says what it holds: written last and checked first."""

import dataclasses
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from keras_transformer.config import Task, TransformerConfig
from keras_transformer.decoding.config import DecodingConfig
from keras_transformer.errors import InputError, reason, require
from keras_transformer.evaluation.results import read_results
from keras_transformer.fields import Count, from_json
from keras_transformer.files import read_json, replacing_folder, to_path, write_json
from keras_transformer.training.model_directory import read_description

CARD = Path("assets.extra") / "model_card.json"
FORMAT_VERSION = 2  # 1 kept no task_options
VOCABULARY = ("vocabulary", "vocabulary_fingerprint")
OF_DATA = (*VOCABULARY, *(f"source_{name}" for name in VOCABULARY), "max_length")
# The fields of DecodingConfig; exports of earlier versions lack the last three.
DECODING = dict.fromkeys(field.name for field in dataclasses.fields(DecodingConfig))
DECODING |= {"min_length": 0, "no_repeat_ngram_size": 0, "forbidden_phrases": ()}
# What is used of a card; the second, of a SavedModel's.
_FILES = {"files": dict[str, Count]}
_CARD = {
    **{"task": Task, "task_options": dict[str, Any], "config": TransformerConfig},
    **{"vocabulary_fingerprint": str, "source_vocabulary_fingerprint?": str},
}


def describe(model_dir: str | os.PathLike, facts: dict[str, Any]) -> dict[str, Any]:
    """Collects what a model directory knows of its model.

    Returns:
        {"task", "task_options", "preset", "training", "data", "evaluation"}. The last is what
        bin/evaluate.py found on the test split, or None if it has not been run on the checkpoint
        that `facts` name, {"checkpoint", "step", ...}.

    Raises:
        InputError: for a directory that cannot be read.
    """
    description = read_description(model_dir)
    found = read_results(model_dir, "test")
    if any((found or {}).get(name) != facts.get(name) for name in ("checkpoint", "step")):
        found = None
    return {
        "task": description.task,
        "task_options": description.task_options,
        "preset": description.preset,
        "training": dataclasses.asdict(description.training),
        "data": {name: getattr(description, name) for name in OF_DATA},
        "evaluation": found,
    }


def check_export_dir(export_dir: str | os.PathLike, overwrite: bool) -> None:
    """Raises InputError where writing would replace anything but an export, or without asking."""
    export_dir = to_path(export_dir)
    if export_dir.exists() and not (export_dir.is_dir() and not any(export_dir.glob("*"))):
        rule = "--export_dir must not exist yet, or be empty, without --overwrite"
        require(overwrite, rule, repr(str(export_dir)))
        rule = "--overwrite replaces nothing but an earlier export"
        require((export_dir / CARD).is_file(), rule, f"--export_dir={str(export_dir)!r}")


def write_export(
    write: Callable[[Path], None],
    export_dir: str | os.PathLike,
    card: dict[str, Any],
    overwrite: bool = False,
) -> int:
    """Makes an export, whole or not at all: what `write` puts into a new folder, and the card.

    `export_dir` must not exist, or be empty; with `overwrite`, an earlier export is replaced.
    Returns the size in bytes. Anything else, or a failure to write, is an InputError.
    """
    import tensorflow as tf  # has been imported by all who export, but not by those who read cards

    export_dir = to_path(export_dir).resolve()
    check_export_dir(export_dir, overwrite)
    try:
        with replacing_folder(export_dir, CARD) as folder:
            (folder / CARD).parent.mkdir()
            write(folder)
            card = {"format_version": FORMAT_VERSION, **card, "files": _sizes(folder)}
            write_json(folder / CARD, card)
    except (OSError, tf.errors.OpError) as error:
        rule = "--export_dir must be writable"
        raise InputError(f"{rule}. Received: {export_dir}: {reason(error)}") from None
    return sum(_sizes(export_dir).values())


def _sizes(folder: Path) -> dict[str, int]:
    files = [path for each in ("*", "*/*") for path in sorted(folder.glob(each)) if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.stat().st_size for path in files}


def read_card(export_dir: str | os.PathLike, flag: str = "--saved_model") -> dict[str, Any]:
    """Reads the card of a SavedModel; InputError where that is of another version, or not whole."""
    folder = to_path(export_dir)
    try:
        card = read_json(folder / CARD)
    except InputError as error:
        rule = f"{flag} must be a directory that bin/export.py made"
        raise InputError(f"{rule}. Received: {str(folder)!r}: {error}") from None
    version = card.get("format_version")
    rule = f"{flag} must be of format_version {FORMAT_VERSION}, as bin/export.py makes it"
    rule += " anew from the model directory"
    require(version == FORMAT_VERSION, rule, f"{str(folder)!r}, of {version}")
    files, found = from_json(_FILES, card, folder / CARD)["files"], _sizes(folder)
    rule = f"{flag} must be of --format=saved_model"
    require("saved_model.pb" in files, rule, f"{str(folder)!r}, which holds no SavedModel")
    from_json(_CARD, card, folder / CARD)
    kept = {name: card.setdefault(name, value) for name, value in DECODING.items()}
    from_json(DecodingConfig, kept, folder / CARD)
    for name, size in files.items():
        what = f"has {found[name]} of {size} bytes" if name in found else "is missing"
        received = f"{str(folder)!r}, where {name} {what}"
        require(found.get(name) == size, f"{flag} must be whole", received)
    return card


def refuse_fixed(settings: dict[str, Any]) -> None:
    """Raises InputError for the first setting that is not None: an export keeps its own."""
    for name, value in settings.items():
        rule = f"--{name} is fixed in an export, and goes with --model_dir only"
        require(value is None, rule, value)
