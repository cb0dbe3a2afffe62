"""Several models as one."""

import os
from collections.abc import Sequence

from keras_transformer.core.training.checkpoint_files import CheckpointInfo
from keras_transformer.core.vocabulary.pair import VocabularyPair
from keras_transformer.support.errors import require
from keras_transformer.use.store.model_path import ModelPath
from keras_transformer.use.store.stored_model import StoredModel, TrainedModel, trained_model


class Ensemble(StoredModel):
    """The models at several paths, which are searched as one.

    Args:
        where: their paths.
        members: the model at each path.
    """

    kind = "an ensemble"

    def __init__(self, where: ModelPath, members: Sequence[StoredModel]):
        super().__init__(where, members[0].description)
        self.members = members
        self.is_export = any(member.is_export for member in members)

    def vocabularies(self) -> VocabularyPair:
        return self.members[0].vocabularies()

    def restore(self) -> TrainedModel:
        """Reads all members.

        Raises:
            InputError: also if they differ in vocabularies or task.
        """
        trained = [member.restore() for member in self.members]
        first = trained[0]
        names = [os.fspath(path) for path in self.where.paths]
        rule = f"must have the vocabularies and the task of {names[0]}, the ensemble's first model"
        for name, other in zip(names, trained, strict=True):
            is_same = other.vocabularies.fingerprints == first.vocabularies.fingerprints
            task_options = other.card.description.task_options
            is_same = is_same and task_options == first.card.description.task_options
            require(is_same, None, rule, "others", name)
        infos = tuple(one.card.checkpoint for one in trained)
        return trained_model(
            [one.model for one in trained],
            first.vocabularies,
            first.card.description,
            CheckpointInfo(" + ".join(info.checkpoint for info in infos)),
            ensemble=infos,
        )
