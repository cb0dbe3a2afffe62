"""Exports that can be loaded: SavedModels and directories for CTranslate2.

Training can start from an export, whose weights keep what bfloat16 rounded. int8 is refused: 129
levels are a poor start.
"""

import abc
import functools
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from absl import logging

from keras_transformer.core.search.engines.engine import Engine
from keras_transformer.core.training.checkpoint_files import CheckpointInfo
from keras_transformer.core.vocabulary.pair import VocabularyPair
from keras_transformer.support.errors import InputError, reason, require
from keras_transformer.support.fields import shown
from keras_transformer.support.quiet_tensorflow import without_information
from keras_transformer.use.store.card import CARD, ModelCard
from keras_transformer.use.store.decoding import ChosenDecoding, search_settings
from keras_transformer.use.store.model_path import ModelPath
from keras_transformer.use.store.stored_model import (
    LoadedModel,
    StoredModel,
    TrainedModel,
    trained_model,
)

if TYPE_CHECKING:  # modules with TensorFlow
    from keras_transformer.core.model.transformer import Transformer
    from keras_transformer.core.search.engines.graphs import ExportedGraphs, SearchGraphs
    from keras_transformer.core.search.engines.tensorflow_engine import Programs

# Search options that can still be set when loading a SavedModel, which contains its search.
FREE_IN_SAVED_MODEL = ("n_best", "mbr")


class Export(StoredModel):
    """An export.

    Args:
        where: the path of the model.
        folder: the directory of the export.
        card: its card, of files that are complete.
    """

    is_export = True

    def __init__(self, where: ModelPath, folder: Path, card: ModelCard):
        super().__init__(where, card.description)
        self.folder = folder
        self.card = card

    def vocabularies(self) -> VocabularyPair:
        vocabularies = VocabularyPair.load(self._vocabulary_folder())
        rule = "must match the vocabulary next to it"
        is_same = vocabularies.fingerprints == self.description.fingerprints
        require(is_same, None, rule, "another", self.folder / CARD)
        return vocabularies

    def _vocabulary_folder(self) -> Path:
        return self.folder

    def load(self, options: Mapping[str, Any]) -> LoadedModel:
        self.check_options(options)
        card = self.card.with_options(options)
        vocabularies = self.vocabularies()
        return LoadedModel(self._engine(card, vocabularies), vocabularies, card)

    @abc.abstractmethod
    def _engine(self, card: ModelCard, vocabularies: VocabularyPair) -> Engine:
        """Makes the engine for the search options of a card."""


class SavedModel(Export):
    """A SavedModel, which contains its search."""

    kind = "a SavedModel"
    contains_search = True

    def check_options(self, options: Mapping[str, Any]) -> None:
        require_unset(options, FREE_IN_SAVED_MODEL)

    def _vocabulary_folder(self) -> Path:
        return (self.folder / CARD).parent

    def restore(self) -> TrainedModel:
        kind = "an ensemble" if self.card.ensemble else self.card.weights
        is_float = kind in ("float32", "bfloat16")
        rule = "must contain the float weights of one model"
        require(is_float, None, rule, kind, self.folder)
        vocabularies = self.vocabularies()
        return trained_model(
            [self._read_weights()],
            vocabularies,
            self.description,
            CheckpointInfo(self.folder.name),
            chosen=ChosenDecoding.of(self.card.decoding),
            evaluation=self.card.evaluation,
        )

    def _read_weights(self) -> "Transformer":
        """Builds the model from variables in the layout for decoding.

        Weights of int8 or bfloat16 become float32.
        """
        from keras_transformer.core.model.transformer import Transformer
        from keras_transformer.core.search.weights import read_weights, variables_of, write_weights
        from keras_transformer.core.training.checkpoint_weights import (
            read_variables,
            require_plausible_sizes,
        )

        config = self.card.config
        values = read_variables(f"{self.folder}/variables/variables", "weights")
        require_plausible_sizes(config, values, str(self.folder / CARD))
        model = Transformer(config, dtype="float32")
        weights = read_weights(model, "int8" if self.card.weights == "int8" else "float32")
        variables = variables_of(weights)
        rule = f"must match the model in {self.folder / CARD}, which has {len(variables)} variables"
        require(len(values) == len(variables), None, rule, len(values), self.folder)
        for number, (variable, value) in enumerate(zip(variables, values, strict=True)):
            shape = tuple(variable.shape)
            rule, name = f"must have shape {shape}", f"weights[{number}]"
            require(shape == value.shape, name, rule, value.shape, self.folder)
            variable.assign(value)
        write_weights(weights, model)
        return model

    def _engine(self, card: ModelCard, vocabularies: VocabularyPair) -> Engine:
        from keras_transformer.core.search.engines.tensorflow_engine import (
            TensorFlowEngine,
            choose_device,
        )
        from keras_transformer.core.search.matrices import has_int8_instructions, require_int8

        choose_device(self.where.device)
        is_int8 = card.weights == "int8"
        if is_int8 and not card.ensemble and not has_int8_instructions():
            logging.info("computing int8 weights in float32, as this processor lacks VNNI")
            return TensorFlowEngine(self._own_graphs(card, vocabularies, "float32"))
        if is_int8:
            require_int8(self.where.argument)
        return TensorFlowEngine(self._load_signatures(), self._programs(card, vocabularies))

    def _programs(self, card: ModelCard, vocabularies: VocabularyPair) -> "Programs":
        """Compiles searches of float weights; those of the SavedModel itself cannot be."""
        import tensorflow as tf

        from keras_transformer.core.search.engines.tensorflow_engine import NO_PROGRAMS
        from keras_transformer.core.search.engines.xla_programs import programs_for

        if card.weights == "int8" or card.ensemble:
            rule = "must be auto or off for an export with int8 weights or an ensemble"
            require(self.where.xla != "on", "xla", rule, "on")
            return NO_PROGRAMS
        # On a processor, a sentence's translation is the same before and after its compilation.
        is_float32 = self.where.xla == "auto" and not tf.config.get_visible_devices("GPU")
        dtype = "float32" if is_float32 else card.weights
        graphs = functools.partial(self._own_graphs, card, vocabularies, dtype)
        return programs_for(self.where.xla, [card.config], card.decoding, graphs)

    def _own_graphs(
        self, card: ModelCard, vocabularies: VocabularyPair, dtype: str
    ) -> "SearchGraphs":
        """Builds graphs from the weights, in place of the SavedModel's, for the same search.

        Args:
            card: with the search options.
            vocabularies: those of the model.
            dtype: as for search.weights.read_weights.
        """
        from keras_transformer.core.search.compiled_model import compile_model
        from keras_transformer.core.search.engines.graphs import SearchGraphs

        settings = search_settings(card.decoding, vocabularies.target)
        return SearchGraphs(compile_model(self._read_weights(), dtype), settings)

    def _load_signatures(self) -> "ExportedGraphs":
        """Loads the graphs; each holds the weights that it needs."""
        import tensorflow as tf
        import tensorflow_text  # noqa: F401 (registers the operations of its text signatures)

        from keras_transformer.core.search.engines.graphs import ExportedGraphs

        try:
            with without_information():
                signatures = tf.saved_model.load(str(self.folder)).signatures
            return ExportedGraphs(dict(signatures.items()))
        except Exception as error:  # damaged bytes can raise any error
            rule = "must be a directory written by an export"
            received = f"{str(self.folder)!r}: {reason(error)}"
            raise InputError(self.where.argument, rule, received) from None


class CTranslate2Model(Export):
    """A directory for CTranslate2, which needs neither TensorFlow nor Keras."""

    kind = "an export for CTranslate2"
    engine = "ctranslate2"

    def restore(self) -> TrainedModel:
        rule = "must have format saved_model"
        received = f"{str(self.folder)!r}, of format ctranslate2"
        raise InputError(self.where.argument, rule, received)

    def _engine(self, card: ModelCard, vocabularies: VocabularyPair) -> Engine:
        from keras_transformer.core.search.engines.ctranslate2_engine import CTranslate2Engine

        require(self.where.xla != "on", "xla", "must be auto or off for CTranslate2", "on")
        is_local = isinstance(self.folder, Path)
        rule = "must be local for CTranslate2"
        require(is_local, self.where.argument, rule, shown(str(self.folder)))
        settings = search_settings(card.decoding, vocabularies.target)
        limits = card.decoding.limits(card.config)
        rows = card.max_positions  # None for rotary positions, which need no table
        rule = f"must be at most {rows} subwords with extra_length, as the export has"
        fits = rows is None or limits.target <= rows
        require(fits, "max_source_length", rule, limits.target)
        return CTranslate2Engine(
            self.folder, vocabularies, settings, limits.target, card.config, self.where.device
        )


def require_unset(options: Mapping[str, Any], names: tuple[str, ...] = ()) -> None:
    """Rejects options that an export has fixed.

    Args:
        options: the caller's options by name; None for one that was not given.
        names: the options that may still be given.

    Raises:
        InputError: for the first fixed option that was given.
    """
    for name, value in options.items():
        rule = "must be given when exporting; it is fixed in an export"
        require(value is None or name in names, name, rule, value)
