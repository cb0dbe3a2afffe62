"""Model directories from training, also those of adapters; and imported models as such."""

import dataclasses
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keras_transformer.core.config import Task, TrainingConfig
from keras_transformer.core.training.checkpoint_files import (
    CheckpointInfo,
    average_name,
    checkpoint_directory,
    checkpoint_name,
    chosen_checkpoint,
    weights_digest,
)
from keras_transformer.core.training.model_directory import (
    Base,
    ModelDescription,
    create_or_check,
    require_new,
    require_same_base,
)
from keras_transformer.core.vocabulary.pair import VocabularyPair
from keras_transformer.support.errors import require
from keras_transformer.support.files.paths import to_path
from keras_transformer.support.files.reading import file_digest
from keras_transformer.support.files.replacing import replacing_folder, write_file
from keras_transformer.use.store.card import ModelCard
from keras_transformer.use.store.decoding import ChosenDecoding, default_decoding
from keras_transformer.use.store.model_path import ModelPath
from keras_transformer.use.store.results import (
    read_calibration,
    read_chosen_decoding,
    read_results,
    write_chosen_decoding,
)
from keras_transformer.use.store.stored_model import StoredModel, TrainedModel, trained_model

if TYPE_CHECKING:  # a module with Keras
    from keras_transformer.core.model.transformer import Transformer


class ModelDirectory(StoredModel):
    """A model directory, or a checkpoint in one.

    Args:
        where: the path of the model.
        path: the directory, or a checkpoint in it.
        description: the content of the directory's config.json.
        checkpoint: which weights of a directory to use; see ModelPath.
    """

    def __init__(
        self,
        where: ModelPath,
        path: Path,
        description: ModelDescription,
        checkpoint: str | None,
    ):
        super().__init__(where, description)
        self.folder = directory_of(path)
        self.is_checkpoint = self.folder != path
        self.checkpoint = path.name if self.is_checkpoint else checkpoint
        self.results_dir = None if self.is_checkpoint else self.folder

    def vocabularies(self) -> VocabularyPair:
        vocabularies = VocabularyPair.load(self.folder)
        trained_with = self.description.fingerprints
        for name, fingerprint in vocabularies.fingerprints.items():
            field, rule = name.removesuffix("_fingerprint"), "must be the one used in training"
            is_same = fingerprint == trained_with[name]
            require(is_same, field, rule, "a file with other content", self.folder)
        return vocabularies

    def restore(self) -> TrainedModel:
        vocabularies = self.vocabularies()
        model, info = self._read_model(self._chosen_checkpoint())
        trained = trained_model([model], vocabularies, self.description, info)
        return trained._replace(card=self.with_results(trained.card))

    def with_results(self, card: ModelCard) -> ModelCard:
        changed = dataclasses.replace(
            card,
            decoding=default_decoding(card.description, read_chosen_decoding(self.folder)),
            evaluation=evaluation_of(self.folder, card.checkpoint),
            calibration=read_calibration(self.folder, card.checkpoint),
        )
        return changed.with_options({})

    def digest(self) -> str:
        checkpoint = self._chosen_checkpoint()
        rule = "must be auto or tensorflow for a model on a remote file system"
        is_local = isinstance(self.folder, Path) and "://" not in checkpoint
        require(is_local, "engine", rule, self.where.engine)
        weights = weights_digest(self.folder, checkpoint)
        return f"{weights} {file_digest(self.folder / 'config.json')}"

    def _chosen_checkpoint(self) -> str:
        return chosen_checkpoint(self.folder) if self.checkpoint is None else self.checkpoint

    def _read_model(self, checkpoint: str) -> "tuple[Transformer, CheckpointInfo]":
        from keras_transformer.core.training.checkpoint_weights import restore_model

        return restore_model(self.folder, checkpoint, self.description)

    def path_of(self, checkpoint: CheckpointInfo) -> str:
        """Returns the path of a checkpoint, as the directory may have others in the future.

        Raises:
            InputError: for an average that is not written.
        """
        path = os.fspath(self.where.paths[0])
        if self.is_checkpoint:
            return path
        name = checkpoint.checkpoint
        if checkpoint.averaged is not None:
            name = average_name(checkpoint.averaged, checkpoint.step)
        path = os.path.join(path, checkpoint_directory("").name, name)
        rule = "must be a single checkpoint: run average_checkpoints to write the mean that it uses"
        require(to_path(f"{path}.index").exists(), self.where.argument, rule, path)
        return path


class AdapterDirectory(ModelDirectory):
    """The directory of an adapter, or a checkpoint in one; its model is the base with its updates.

    Args:
        where, path, description, checkpoint: as for ModelDirectory.
        open_base: opens the model to add the adapter to.
        blamed: the argument and the file that named this model, for errors; None for no file.
    """

    def __init__(
        self,
        where: ModelPath,
        path: Path,
        description: ModelDescription,
        checkpoint: str | None,
        open_base: Callable[[], StoredModel],
        blamed: tuple[str, Path | None],
    ):
        super().__init__(where, path, description, checkpoint)
        self._open_base = open_base
        self._blamed = blamed

    def digest(self) -> str:
        scale = self.where.adapter_scale
        return f"{self._open_base().digest()} {super().digest()} {scale}"

    def _read_model(self, checkpoint: str) -> "tuple[Transformer, CheckpointInfo]":
        from keras_transformer.core.training.adapters import merge_adapter, weights_fingerprint

        base = self._open_base()
        model = base.restore().model
        actual = Base(os.fspath(base.where.path), weights_fingerprint(model))
        require_same_base(self.folder, self.description.base, actual, *self._blamed)
        scale = self.where.adapter_scale
        scale = 1 if scale is None else scale
        info = merge_adapter(model, self.folder, checkpoint, self.description, scale)
        return model, info


def directory_of(path: Path) -> Path:
    """Returns the model directory of a path that is one, or a checkpoint in one."""
    return path.parent.parent if path.parent.name == "checkpoints" else path


def evaluation_of(model_dir: Path, checkpoint: CheckpointInfo) -> dict[str, Any] | None:
    """Reads the results on the test split; None if they are not those of a checkpoint."""
    evaluation = read_results(model_dir, "test")
    if evaluation is None:
        return None
    names = ("checkpoint", "step", "adapter_scale")
    is_same = all(evaluation.get(name) == getattr(checkpoint, name) for name in names)
    return evaluation if is_same else None


def write_model_directory(
    model_dir: Path,
    model: "Transformer",
    vocabularies: VocabularyPair,
    max_length: int,
    task: Task = "translation",
    task_options: dict[str, Any] | None = None,
    languages: list[str] | None = None,
    chosen: ChosenDecoding | None = None,
    files: Mapping[str, bytes] | None = None,
) -> dict[str, str | int]:
    """Writes an imported model as a model directory, with its weights as a checkpoint at step 0.

    Args:
        model_dir: the directory to create.
        model: the Transformer.
        vocabularies: the source and target vocabularies, in files.
        max_length: the longest training sentence, in ids with EOS.
        task: the model's task.
        task_options: for parsing, how trees are written as text; for a model with several target
            languages, these languages (language_codes.py).
        languages: the source and target languages, if known.
        chosen: the search options chosen for the model, if any.
        files: the content of further files, by name.

    Returns:
        {"model_dir", "checkpoint", "parameters"}.

    Raises:
        InputError: if `model_dir` is not empty.
        OSError: if it cannot be written.
    """
    from keras_transformer.core.training.checkpoints import CheckpointStore

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
        if chosen is not None:
            write_chosen_decoding(folder, chosen)
        for name, content in (files or {}).items():
            write_file(folder / name, content)
    return {
        "model_dir": str(model_dir),
        "checkpoint": checkpoint_name(0),
        "parameters": model.count_params(),
    }
