"""A model at a path: the interface of all kinds, and what is read from them."""

import abc
import dataclasses
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from keras_transformer.core.config import TrainingConfig
from keras_transformer.core.search.config import TASKS
from keras_transformer.core.search.engines.engine import Engine
from keras_transformer.core.training.checkpoint_files import CheckpointInfo
from keras_transformer.core.training.model_directory import ModelDescription
from keras_transformer.core.vocabulary.pair import VocabularyPair
from keras_transformer.support.errors import InputError, require
from keras_transformer.use.store.card import ModelCard
from keras_transformer.use.store.decoding import (
    ChosenDecoding,
    default_decoding,
    search_settings,
    with_options,
)
from keras_transformer.use.store.model_path import ModelPath

if TYPE_CHECKING:  # a module with Keras
    from keras_transformer.core.model.transformer import Transformer


class TrainedModel(NamedTuple):
    """A model in the layout of training, as Keras models with float32 weights."""

    models: "tuple[Transformer, ...]"  # one, or the members of an ensemble
    vocabularies: VocabularyPair
    card: ModelCard  # `card.decoding` has the options chosen for the model

    @property
    def model(self) -> "Transformer":
        """The model, if there is only one."""
        (model,) = self.models
        return model


class LoadedModel(NamedTuple):
    """A model that is ready to translate."""

    engine: Engine
    vocabularies: VocabularyPair
    card: ModelCard


class StoredModel(abc.ABC):
    """A model at a path, of which only the description has been read.

    Args:
        where: the path.
        description: what the model is; None for a .keras file without its directory.

    Attributes:
        where, description: as above.
        kind: what it is, for messages.
        engine: the engine that `load` makes.
        is_export: whether an export wrote it.
        contains_search: whether it contains its search, so that most search options are fixed.
        results_dir: the model directory that keeps the results of its evaluation; None for another
            kind, and for a checkpoint.
    """

    kind = "a model"
    engine = "tensorflow"
    is_export = False
    contains_search = False
    results_dir: Path | None = None

    def __init__(self, where: ModelPath, description: ModelDescription | None):
        self.where = where
        self.description = description

    @property
    def is_adapter(self) -> bool:
        """Whether it has only an adapter's weights, and needs those of a base."""
        return self.description is not None and self.description.base is not None

    def check_options(self, options: Mapping[str, Any]) -> None:
        """Raises InputError for search options that the model does not take.

        Args:
            options: fields of DecodingConfig. Those that are None are ignored.
        """
        task = "translation" if self.description is None else self.description.task
        with_options(TASKS[task], options)

    @abc.abstractmethod
    def vocabularies(self) -> VocabularyPair:
        """Reads the vocabularies.

        Raises:
            InputError: if they are missing, damaged, or not those of the model.
        """

    @abc.abstractmethod
    def restore(self) -> TrainedModel:
        """Reads the model in the layout of training.

        Raises:
            InputError: if the weights are missing, damaged, quantized, or not those of the
                description.
        """

    def digest(self) -> str:
        """Identifies the model, without reading its weights, for copies in another format.

        Raises:
            InputError: if such a copy cannot replace it.
        """
        rule = f"must be auto or {self.engine} for {self.kind}"
        raise InputError("engine", rule, self.where.engine)

    def with_results(self, card: ModelCard) -> ModelCard:
        """Returns a card with the choices and results that are stored with the model now."""
        return card

    def load(self, options: Mapping[str, Any]) -> LoadedModel:
        """Reads the model and makes the engine that computes it.

        Args:
            options: fields of DecodingConfig. Those that are None take the values chosen for the
                model, or else its task's defaults.

        Raises:
            InputError: as for `restore`, if the model does not support the options or XLA, and
                if there is no such device.
        """
        from keras_transformer.core.search.compiled_model import compile_model
        from keras_transformer.core.search.engines.graphs import SearchGraphs
        from keras_transformer.core.search.engines.tensorflow_engine import (
            TensorFlowEngine,
            choose_device,
        )
        from keras_transformer.core.search.engines.xla_programs import programs_for
        from keras_transformer.core.search.ensemble import ensemble_of

        choose_device(self.where.device)
        trained = self.restore()
        card = trained.card.with_options(options)
        if card.description.task == "parsing" and card.decoding.n_best != 1:
            # As in an export: repair chooses among answers that are all guaranteed, or takes the
            # first.
            card = dataclasses.replace(
                card, decoding=dataclasses.replace(card.decoding, n_best=None)
            )
        model = ensemble_of([compile_model(model) for model in trained.models])
        settings = search_settings(card.decoding, trained.vocabularies.target)
        graphs = SearchGraphs(model, settings)
        configs = [member.config for member in model.members]
        programs = programs_for(self.where.xla, configs, card.decoding, lambda: graphs)
        return LoadedModel(TensorFlowEngine(graphs, programs), trained.vocabularies, card)

    def model(self) -> "Transformer":
        """Reads the model as a keras.Model that is compiled for `fit`.

        The loss, the schedule and Adam are those of its training, or the paper's if that is
        unknown. The schedule restarts. As the length of `fit` is unknown, a learning rate that
        would decay to zero at the end of the run decays as in equation 3 instead. Compile the model
        again to change it.

        Raises:
            InputError: as for `restore`, and for an ensemble.
        """
        from keras_transformer.core.training.losses import LabelSmoothedCrossEntropy
        from keras_transformer.core.training.metrics import MaskedAccuracy, MaskedPerplexity
        from keras_transformer.core.training.optimizer import make_fit_optimizer

        trained = self.restore()
        rule = "must be used with a single model, not with an ensemble"
        require(len(trained.models) == 1, "model", rule, f"{len(trained.models)} models")
        training = trained.card.description.training or TrainingConfig()
        optimizer = make_fit_optimizer(trained.model.config.d_model, training)
        loss = LabelSmoothedCrossEntropy(training.label_smoothing)
        trained.model.compile(optimizer, loss, metrics=[MaskedAccuracy(), MaskedPerplexity()])
        return trained.model

    def path_of(self, checkpoint: CheckpointInfo) -> str:
        """Returns the path at which the weights of a checkpoint stay, for an adapter's base."""
        return os.fspath(self.where.paths[0])


def trained_model(
    models: "Sequence[Transformer]",
    vocabularies: VocabularyPair,
    description: ModelDescription,
    checkpoint: CheckpointInfo,
    chosen: ChosenDecoding | None = None,
    evaluation: dict[str, Any] | None = None,
    ensemble: tuple[CheckpointInfo, ...] = (),
) -> TrainedModel:
    """Collects what was read of a model, and makes its card.

    Args:
        models: one model, or the members of an ensemble.
        vocabularies: the vocabularies of all.
        description: what the model is.
        checkpoint: which weights it has.
        chosen: the search options chosen for it, if any.
        evaluation: the results of these weights on the test split, if there are any.
        ensemble: the checkpoint of each model, if there are several.
    """
    # The model with the fewest positions limits all of them.
    config = min((model.config for model in models), key=lambda one: one.longest_text or math.inf)
    description = dataclasses.replace(
        description, model=config, base=None, **vocabularies.fingerprints
    )
    card = ModelCard(
        description,
        default_decoding(description, chosen),
        parameters=sum(model.count_params() for model in models),
        checkpoint=checkpoint,
        ensemble=ensemble,
        evaluation=evaluation,
    )
    return TrainedModel(tuple(models), vocabularies, card.with_options({}))
