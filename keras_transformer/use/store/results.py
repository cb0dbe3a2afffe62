"""Results of evaluation and training in a model directory, read without TensorFlow.

evaluation-SPLIT.json   the latest evaluation result on that split
decoding.json           the length penalty chosen for the model, if any
confidence.json         the calibration of its confidence, if any
"""

import dataclasses
import math
from pathlib import Path
from typing import Any

from absl import logging

from keras_transformer.core.training.checkpoint_files import CheckpointInfo, read_records
from keras_transformer.support.fields import from_json
from keras_transformer.support.files.json_files import read_json, write_json
from keras_transformer.support.files.paths import to_path
from keras_transformer.use.store.calibration import Calibration
from keras_transformer.use.store.decoding import ChosenDecoding

DECODING_FILE = "decoding.json"
CALIBRATION_FILE = "confidence.json"
# The results of a split that tables use.
RESULTS = {"perplexity?": float, "bleu?": float, "f1?": float, "languages?": list[str]}


def write_results(model_dir: str | Path, split: str, results: dict[str, Any]) -> None:
    """Writes a split's results. If the file cannot be written, only warns."""
    path = to_path(model_dir) / f"evaluation-{split}.json"
    try:
        write_json(path, results)
    except OSError as error:
        logging.warning("%s could not be written: %s", path, error.strerror)


def read_results(model_dir: str | Path, split: str) -> dict[str, Any] | None:
    """Reads a split's latest results.

    Returns:
        The results, or None if the split has not been evaluated.

    Raises:
        InputError: if the file is damaged.
    """
    path = to_path(model_dir) / f"evaluation-{split}.json"
    return read_json(path, RESULTS) if path.exists() else None


def write_chosen_decoding(model_dir: str | Path, chosen: ChosenDecoding) -> None:
    """Stores the chosen search options in a model directory."""
    write_json(to_path(model_dir) / DECODING_FILE, dataclasses.asdict(chosen))


def read_chosen_decoding(model_dir: str | Path) -> ChosenDecoding | None:
    """Reads a model directory's chosen search options; None if there are none.

    Raises:
        InputError: if the file is damaged.
    """
    path = to_path(model_dir) / DECODING_FILE
    return from_json(ChosenDecoding, read_json(path), path) if path.exists() else None


def write_calibration(model_dir: str | Path, calibration: Calibration) -> None:
    """Stores the calibration of a model's confidence in its directory."""
    write_json(to_path(model_dir) / CALIBRATION_FILE, dataclasses.asdict(calibration))


def read_calibration(model_dir: str | Path, checkpoint: CheckpointInfo) -> Calibration | None:
    """Reads the calibration in a model directory; None if there is none for a checkpoint.

    Raises:
        InputError: if the file is damaged.
    """
    path = to_path(model_dir) / CALIBRATION_FILE
    if not path.exists():
        return None
    calibration = from_json(Calibration, read_json(path), path)
    return calibration if calibration.checkpoint == checkpoint.to_json() else None


def read_training(model_dir: str | Path) -> dict[str, Any]:
    """Reads the state of training at its last checkpoint.

    Returns:
        {"steps", "minutes", "perplexity" on the validation split}, each None if unknown.

    Raises:
        InputError: if the record of a checkpoint is damaged.
    """
    records = read_records(model_dir)
    if not records:
        return {"steps": None, "minutes": None, "perplexity": None}
    last = records[-1]
    loss = last.validation.get("loss")
    return {
        "steps": last.step,
        "minutes": None if last.seconds is None else round(last.seconds / 60, 2),
        "perplexity": None if loss is None else round(math.exp(min(loss, 700)), 4),
    }
