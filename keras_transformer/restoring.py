"""Restores trained models from any format in the training layout: float32 Keras models.

`restore` reads a model directory, a checkpoint, an export or a .keras file, with the known facts
about the model.
"""

import dataclasses
import math
import os
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import keras

from keras_transformer.config import TrainingConfig
from keras_transformer.errors import InputError, reason, require
from keras_transformer.evaluation.results import read_chosen_decoding, read_results
from keras_transformer.fields import shown
from keras_transformer.files.paths import is_device, to_path
from keras_transformer.model.composite import quantized_parts
from keras_transformer.model.transformer import Transformer
from keras_transformer.model_card import (
    CARD,
    DATA_FIELDS,
    ModelCard,
    ModelOrigin,
    exported_vocabularies,
    read_card,
)
from keras_transformer.search.config import TASKS, DecodingConfig
from keras_transformer.search.weights import read_weights, variables_of, write_weights
from keras_transformer.training.adam import make_adam
from keras_transformer.training.adapters import merge_adapter, weights_fingerprint
from keras_transformer.training.checkpoint_files import CheckpointInfo, chosen_checkpoint
from keras_transformer.training.checkpoint_weights import (
    read_variables,
    require_plausible_sizes,
    restore_model,
)
from keras_transformer.training.losses import LabelSmoothedCrossEntropy
from keras_transformer.training.metrics import MaskedAccuracy, MaskedPerplexity
from keras_transformer.training.model_directory import (
    Base,
    ModelDescription,
    described_in,
    holds_adapter,
    read_adapter,
    read_description,
    require_same_base,
)
from keras_transformer.translate.texts import with_options
from keras_transformer.vocabulary.pair import VocabularyPair

AnyPath = str | os.PathLike


class TrainedModel(NamedTuple):
    """A model in the training layout, with all that is needed to use it."""

    models: tuple[Transformer, ...]  # one, or the members of an ensemble
    vocabularies: VocabularyPair
    origin: ModelOrigin
    checkpoint: CheckpointInfo
    ensemble: tuple[CheckpointInfo, ...] = ()  # for each model, if there are several
    chosen: Mapping[str, Any] = MappingProxyType({})  # search options chosen for it

    @property
    def model(self) -> Transformer:
        """The model, if there is only one."""
        (model,) = self.models
        return model

    @property
    def facts(self) -> dict[str, Any]:
        """Which weights the model or the ensemble has, as JSON: {"checkpoint", "step", ...}."""
        facts = self.checkpoint.to_json()
        if self.ensemble:
            facts["ensemble"] = [info.to_json() for info in self.ensemble]
        return facts

    def card(self, options: DecodingConfig, **facts: Any) -> ModelCard:
        """Returns the model card for decoding with `options`; `facts` are other fields."""
        configs = [model.config for model in self.models]
        limit = options.limits(*configs).source
        return ModelCard(
            # For an ensemble, that of the model with the fewest positions, which limit all of them.
            config=min(configs, key=lambda config: config.longest_text or math.inf),
            decoding=dataclasses.replace(options, max_source_length=limit),
            parameters=sum(model.count_params() for model in self.models),
            origin=self.origin,
            checkpoint=self.checkpoint,
            ensemble=self.ensemble,
            **self.vocabularies.fingerprints,
            **facts,
        )


def load_model(
    path: AnyPath | Sequence[AnyPath],
    checkpoint: str | None = None,
    adapter: AnyPath | None = None,
    adapter_scale: float | None = None,
) -> Transformer:
    """Reads a trained model as a keras.Model that is compiled for `fit`.

    The loss, the schedule and Adam are those of its training, or the paper's if that is unknown.
    The schedule restarts. As the length of `fit` is unknown, a learning rate that would decay to
    zero at the end of the run decays as in equation 3 instead. Compile the model again to change
    it.

    Args:
        path: as for `load`.
        checkpoint: the weights in a model directory; see `load`.
        adapter, adapter_scale: an adapter to add to the weights; see `load`.

    Raises:
        InputError: as for `restore`, and for an ensemble.
    """
    trained = restore(path, checkpoint, adapter, adapter_scale)
    rule = "must be used with a single model, not with an ensemble"
    require(len(trained.models) == 1, "model", rule, f"{len(trained.models)} models")
    training = TrainingConfig(**(trained.origin.training or {}))
    adam = make_adam(trained.model.config.d_model, training)
    loss = LabelSmoothedCrossEntropy(training.label_smoothing)
    trained.model.compile(adam, loss, metrics=[MaskedAccuracy(), MaskedPerplexity()])
    return trained.model


def decoding_config(trained: TrainedModel, **options: Any) -> DecodingConfig:
    """Returns how a model decodes.

    Combines its task's defaults, with sources truncated as in training; the options chosen for the
    model (evaluation/length_penalty.py); and `options`.

    Args:
        trained: the model.
        options: fields of DecodingConfig. Those that are None are ignored.

    Raises:
        InputError: for an invalid option value.
    """
    task_config = TASKS[trained.origin.task]
    trained_length = trained.origin.max_length or DecodingConfig.max_source_length
    longest = max(trained_length, task_config.max_source_length)
    chosen = {"max_source_length": longest, **trained.chosen}
    return with_options(dataclasses.replace(task_config, **chosen), options)


def restore(
    path: AnyPath | Sequence[AnyPath],
    checkpoint: str | None = None,
    adapter: AnyPath | None = None,
    adapter_scale: float | None = None,
) -> TrainedModel:
    """Reads a trained model in the training layout, as Keras models with float32 weights.

    Args:
        path: as for `load`; an export's weights are converted back to the training layout.
        checkpoint: the weights in a model directory; see `load`.
        adapter, adapter_scale: an adapter to add to the weights; see `load`.

    Raises:
        InputError: if there is no such model, an export has int8 weights or is an ensemble itself,
            or the adapter was not trained for the model.
    """
    is_amount = adapter_scale is None or 0 <= adapter_scale < math.inf
    require(is_amount, "adapter_scale", "must be at least 0 and finite", shown(adapter_scale))
    if not isinstance(path, str | os.PathLike):
        if len(path) > 1:
            rule = "must be used with one model, not with an ensemble"
            require(adapter is None, "adapter", rule, adapter)
            require(adapter_scale is None, "adapter_scale", rule, adapter_scale)
            return _restore_ensemble(path, checkpoint)
        (path,) = path
    if adapter is not None:
        return _restore_with_adapter(path, checkpoint, adapter, adapter_scale)
    rule = f"must be used with an adapter, which {path} is not"
    require(adapter_scale is None or holds_adapter(path), "adapter_scale", rule, adapter_scale)
    model_dir = described_in(path)
    path = to_path(path)
    rule = "must be used with a model directory"
    require(model_dir == path or checkpoint is None, "checkpoint", rule, f"{checkpoint} for {path}")
    if (path / CARD).exists():
        return _restore_export(path)
    if path.suffix == ".keras":
        return _restore_keras_file(path)
    if model_dir != path:
        checkpoint = path.name
    checkpoint = chosen_checkpoint(model_dir) if checkpoint is None else checkpoint
    return _restore_model_directory(model_dir, checkpoint, adapter_scale=adapter_scale)


def _restore_with_adapter(
    path: AnyPath, checkpoint: str | None, adapter: AnyPath, adapter_scale: float | None
) -> TrainedModel:
    description = read_adapter(adapter)
    adapter = to_path(adapter)
    model_dir = described_in(adapter)
    base = restore(path, checkpoint).model
    found = Base(os.fspath(path), weights_fingerprint(base))
    require_same_base(model_dir, description.base, found, "path")
    adapter_checkpoint = chosen_checkpoint(model_dir) if model_dir == adapter else adapter.name
    return _restore_model_directory(model_dir, adapter_checkpoint, base, adapter_scale)


def _restore_model_directory(
    model_dir: Path,
    checkpoint: str,
    base: Transformer | None = None,
    adapter_scale: float | None = None,
) -> TrainedModel:
    """Reads a model directory; `base` is an adapter's base, if already read."""
    description = read_description(model_dir)
    vocabularies = VocabularyPair.load(model_dir)
    for name, fingerprint in vocabularies.fingerprints.items():
        is_same = fingerprint == getattr(description, name)
        field, rule = name.removesuffix("_fingerprint"), "must be the one used in training"
        require(is_same, field, rule, "a file with other content", model_dir)
    if description.base is None:
        model, info = restore_model(model_dir, checkpoint, description)
    else:
        model = _restore_base(model_dir, description.base) if base is None else base
        scale = 1 if adapter_scale is None else adapter_scale
        info = merge_adapter(model, model_dir, checkpoint, description, scale)
    origin = origin_of(model_dir, description, info)
    chosen = read_chosen_decoding(model_dir)
    options = {} if chosen is None else chosen.options
    return TrainedModel((model,), vocabularies, origin, info, chosen=options)


def _restore_base(model_dir: Path, base: Base) -> Transformer:
    """Reads an adapter's base from the path that it had in training."""
    there = to_path(base.path).exists() or to_path(f"{base.path}.index").exists()
    is_whole = there and not holds_adapter(base.path)
    rule = f"must be a model at {base.path}, or be given as the model, with adapter={model_dir}"
    received = "an adapter" if there else "nothing there"
    require(is_whole, "base", rule, received, model_dir / "config.json")
    model = restore(base.path).model
    found = Base(base.path, weights_fingerprint(model))
    require_same_base(model_dir, base, found, "base", model_dir / "config.json")
    return model


def origin_of(
    model_dir: str | os.PathLike, description: ModelDescription, checkpoint: CheckpointInfo
) -> ModelOrigin:
    """Collects the facts about a model from its directory.

    Args:
        model_dir: the directory.
        description: the content of its config.json.
        checkpoint: which weights are used. Evaluation results are kept only if they are for these
            weights.
    """
    evaluation = read_results(model_dir, "test")
    if evaluation is not None:
        names = ("checkpoint", "step", "adapter_scale")
        if any(evaluation.get(name) != getattr(checkpoint, name) for name in names):
            evaluation = None
    return ModelOrigin(
        task=description.task,
        task_options=description.task_options,
        preset=description.preset,
        training=dataclasses.asdict(description.training),
        data={name: getattr(description, name) for name in DATA_FIELDS},
        evaluation=evaluation,
    )


def _restore_export(path: Path) -> TrainedModel:
    card = read_card(path, "path")
    kind = "an ensemble" if card.ensemble else card.weights
    is_float = kind in ("float32", "bfloat16")
    require(is_float, None, "must contain the float weights of one model", kind, path)
    vocabularies = exported_vocabularies(path, card)
    model = read_exported_weights(path, card)
    chosen = {"alpha": card.decoding.alpha, "beam_size": card.decoding.beam_size}
    info = CheckpointInfo(path.name)
    return TrainedModel((model,), vocabularies, card.origin, info, chosen=chosen)


def read_exported_weights(path: Path, card: ModelCard) -> Transformer:
    """Builds the model in a SavedModel, whose variables are in the decoding layout.

    Args:
        path: its folder.
        card: its card, of one model. Weights of int8 or bfloat16 become float32.
    """
    config = card.config
    values = read_variables(f"{path}/variables/variables", "weights")
    require_plausible_sizes(config, values, str(path / CARD))
    model = Transformer(config, dtype="float32")
    weights = read_weights(model, "int8" if card.weights == "int8" else "float32")
    variables = variables_of(weights)
    rule = f"must match the model in {path / CARD}, which has {len(variables)} variables"
    require(len(values) == len(variables), None, rule, len(values), path)
    for number, (variable, value) in enumerate(zip(variables, values, strict=True)):
        rule = f"must have shape {tuple(variable.shape)}"
        require(tuple(variable.shape) == value.shape, f"weights[{number}]", rule, value.shape, path)
        variable.assign(value)
    write_weights(weights, model)
    return model


def _restore_ensemble(paths: Sequence[AnyPath], checkpoint: str | None) -> TrainedModel:
    members = [restore(path, checkpoint) for path in paths]
    first = members[0]
    for path, member in zip(paths, members, strict=True):
        rule = f"must have the vocabularies and the task of {paths[0]}, the ensemble's first model"
        same = member.vocabularies.fingerprints == first.vocabularies.fingerprints
        same = same and member.origin.task_options == first.origin.task_options
        require(same, None, rule, "others", path)
    return TrainedModel(
        models=tuple(member.model for member in members),
        vocabularies=first.vocabularies,
        origin=dataclasses.replace(first.origin, evaluation=None),
        checkpoint=CheckpointInfo(" + ".join(member.checkpoint.checkpoint for member in members)),
        ensemble=tuple(member.checkpoint for member in members),
    )


def _restore_keras_file(path: Path) -> TrainedModel:
    rule = "must be a Transformer saved with model.save"
    require(not is_device(path), None, rule, "a pipe or a device", path)
    try:
        with path.open("rb") as file:
            if not zipfile.is_zipfile(file):  # for which Keras reports a missing file
                raise ValueError("not a Keras file")
        model = keras.models.load_model(path, compile=False)
    except Exception as error:  # damaged bytes can raise any error
        raise InputError(None, rule, reason(error), path) from None
    rule = "must contain float weights: export the float model with weights=int8"
    require(not quantized_parts(model), None, rule, "a quantized model", path)
    folder, info = path.parent, CheckpointInfo(path.name)
    vocabularies = VocabularyPair.load(folder)
    origin = ModelOrigin()
    if (folder / "config.json").exists():
        origin = origin_of(folder, read_description(folder), info)
    config = model.config
    sizes = (config.source_vocab_size or config.vocab_size, config.vocab_size)
    for vocabulary, size in zip(vocabularies, sizes, strict=True):
        rule = f"must have the {size} subwords of the model"
        require(vocabulary.vocab_size == size, None, rule, vocabulary.vocab_size, vocabulary.file)
    return TrainedModel((model,), vocabularies, origin, info)
