"""A model from elsewhere, written as a model directory: what training would have left behind."""

from pathlib import Path
from typing import Any

import keras

from keras_transformer.config import TrainingConfig
from keras_transformer.files import replacing_folder
from keras_transformer.training.checkpoints import CheckpointStore
from keras_transformer.training.model_directory import (
    ModelDescription,
    create_or_check,
    require_new,
)
from keras_transformer.vocabulary.pair import VocabularyPair


def write_model_directory(
    model_dir: Path, model: keras.Model, vocabularies: VocabularyPair, about: dict[str, Any]
) -> dict[str, Any]:
    """Writes a model as the checkpoint of step 0; `about` is what else ModelDescription must know.

    Returns {"model_dir", "checkpoint", "parameters"}; InputError where `model_dir` holds something.
    """
    require_new(model_dir)
    own_source = vocabularies.own_source
    description = ModelDescription(
        preset="imported",
        model=model.config,
        training=TrainingConfig(),
        vocabulary=vocabularies.target.file.name,
        source_vocabulary=own_source and own_source.file.name,
        **about,
        **vocabularies.fingerprints,
    )
    with replacing_folder(model_dir, "config.json") as folder:
        create_or_check(folder, description, vocabularies.target.file.parent)
        variables = [variable.value for variable in model.variables]
        entry = CheckpointStore(folder).save({"model": variables}, step=0)
    facts = {"checkpoint": entry.name, "parameters": model.count_params()}
    return {"model_dir": str(model_dir), **facts}
