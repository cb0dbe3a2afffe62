"""CTranslate2's file of weights, model.bin: named arrays, and the specification that they meet.

ctranslate2/specs/model_spec.py describes the file: its version; the name and the revision of the
specification; the arrays, each with name, shape, type and bytes; and aliases, further names of
them. Matrices of 8 or 16 bits come with scales, one for each row or for all, by which the float
values were multiplied.
"""

import functools
import hashlib
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO, NamedTuple

import ml_dtypes
import numpy as np

from keras_transformer.kit.exchange.tensors import StoredTensor
from keras_transformer.support.errors import InputError, require

VERSIONS = range(4, 7)  # of the file that can be read; the last one is written
# In the order of their numbers.
TYPES = (np.float32, np.int8, np.int16, np.int32, np.float16, ml_dtypes.bfloat16)


class ModelBin(NamedTuple):
    """The content of a file."""

    specification: str
    revision: int
    arrays: dict[str, np.ndarray]  # mapped from the file, not read; aliases are the same object

    def tensors(self, file: Path) -> dict[str, StoredTensor]:
        """Returns the arrays but scalars and scales, as float32, which are read when used."""
        return {
            name: StoredTensor(file, functools.partial(self._in_float32, name))
            for name, array in self.arrays.items()
            if array.ndim > 0 and not name.endswith("_scale")
        }

    def _in_float32(self, name: str) -> np.ndarray:
        values = self.arrays[name].astype(np.float32)
        scale = self.arrays.get(f"{name}_scale")
        return values if scale is None else values / scale.astype(np.float32).reshape(-1, 1)


def read_model_bin(file: Path) -> ModelBin:
    """Reads the names and shapes in a file, and maps its arrays.

    Raises:
        InputError: if the file is damaged, or has another version.
    """
    content = np.memmap(file, np.uint8, "r") if file.stat().st_size else np.zeros(0, np.uint8)
    reader = _Reader(file, content)
    version = reader.number("<I")
    rule = f"must be a model.bin of version {VERSIONS[0]} to {VERSIONS[-1]}"
    require(version in VERSIONS, None, rule, version, file)
    specification, revision = reader.text(), reader.number("<I")
    arrays = {}
    for _ in range(reader.number("<I")):
        name = reader.text()
        shape = [reader.number("<I") for _ in range(reader.number("<B"))]
        kind, size = reader.number("<B"), reader.number("<I")
        reader.check(kind < len(TYPES))
        reader.check(size == np.prod(shape, dtype=object) * np.dtype(TYPES[kind]).itemsize)
        arrays[name] = reader.bytes(size).view(TYPES[kind]).reshape(shape)
    for _ in range(reader.number("<I")):
        alias, name = reader.text(), reader.text()
        reader.check(name in arrays)
        arrays[alias] = arrays[name]
        if f"{name}_scale" in arrays:
            arrays[f"{alias}_scale"] = arrays[f"{name}_scale"]
    return ModelBin(specification, revision, arrays)


class _Reader:
    """Reads a file from its beginning to its end; a size that exceeds the file is an error."""

    def __init__(self, file: Path, content: np.ndarray):
        self._file, self._content, self._place = file, content, 0

    def bytes(self, size: int) -> np.ndarray:
        end = self._place + size
        self.check(end <= len(self._content))
        found = self._content[self._place : end]
        self._place = end
        return found

    def number(self, layout: str) -> int:
        return struct.unpack(layout, self.bytes(struct.calcsize(layout)).tobytes())[0]

    def text(self) -> str:
        content = self.bytes(self.number("<H")).tobytes()
        return content.rstrip(b"\0").decode("utf-8", errors="replace")

    def check(self, is_right: bool) -> None:
        if not is_right:
            rule = "must be a complete model.bin: download or convert the model again"
            received = f"wrong sizes at byte {self._place:,}"
            raise InputError(None, rule, received, self._file)


def write_model_bin(
    file: Path, specification: str, revision: int, arrays: Mapping[str, np.ndarray]
) -> None:
    """Writes arrays; equal ones, apart from scalars, are stored once."""
    kept, aliases = {}, {}
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name]).reshape(arrays[name].shape)
        digest = hashlib.sha256(array.tobytes()).digest() if array.ndim else name
        first = kept.setdefault((array.dtype.str, array.shape, digest), name)
        if first != name:
            aliases[name] = first
    with open(file, "wb") as output:
        output.write(struct.pack("<I", VERSIONS[-1]))
        _write_text(output, specification)
        output.write(struct.pack("<II", revision, len(kept)))
        for name in kept.values():
            array = arrays[name]
            _write_text(output, name)
            output.write(struct.pack(f"<B{array.ndim}I", array.ndim, *array.shape))
            output.write(struct.pack("<BI", TYPES.index(array.dtype.type), array.nbytes))
            output.write(array.tobytes())
        output.write(struct.pack("<I", len(aliases)))
        for alias, name in aliases.items():
            _write_text(output, alias)
            _write_text(output, name)


def _write_text(output: BinaryIO, text: str) -> None:
    content = text.encode("utf-8") + b"\0"
    output.write(struct.pack("<H", len(content)) + content)
