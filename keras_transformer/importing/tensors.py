"""Reads files of named tensors, *.npz, *.safetensors and PyTorch's *.bin, without running code."""

import importlib
from pathlib import Path
from types import ModuleType

import numpy as np

from keras_transformer.errors import InputError, reason

# Package names that differ from their modules' names.
PACKAGES = {"yaml": "PyYAML", "safetensors.numpy": "safetensors"}


def read_tensors(file: Path) -> dict[str, np.ndarray]:
    """Reads a file's tensors by name; PyTorch's become float32.

    Raises:
        InputError: if the file is missing or damaged, or needs a package that is not installed.
    """
    try:
        if file.suffix == ".npz":
            with np.load(file, allow_pickle=False) as content:
                return dict(content)
        if file.suffix == ".safetensors":
            return package("safetensors.numpy", file).load_file(file)
        # The file is a pickle. With weights_only, PyTorch only creates tensors from it.
        loaded = package("torch", file).load(file, map_location="cpu", weights_only=True)
        return {name: tensor.float().numpy() for name, tensor in loaded.items()}
    except InputError:
        raise
    except Exception as error:  # damaged bytes can raise any error
        raise InputError(None, "must be a complete file of tensors", reason(error), file) from None


def package(module: str, file: Path) -> ModuleType:
    """Imports a module that is needed to read `file`.

    Raises:
        InputError: if its package is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        rule = (
            f"must be read with an additional package (pip install {PACKAGES.get(module, module)})"
        )
        raise InputError(None, rule, "none installed", file) from None
