"""What a model directory keeps of evaluations and of training, read without TensorFlow.

evaluation-SPLIT.json   the last result of bin/evaluate.py for that split
"""

import math
from pathlib import Path
from typing import Any

from absl import logging

from keras_transformer.files import read_json, to_path, write_json
from keras_transformer.training.model_directory import read_index

# What tables use of a split's results.
RESULTS = {"perplexity?": float, "bleu?": float, "f1?": float, "languages?": list[str]}


def write_results(model_dir: str | Path, split: str, results: dict[str, Any]) -> None:
    """Writes the results of a split; if the file cannot be written, there is a warning only."""
    path = to_path(model_dir) / f"evaluation-{split}.json"
    try:
        write_json(path, results)
    except OSError as error:
        logging.warning("%s could not be written: %s", path, error.strerror)


def read_results(model_dir: str | Path, split: str) -> dict[str, Any] | None:
    """The last results of a split, or None; InputError if the file is broken."""
    path = to_path(model_dir) / f"evaluation-{split}.json"
    return read_json(path, RESULTS) if path.exists() else None


def read_training(model_dir: str | Path) -> dict[str, Any]:
    """The state of training at the last checkpoint; InputError if the list of them is broken.

    Returns:
        {"steps", "minutes", "perplexity" of the validation split}, each None if unknown.
    """
    last = (read_index(model_dir)["checkpoints"] or [{}])[-1]
    seconds, loss = last.get("seconds"), last.get("validation_loss")
    return {
        "steps": last.get("step"),
        "minutes": None if seconds is None else round(seconds / 60, 2),
        "perplexity": None if loss is None else round(math.exp(min(loss, 700)), 4),
    }
