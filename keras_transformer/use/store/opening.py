"""What is at a path: the one place that asks.

Reads config.json or the card of an export, and neither weights nor TensorFlow.

Opening reads one JSON file and imports no TensorFlow, so programs check their flags against it.
`load` returns the card with the engine, as the parameters and the checkpoint are known only with
the weights.
"""

import dataclasses
import functools
from pathlib import Path

from keras_transformer.core.training.model_directory import ModelDescription, read_description
from keras_transformer.support.errors import require
from keras_transformer.support.files.paths import require_name, to_path
from keras_transformer.support.files.replacing import put_back
from keras_transformer.use.store.card import CARD, read_card
from keras_transformer.use.store.directory import AdapterDirectory, ModelDirectory, directory_of
from keras_transformer.use.store.ensemble import Ensemble
from keras_transformer.use.store.export import CTranslate2Model, Export, SavedModel, require_unset
from keras_transformer.use.store.keras_file import KerasFile
from keras_transformer.use.store.model_path import AnyPath, ModelPath
from keras_transformer.use.store.stored_model import StoredModel

# The exports that can be loaded, by their format.
EXPORTS: dict[str, type[Export]] = {"saved_model": SavedModel, "ctranslate2": CTranslate2Model}


def open_model(where: ModelPath) -> StoredModel:
    """Finds out what a path is, and reads the description of the model there.

    Raises:
        InputError: if there is no model, its description is damaged, or it does not support the
            checkpoint, the adapter or the scale.
    """
    members = [
        _open_one(dataclasses.replace(where, path=path) if len(where.paths) > 1 else where, path)
        for path in where.paths
    ]
    return members[0] if len(members) == 1 else Ensemble(where, members)


def kind_of(path: AnyPath) -> type[StoredModel]:
    """Returns KerasFile, Export or ModelDirectory: what a path is by the names of its files.

    A model directory need not exist.
    """
    path = to_path(path)
    if path.suffix == ".keras":
        return KerasFile
    is_export = any((path / name).exists() for name in ("saved_model.pb", CARD.parent))
    return Export if is_export else ModelDirectory


def _open_one(where: ModelPath, path: AnyPath) -> StoredModel:
    if where.adapter is not None:
        return _open_with_adapter(where, path)
    require_name(path, where.argument)
    put_back(path)
    kind = kind_of(path)
    if kind is Export:
        return _open_export(where, to_path(path))
    if kind is KerasFile:
        return _open_keras_file(where, to_path(path))
    return _open_directory(where, to_path(path))


def _open_export(where: ModelPath, folder: Path) -> Export:
    require_unset({"checkpoint": where.checkpoint, "adapter_scale": where.adapter_scale})
    card = read_card(folder, where.argument)
    rule = f"must have format {' or '.join(EXPORTS)}"
    received = f"{str(folder)!r}, of format {card.format}"
    require(card.format in EXPORTS, where.argument, rule, received)
    return EXPORTS[card.format](where, folder, card)


def _open_keras_file(where: ModelPath, path: Path) -> KerasFile:
    _check_alone(where, path)
    rule = "must be used with a model directory"
    require(where.checkpoint is None, "checkpoint", rule, f"{where.checkpoint} for {path}")
    if not (path.parent / "config.json").exists():
        return KerasFile(where, path, None)
    description = read_description(path.parent, where.argument)
    return KerasFile(where, path, dataclasses.replace(description, base=None))


def _open_directory(where: ModelPath, path: Path) -> ModelDirectory:
    folder = directory_of(path)
    description = _read_description(folder, where.argument, path)
    rule = "must be used with a model directory"
    is_free = folder == path or where.checkpoint is None
    require(is_free, "checkpoint", rule, f"{where.checkpoint} for {path}")
    if description.base is None:
        _check_alone(where, path)
        return ModelDirectory(where, path, description, where.checkpoint)
    open_base = functools.partial(_open_base_of_training, folder, description)
    blamed = ("base", folder / "config.json")
    return AdapterDirectory(where, path, description, where.checkpoint, open_base, blamed)


def _check_alone(where: ModelPath, path: Path) -> None:
    """Raises InputError for a scale without an adapter."""
    rule = f"must be used with an adapter, which {path} is not"
    require(where.adapter_scale is None, "adapter_scale", rule, where.adapter_scale)


def _read_description(folder: Path, argument: str, path: AnyPath) -> ModelDescription:
    rule = "must be a model directory, a checkpoint in one, an export or a .keras file"
    received = f"{path}, which has no config.json"
    if not folder.exists():
        received = f"{path}, which does not exist"
    require((folder / "config.json").exists(), argument, rule, received)
    return read_description(folder, argument)


def _open_with_adapter(where: ModelPath, path: AnyPath) -> AdapterDirectory:
    """Opens an adapter that a caller adds to a model."""
    require_name(where.adapter, "adapter")
    adapter = to_path(where.adapter)
    rule = "must be the directory of an adapter from training"
    is_directory = (directory_of(adapter) / "config.json").exists()
    require(is_directory, "adapter", rule, f"{adapter}, which has no config.json")
    description = read_description(directory_of(adapter), "adapter")
    is_adapter = description.base is not None
    require(is_adapter, "adapter", rule, f"{adapter}, which contains a whole model")
    base = open_model(ModelPath(path, where.checkpoint, argument=where.argument))
    blamed = (where.argument, None)
    return AdapterDirectory(where, adapter, description, None, lambda: base, blamed)


def _open_base_of_training(folder: Path, adapter: ModelDescription) -> StoredModel:
    """Opens an adapter's base at the path that it had in training."""
    path = adapter.base.path
    is_there = to_path(path).exists() or to_path(f"{path}.index").exists()
    rule = f"must be a model at {path}, or be given as the model, with adapter={folder}"
    config_file = folder / "config.json"
    require(is_there, "base", rule, "nothing there", config_file)
    base = open_model(ModelPath(path))
    require(not base.is_adapter, "base", rule, "an adapter", config_file)
    return base
