"""What an export says of itself: assets.extra/model_card.json, written last and checked first."""

import dataclasses
import datetime
import os
from pathlib import Path
from typing import Any

from keras_transformer.errors import InputError
from keras_transformer.evaluation.results import read_results
from keras_transformer.files import read_json, write_json
from keras_transformer.training.model_directory import read_description

CARD = Path("assets.extra") / "model_card.json"
FORMAT_VERSION = 2  # 1 kept no task_options


def describe(model_dir: str | os.PathLike, facts: dict[str, Any]) -> dict[str, Any]:
    """Collects what a model directory knows of its model.

    Args:
        model_dir: as bin/train.py made it.
        facts: of the checkpoint: {"checkpoint", "step", ...}.

    Returns:
        {"task", "task_options", "preset", "training", "data", "evaluation"}. The last is what
        bin/evaluate.py found on the test split, BLEU and its signature among it; None where that
        has not been run, or was of another checkpoint.

    Raises:
        InputError: for a directory that cannot be read.
    """
    description = read_description(model_dir)
    found = read_results(model_dir, "test")
    same = found is not None and all(
        found.get(name) == facts.get(name) for name in ("checkpoint", "step")
    )
    return {
        "task": description.task,
        "task_options": description.task_options,
        "preset": description.preset,
        "training": dataclasses.asdict(description.training),
        "data": {
            "vocabulary": description.vocabulary,
            "vocabulary_fingerprint": description.vocabulary_fingerprint,
            "max_length": description.max_length,
        },
        "evaluation": found if same else None,
    }


def check_date(date: str) -> None:
    """Rejects what is no date, or not written as one.

    Raises:
        InputError: in these cases.
    """
    try:
        written = datetime.date.fromisoformat(date).isoformat()
    except ValueError:
        written = None
    if written != date:
        raise InputError(f"--date must be a date as YYYY-MM-DD. Received: {date!r}")


def write_card(folder: Path, card: dict[str, Any]) -> None:
    """Adds the card to a complete export, with the sizes of all its files."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    sizes = {path.relative_to(folder).as_posix(): path.stat().st_size for path in files}
    card = {"format_version": FORMAT_VERSION, **card, "files": sizes}
    (folder / CARD).parent.mkdir(exist_ok=True)
    write_json(folder / CARD, card)


def read_card(export_dir: str | os.PathLike) -> dict[str, Any]:
    """Reads the card of an export, and checks that the export is one of this version, and whole.

    Raises:
        InputError: where it is not.
    """
    folder = Path(export_dir)
    try:
        card = read_json(folder / CARD)
    except (FileNotFoundError, InputError) as error:
        rule = "--saved_model must be a directory that bin/export.py made"
        raise InputError(f"{rule}. Received: {str(folder)!r}: {error}") from None
    version = card.get("format_version")
    if version != FORMAT_VERSION:
        rule = (
            f"--saved_model must be of format_version {FORMAT_VERSION}, as bin/export.py makes it"
        )
        rule += " anew from the model directory"
        raise InputError(f"{rule}. Received: {str(folder)!r}, of {version}")
    for name, size in card.get("files", {}).items():
        path = folder / name
        found = path.stat().st_size if path.is_file() else None
        if found != size:
            rule = "--saved_model must be whole"
            what = "is missing" if found is None else f"has {found} of {size} bytes"
            raise InputError(f"{rule}. Received: {str(folder)!r}, where {name} {what}")
    return card
