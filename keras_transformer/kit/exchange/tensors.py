"""Reads files of named tensors, without running code, and writes NumPy's.

The files are NumPy's *.npz, *.safetensors, *.h5 as TensorFlow models of Hugging Face's Transformers
write them with Keras 2, and PyTorch's *.bin.
"""

import contextlib
import functools
import importlib
import importlib.util
import io
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType

import numpy as np

from keras_transformer.support.errors import InputError, reason, require

# How to install a module, if not by its own name. PyTorch's own index has a build for CPUs, without
# gigabytes of CUDA.
INSTALL = {
    "yaml": "PyYAML",
    "torch": "torch -i https://download.pytorch.org/whl/cpu",
}
# The modules that read files of weights, by suffix.
MODULES = {".safetensors": "safetensors", ".h5": "h5py", ".bin": "torch"}
# PyTorch's names of Keras' variables.
PYTORCH_NAMES = {"kernel": "weight", "embeddings": "weight", "gamma": "weight", "beta": "bias"}


class StoredTensor:
    """A tensor that np.asarray reads from its file: a large model is never in memory twice."""

    def __init__(self, file: Path, read: Callable[[], np.ndarray]):
        self._file = file
        self._read = read

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        with _damage_named(self._file):
            return np.asarray(self._read(), dtype)


def read_tensors(file: Path) -> dict[str, np.ndarray | StoredTensor]:
    """Reads a file's tensors by name; those of *.safetensors and *.bin when they are used.

    PyTorch's become float32. Those of *.h5 get PyTorch's names and layout.

    Raises:
        InputError: if the file is missing or damaged, or needs a package that is not installed.
    """
    with _damage_named(file):
        if file.suffix == ".npz":
            with np.load(file, allow_pickle=False) as content:
                return dict(content)
        module = package(MODULES[file.suffix], file)
        if file.suffix == ".h5":
            return _read_keras_2(module, file)
        if file.suffix == ".safetensors":
            stored = module.safe_open(file, framework="numpy")
            names = stored.keys()
            reads = {name: functools.partial(stored.get_tensor, name) for name in names}
        else:
            # The file is a pickle. With weights_only, PyTorch only creates tensors from it.
            is_mapped = zipfile.is_zipfile(file)  # otherwise PyTorch before 1.6 has written it
            loaded = module.load(file, map_location="cpu", weights_only=True, mmap=is_mapped)
            reads = {name: functools.partial(_in_float32, loaded[name]) for name in loaded}
        return {name: StoredTensor(file, read) for name, read in reads.items()}


def npz_of(tensors: Mapping[str, np.ndarray]) -> bytes:
    """Returns the content of an .npz file."""
    content = io.BytesIO()
    np.savez(content, **tensors)
    return content.getvalue()


@contextlib.contextmanager
def _damage_named(file: Path) -> Iterator[None]:
    """Turns all errors in the block into an InputError for the file."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # damaged bytes can raise any error
        raise InputError(None, "must be a complete file of tensors", reason(error), file) from None


def _in_float32(tensor) -> np.ndarray:
    """Converts a tensor of PyTorch."""
    return tensor.float().numpy()


def _read_keras_2(h5py: ModuleType, file: Path) -> dict[str, np.ndarray]:
    """Reads a file of a TensorFlow model, as tensors with PyTorch's names and layout."""
    tensors = {}

    def add(path: str, content) -> None:
        if isinstance(content, h5py.Dataset):
            tensor = np.asarray(content)
            is_kernel = path.endswith("/kernel:0")
            tensors[_pytorch_name(path)] = tensor.T if is_kernel else tensor

    with h5py.File(file) as stored:
        stored.visititems(add)  # follows no links to other files
    return tensors


def _pytorch_name(path: str) -> str:
    """Returns PyTorch's name for a dataset of a TensorFlow model.

    The path begins with the layer and the scope in which the model was built, which differ between
    versions: "model/tf_marian_mt_model/model/encoder/layers.0/fc1/kernel:0" is
    "model.encoder.layers.0.fc1.weight", and "model/model.shared/model.shared/weight:0" is
    "model.shared.weight".
    """
    *scopes, variable = path.removesuffix(":0").split("/")
    for stack in ("encoder", "decoder"):
        if stack in scopes:
            layers = scopes[scopes.index(stack) :]
            return ".".join(["model", *layers, PYTORCH_NAMES.get(variable, variable)])
    if scopes and scopes[-1].removeprefix("model.") == "shared":
        return "model.shared.weight"
    return variable


def require_reader(file: Path) -> None:
    """Raises InputError if the package that reads a file of weights is not installed."""
    module = MODULES[file.suffix]
    is_installed = importlib.util.find_spec(module.partition(".")[0]) is not None
    require(is_installed, None, _install_rule(module), "none installed", file)


def package(module: str, file: Path) -> ModuleType:
    """Imports a module that is needed to read `file`.

    Raises:
        InputError: if its package is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        raise InputError(None, _install_rule(module), "none installed", file) from None


def _install_rule(module: str) -> str:
    top = module.partition(".")[0]
    return f"must be read with an additional package (pip install {INSTALL.get(top, top)})"
