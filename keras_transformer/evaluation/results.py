"""What evaluations found, kept in the model directory, and where its training stands.

evaluation-SPLIT.json   what bin/evaluate.py printed last for that split
"""

import math
from pathlib import Path
from typing import Any

from absl import logging

from keras_transformer.files import read_json, write_json


def write_results(model_dir: str | Path, split: str, results: dict[str, Any]) -> None:
    """Keeps the results of a split, in place of older ones.

    Where that cannot be, a warning says so: the results are worth more than the file.
    """
    path = Path(model_dir) / f"evaluation-{split}.json"
    try:
        write_json(path, results)
    except OSError as error:
        logging.warning("%s could not be written: %s", path, error.strerror)


def read_results(model_dir: str | Path, split: str) -> dict[str, Any] | None:
    """The results kept of a split; None where it has not been evaluated.

    Raises:
        InputError: where the file is broken.
    """
    return _read(Path(model_dir) / f"evaluation-{split}.json")


def read_training(model_dir: str | Path) -> dict[str, Any]:
    """Where training stands at the last checkpoint, without reading its weights.

    Returns:
        {"steps", "minutes", "perplexity" of the validation split}, each None where unknown.

    Raises:
        InputError: where the list of checkpoints is broken.
    """
    index = _read(Path(model_dir) / "checkpoints" / "index.json") or {}
    last = (index.get("checkpoints") or [{}])[-1]
    seconds, loss = last.get("seconds"), last.get("validation_loss")
    return {
        "steps": last.get("step"),
        "minutes": None if seconds is None else round(seconds / 60, 2),
        "perplexity": None if loss is None else round(math.exp(loss), 4),
    }


def _read(path: Path) -> dict[str, Any] | None:
    try:
        return read_json(path)
    except FileNotFoundError:
        return None
