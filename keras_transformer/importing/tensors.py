"""Files of named tensors: *.npz, *.safetensors and *.bin of PyTorch, read without running code."""

import importlib
from pathlib import Path
from typing import Any

import numpy as np

from keras_transformer.errors import InputError, reason


def read_tensors(file: Path) -> dict[str, np.ndarray]:
    """Reads the tensors of a file by name; InputError where it is damaged or needs a package."""
    try:
        if file.suffix == ".npz":
            with np.load(file, allow_pickle=False) as content:
                return dict(content)
        if file.suffix == ".safetensors":
            return package("safetensors.numpy", file).load_file(file)
        # Pickled: PyTorch makes tensors of it, and nothing else.
        loaded = package("torch", file).load(file, map_location="cpu", weights_only=True)
        return {name: tensor.float().numpy() for name, tensor in loaded.items()}
    except InputError:
        raise
    except Exception as error:  # damaged bytes can end in any
        rule = f"{file} must be a whole file of tensors"
        raise InputError(f"{rule}. Received: {reason(error)}") from None


def package(name: str, file: Path) -> Any:
    """Imports what reading `file` needs; InputError where it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        names = {"yaml": "PyYAML", "safetensors.numpy": "safetensors"}
        rule = f"{file} needs a package (pip install {names.get(name, name)})"
        raise InputError(f"{rule}. Received: none installed") from None
