"""Writes an imported model as a model directory, as if trained here."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras

from keras_transformer.config import Task, TrainingConfig
from keras_transformer.files.json_files import write_json
from keras_transformer.files.replacing import replacing_folder
from keras_transformer.training.checkpoint_files import checkpoint_name
from keras_transformer.training.checkpoints import CheckpointStore
from keras_transformer.training.model_directory import (
    DECODING_FILE,
    ModelDescription,
    create_or_check,
    require_new,
)
from keras_transformer.vocabulary.pair import VocabularyPair


def write_model_directory(
    model_dir: Path,
    model: keras.Model,
    vocabularies: VocabularyPair,
    max_length: int,
    task: Task = "translation",
    task_options: dict[str, Any] | None = None,
    languages: list[str] | None = None,
    chosen: Mapping[str, Any] | None = None,
) -> dict[str, str | int]:
    """Writes a model directory with a model's weights as its only checkpoint, at step 0.

    Args:
        model_dir: the directory to create.
        model: the Transformer.
        vocabularies: the source and target vocabularies, in files.
        max_length: the longest training sentence, in ids with EOS.
        task: the model's task.
        task_options: for parsing, how trees are written as text; for a model with several target
            languages, these languages (language_codes.py).
        languages: the source and target languages, if known.
        chosen: the "alpha" and "beam_size" for translating, if chosen for the model.

    Returns:
        {"model_dir", "checkpoint", "parameters"}.

    Raises:
        InputError: if `model_dir` is not empty.
        OSError: if it cannot be written.
    """
    require_new(model_dir)
    source_vocabulary = None
    if vocabularies.own_source is not None:
        source_vocabulary = vocabularies.own_source.file.name
    description = ModelDescription(
        preset="imported",
        model=model.config,
        training=TrainingConfig(),
        vocabulary=vocabularies.target.file.name,
        source_vocabulary=source_vocabulary,
        max_length=max_length,
        task=task,
        task_options=task_options or {},
        languages=languages,
        **vocabularies.fingerprints,
    )
    with replacing_folder(model_dir, "config.json") as folder:
        create_or_check(folder, description, vocabularies.target.file.parent)
        variables = [variable.value for variable in model.variables]
        CheckpointStore(folder, model.config).save({"model": variables}, step=0)
        if chosen:
            write_json(folder / DECODING_FILE, dict(chosen))
    return {
        "model_dir": str(model_dir),
        "checkpoint": checkpoint_name(0),
        "parameters": model.count_params(),
    }
