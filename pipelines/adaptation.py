"""Adapts a model to the corrections of its translations, as they come.

The directory of the adapter is a model directory, like that of an adapter from training. It has one
more file: learned.tsv, the corrections that the adapter has learned. So the same call learns only
what is new, and removing the directory undoes everything.
"""

import contextlib
import dataclasses
import math
import os
import signal
import statistics
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from absl import logging

from keras_transformer.core.training.model_directory import (
    Base,
    ModelDescription,
    check_model_dir,
    create_or_check,
    read_description,
    remove_unfinished_files,
    require_same_base,
)
from keras_transformer.support.errors import InputError, require
from keras_transformer.support.fields import LARGEST_SEED, shown
from keras_transformer.support.files.locks import locked
from keras_transformer.support.files.paths import to_path
from keras_transformer.support.files.replacing import write_file
from keras_transformer.support.progress import progress_bar
from keras_transformer.use.adapt.learning_config import LearningConfig
from keras_transformer.use.store.directory import AdapterDirectory, ModelDirectory
from keras_transformer.use.store.stored_model import StoredModel
from pipelines.batches.data_set import DataSet
from pipelines.sources.pair_files import read_pairs

if TYPE_CHECKING:  # modules with TensorFlow, imported by functions on demand
    from keras_transformer.core.training.checkpoint_files import CheckpointRecord
    from keras_transformer.core.training.checkpoints import CheckpointStore
    from keras_transformer.use.adapt.correction_learner import Batch, CorrectionLearner, RunningMean
    from keras_transformer.use.translate.translator import Translator

LEARNED_FILE = "learned.tsv"  # in the adapter's directory: a source, a tab and its translation
SECONDS_BETWEEN_SAVES = 60


class Adaptation:
    """A model with an adapter that learns corrections, and the adapter's directory.

    Args:
        learner: the model and what it has learned.
        mean: of the adapter's matrices after each correction: what translates, and is saved as the
            adapter.
        adapter_dir: the directory of the adapter.
        description: the content of its config.json.
        vocabulary_dir: the directory to copy the vocabulary from.
        store: the adapter's checkpoints.
        saved: the content of a checkpoint, by name.
    """

    def __init__(
        self,
        learner: "CorrectionLearner",
        mean: "RunningMean",
        adapter_dir: Path,
        description: ModelDescription,
        vocabulary_dir: Path,
        store: "CheckpointStore",
        saved: dict[str, Any],
    ):
        self.learner = learner
        self.mean = mean
        self.adapter_dir = adapter_dir
        self.description = description
        self._vocabulary_dir = vocabulary_dir
        self._store = store
        self._saved = saved
        self._listed = dict(learner.learned)  # what the file of learned corrections has

    @property
    def checkpoint(self) -> str | None:
        """The path of the newest checkpoint; None before the first."""
        latest = self._store.latest
        return None if latest is None else self._store.path(latest)

    def news_in(self, corrections: Mapping[str, str]) -> dict[str, str]:
        """Returns the corrections that are not learned yet, or differ from what was learned."""
        learned = self.learner.learned
        return {
            source: target
            for source, target in corrections.items()
            if learned.get(source) != target
        }

    def learn(self, corrections: Mapping[str, str]) -> None:
        """Learns corrected translations by source, usually one; see CorrectionLearner.learn.

        Raises:
            InputError: if the loss is no longer finite.
        """
        loss = self.learner.learn(corrections)
        rule = "must be finite: try a lower learning_rate"
        require(math.isfinite(loss), "loss", rule, f"{loss} for {shown(dict(corrections))}")
        self.mean.update()

    def update(self, translator: "Translator") -> None:
        """Updates the weights with which a translator decodes, whose graphs stay as they are.

        Args:
            translator: one of the model that is adapted, with TensorFlow's engine.
        """
        from keras_transformer.core.search.weights import update_stacks

        (compiled,) = translator.engine.graphs.model.members
        with self.mean.in_place():
            update_stacks(compiled.weights, self.learner.step.model)

    def save(self) -> None:
        """Writes the adapter and the list of what it has learned, as far as they have changed.

        Raises:
            OSError: if they cannot be written; the last complete checkpoint is unchanged.
        """
        latest, steps = self._store.latest, self.learner.steps
        saved_steps = 0 if latest is None else latest.step
        if steps != saved_steps:
            if latest is None:
                create_or_check(self.adapter_dir, self.description, self._vocabulary_dir)
            self._store.save(self._saved, steps)
        if self.learner.learned != self._listed:
            # If the process is killed before this, it learns the last corrections again.
            lines = [f"{source}\t{target}\n" for source, target in self.learner.learned.items()]
            write_file(self.adapter_dir / LEARNED_FILE, "".join(lines))
            self._listed = dict(self.learner.learned)


def adapt(
    stored: StoredModel,
    corrections: Mapping[str, str],
    adapter_dir: str | os.PathLike,
    data_dir: str | os.PathLike,
    config: LearningConfig | None = None,
) -> dict[str, Any]:
    """Learns the corrections that are new since the adapter was last written.

    On SIGTERM or Ctrl-C, the correction in progress is finished, and what was learned is saved.

    Args:
        stored: the model directory to adapt, which stays unchanged.
        corrections: the corrected translations by source, in the order in which they are learned.
        adapter_dir: the directory of the adapter, created if needed.
        data_dir: the data that the model was trained on, or similar data, a part of which is
            repeated with each correction. Without it, all texts would get worse.
        config: see LearningConfig.

    Returns:
        {"adapter_dir", "checkpoint", "learned" (corrections in total), "new" (in this call),
        "too_long" (longer than the model's training sentences, not learned), "stopped" (None, or
        the signal), "seconds", "seconds_per_correction"}.

    Raises:
        InputError: if an argument or a file is invalid.
        OSError: if the adapter cannot be written. KeyboardInterrupt: on Ctrl-C, after saving.
    """
    started = time.monotonic()
    config = LearningConfig() if config is None else config
    with opened_adaptation(stored, adapter_dir, data_dir, config) as adaptation:
        from keras_transformer.core.training.interruption import listening

        learner = adaptation.learner
        news = adaptation.news_in(corrections)
        fitting = {
            source: target for source, target in news.items() if learner.fits(source, target)
        }
        if len(fitting) < len(news):
            message = "%d corrections are longer than %d subwords, and are not learned"
            logging.warning(message, len(news) - len(fitting), learner.max_length)
        seconds = []
        with listening() as interruption, progress_bar(total=len(fitting), desc="learning") as bar:
            saved = time.monotonic()
            for source, target in fitting.items():
                if interruption.signal is not None:
                    break
                begun = time.monotonic()
                adaptation.learn({source: target})
                seconds.append(time.monotonic() - begun)
                bar.update()
                if time.monotonic() - saved > SECONDS_BETWEEN_SAVES:
                    adaptation.save()
                    saved = time.monotonic()
            adaptation.save()
    stopped = interruption.signal
    if stopped == signal.SIGINT:
        raise KeyboardInterrupt
    return {
        "adapter_dir": str(adapter_dir),
        "checkpoint": adaptation.checkpoint,
        "learned": len(learner.learned),
        "new": len(seconds),
        "too_long": len(news) - len(fitting),
        "stopped": None if stopped is None else stopped.name,
        "seconds": round(time.monotonic() - started, 1),
        "seconds_per_correction": round(statistics.median(seconds), 3) if seconds else None,
    }


@contextlib.contextmanager
def opened_adaptation(
    stored: StoredModel,
    adapter_dir: str | os.PathLike,
    data_dir: str | os.PathLike,
    config: LearningConfig,
) -> Iterator[Adaptation]:
    """Opens an adapter to learn with it, or begins a new one; locks its directory meanwhile.

    Args:
        stored, adapter_dir, data_dir, config: as for `adapt`.

    Raises:
        InputError: if an argument or a file is invalid, or another process learns in the directory.
    """
    check_base(stored)
    description = dataclasses.replace(stored.description, training=config.training)
    check_model_dir(adapter_dir, description, "adapter_dir")
    data_set = _data_set(data_dir, description)

    from keras_transformer.core.training.adapters import (
        adapter_matrices,
        copy_base,
        random_states,
        weights_fingerprint,
    )
    from keras_transformer.core.training.checkpoints import CheckpointStore
    from keras_transformer.core.training.step import TrainingStep
    from keras_transformer.core.training.strategy import make_repeatable, make_strategy
    from keras_transformer.use.adapt.correction_learner import CorrectionLearner, RunningMean

    trained = stored.restore()
    base = Base(stored.path_of(trained.card.checkpoint), weights_fingerprint(trained.model))
    description = dataclasses.replace(description, base=base)
    folder = to_path(adapter_dir)
    with locked(folder / "lock", "adapter_dir"):
        check_model_dir(adapter_dir, dataclasses.replace(description, base=None), "adapter_dir")
        if (folder / "config.json").exists():
            existing = read_description(folder, "adapter_dir")
            require_same_base(folder, existing.base, base, stored.where.argument)
        remove_unfinished_files(adapter_dir, description)
        make_repeatable(config.seed, deterministic=False)
        step = TrainingStep(description.model, description.training, make_strategy("one_device"))
        copy_base(trained.model, step.model)
        matrices = adapter_matrices(step.model)
        mean = RunningMean(matrices, config.mean_length)
        states = [each.value for each in random_states(step.model)]
        saved = {  # "model" is the adapter as programs read it: saved_variables in adapters.py
            "model": [*mean.means, *states],
            "learner": [*[each.value for each in matrices], mean.count],
            "optimizer": [each.value for each in step.optimizer.variables],
        }
        store = CheckpointStore(folder, description.model, keep=1)
        store.recover()
        record = _restored(store, saved, folder)
        steps = 0 if record is None else record.step
        replay = _replay(data_set, config, steps)
        learner = CorrectionLearner(
            step, trained.vocabularies, description.max_length, config, replay, steps
        )
        if record is not None:
            learner.remember(_read_learned(folder))
        vocabulary_dir = trained.vocabularies.target.file.parent
        yield Adaptation(learner, mean, folder, description, vocabulary_dir, store, saved)


def _restored(
    store: "CheckpointStore", saved: dict[str, Any], folder: Path
) -> "CheckpointRecord | None":
    """Restores the newest checkpoint of an adapter; None if there is none."""
    try:
        return store.restore(saved)
    except InputError:
        rule = (
            "must have a complete checkpoint with a running mean: choose a new directory, which "
            "learns all corrections again"
        )
        received = f"{folder}, which has none"
        raise InputError("adapter_dir", rule, received) from None


def config_of(adapter_dir: str | os.PathLike) -> LearningConfig:
    """Returns the configuration that an adapter was made with, or the default for a new one.

    Raises:
        InputError: if the directory has a model that is no adapter, or is damaged.
    """
    if not (to_path(adapter_dir) / "config.json").exists():
        return LearningConfig()
    training = read_description(adapter_dir, "adapter_dir").training
    rule = "must be new, or the directory of an adapter that learns corrections"
    is_adapter = training.lora_rank is not None and training.learning_rate > 0
    require(is_adapter, "adapter_dir", rule, f"{adapter_dir}, which has another model")
    return LearningConfig(
        replay_tokens=training.tokens_per_batch,
        lora_rank=training.lora_rank,
        learning_rate=training.learning_rate,
        seed=training.seed,
    )


def check_base(stored: StoredModel) -> None:
    """Raises InputError if corrections cannot be learned for a model."""
    argument, paths = stored.where.argument, stored.where.paths
    rule = "must be a single model, not an ensemble: adapt one of its models"
    require(len(paths) == 1, argument, rule, f"{len(paths)} models")
    rule = "must be a model directory: import the export or the .keras file as one"
    require(isinstance(stored, ModelDirectory), argument, rule, paths[0])
    rule = "must be a whole model, not an adapter: export it, and import the export"
    require(not isinstance(stored, AdapterDirectory), argument, rule, paths[0])
    task = stored.description.task
    require(task == "translation", argument, "must be a translation model", f"a {task} model")


def _data_set(data_dir: str | os.PathLike, description: ModelDescription) -> DataSet:
    """Opens the data to repeat, which must have the vocabulary of the model."""
    data_set = DataSet.open(data_dir)
    metadata = data_set.metadata
    fingerprints = {
        "vocabulary_fingerprint": metadata.fingerprint,
        "source_vocabulary_fingerprint": metadata.source_fingerprint,
    }
    rule = "must have the vocabulary of the model"
    is_same = fingerprints == description.fingerprints
    require(is_same, "data_dir", rule, f"{data_dir}, which has another")
    return data_set


def _replay(data_set: DataSet, config: LearningConfig, steps: int) -> "Iterator[Batch]":
    """Returns training batches without end, others at each start."""
    tokens = max(config.replay_tokens, data_set.split("train").longest)
    return iter(data_set.training_batches(tokens, (config.seed + steps) % LARGEST_SEED))


def _read_learned(folder: Path) -> dict[str, str]:
    path = folder / LEARNED_FILE
    if not path.exists():
        return {}
    return dict(read_pairs(str(path), "adapter_dir", ("source", "target")))
