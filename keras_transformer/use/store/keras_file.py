"""A .keras file, written by `model.save`, next to its vocabulary."""

import dataclasses
import zipfile
from pathlib import Path

from keras_transformer.core.training.checkpoint_files import CheckpointInfo
from keras_transformer.core.training.model_directory import (
    ModelDescription,
    describe_unknown_training,
)
from keras_transformer.core.vocabulary.pair import VocabularyPair
from keras_transformer.support.errors import InputError, reason, require
from keras_transformer.support.files.paths import is_device
from keras_transformer.use.store.card import ModelCard
from keras_transformer.use.store.directory import evaluation_of
from keras_transformer.use.store.model_path import ModelPath
from keras_transformer.use.store.stored_model import StoredModel, TrainedModel, trained_model

RULE = "must be a Transformer saved with model.save"


class KerasFile(StoredModel):
    """A .keras file, which always has a whole model.

    Args:
        where: the path of the model.
        path: the file.
        description: the content of the config.json next to it, which tells what the model was
            trained for; None if there is none.
    """

    def __init__(self, where: ModelPath, path: Path, description: ModelDescription | None):
        super().__init__(where, description)
        self.path = path

    def vocabularies(self) -> VocabularyPair:
        try:
            return VocabularyPair.load(self.path.parent)
        except InputError as error:
            if error.place != str(self.path.parent):
                raise
            raise error.replaced(place=f"the folder of {self.path}") from None

    def restore(self) -> TrainedModel:
        import keras

        import keras_transformer.layers  # noqa: F401 (registers the classes with Keras)
        from keras_transformer.core.model.composite import quantized_parts

        require(not is_device(self.path), None, RULE, "a pipe or a device", self.path)
        try:
            with self.path.open("rb") as file:
                if not zipfile.is_zipfile(file):  # for which Keras reports a missing file
                    raise ValueError("not a Keras file")
            model = keras.models.load_model(self.path, compile=False)
        except Exception as error:  # damaged bytes can raise any error
            raise InputError(None, RULE, reason(error), self.path) from None
        rule = "must contain float weights: export the float model with weights=int8"
        require(not quantized_parts(model), None, rule, "a quantized model", self.path)
        vocabularies = self.vocabularies()
        config = model.config
        sizes = (config.source_vocab_size or config.vocab_size, config.vocab_size)
        for vocabulary, size in zip(vocabularies, sizes, strict=True):
            rule = f"must have the {size} subwords of the model"
            is_same = vocabulary.vocab_size == size
            require(is_same, None, rule, vocabulary.vocab_size, vocabulary.file)
        info = CheckpointInfo(self.path.name)
        if self.description is None:
            description = describe_unknown_training(config, vocabularies.fingerprints)
            return trained_model([model], vocabularies, description, info)
        trained = trained_model([model], vocabularies, self.description, info)
        return trained._replace(card=self.with_results(trained.card))

    def with_results(self, card: ModelCard) -> ModelCard:
        if self.description is None:
            return card
        evaluation = evaluation_of(self.path.parent, card.checkpoint)
        return dataclasses.replace(card, evaluation=evaluation)

    def digest(self) -> str:
        is_readable = isinstance(self.path, Path) and zipfile.is_zipfile(self.path)
        rule = "must be auto or tensorflow for a file that is remote or damaged"
        require(is_readable, "engine", rule, self.where.engine)
        with zipfile.ZipFile(self.path) as file:
            checksums = [(member.filename, member.CRC) for member in file.infolist()]
        return f"{checksums} {self.vocabularies().fingerprints} {self.description}"
