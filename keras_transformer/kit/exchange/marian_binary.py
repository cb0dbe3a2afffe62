"""Marian's binary files of tensors (*.bin), with int8 matrices as its fork for browsers has them.

A file is little-endian: the version, 1, and the number of tensors, n; for each tensor the length of
its name, its type, its number of dimensions and its number of bytes; names, each ending in NUL;
dimensions, int32; the length of the padding, and the padding, after which the data begin at a
multiple of 256. All other numbers are uint64.

An int8 matrix is followed by its scale, a float32: integers are weights times 127 / max|w|. It is
stored transposed, except for embeddings (*Wemb*); its shape is that of the matrix.
"""

import math
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from keras_transformer.support.errors import InputError, require

VERSION = 1
ALIGNMENT = 256  # of the data, in bytes
FLOAT32, INT8, INTGEMM8 = 0x404, 0x101, 0x4101  # Marian's numbers of types
ITEM_SIZES = {FLOAT32: 4, INT8: 1, INTGEMM8: 1}
TYPE_NAMES = {0x402: "float16", 0x4102: "intgemm16"}  # of types that are not supported
LEVELS = 127  # weights are rounded to integers from -127 to 127
HEADER = struct.Struct("<4Q")


class Stored(NamedTuple):
    """A tensor as it is in a file."""

    type: int
    shape: tuple[int, ...]
    data: bytes


def is_binary(file: Path) -> bool:
    """Whether a file begins like one of Marian's binary files."""
    with file.open("rb") as opened:
        return opened.read(8) == struct.pack("<Q", VERSION)


def read_binary(file: Path) -> dict[str, Stored]:
    """Reads the tensors of a file by name.

    Raises:
        InputError: if the file is damaged or of another version, or has a type of tensors that is
            not supported.
    """
    content = _Content(file.read_bytes())
    try:
        version, count = struct.unpack("<2Q", content.next(16))
        require(version == VERSION, "version", f"must be {VERSION}", version, file)
        headers = list(HEADER.iter_unpack(content.next(count * HEADER.size)))
        names = [content.next(length).rstrip(b"\0").decode() for length, *_ in headers]
        shapes = [
            struct.unpack(f"<{dimensions}i", content.next(4 * dimensions))
            for _, _, dimensions, _ in headers
        ]
        (padding,) = struct.unpack("<Q", content.next(8))
        content.next(padding)
        tensors = {}
        for name, shape, (_, kind, _, size) in zip(names, shapes, headers, strict=True):
            rule = "must be float32 or int8 (intgemm8)"
            require(kind in ITEM_SIZES, name, rule, TYPE_NAMES.get(kind, hex(kind)), file)
            tensors[name] = Stored(kind, shape, content.next(size))
            _check(name, tensors[name])
    except InputError:
        raise
    except (ValueError, struct.error) as error:
        raise InputError(None, "must be a complete binary file of Marian", error, file) from None
    return tensors


class _Content:
    """The bytes of a file, read from the beginning."""

    def __init__(self, content: bytes):
        self._content = memoryview(content)
        self._position = 0

    def next(self, size: int) -> bytes:
        """Returns the next bytes; raises a ValueError if there are fewer."""
        left = len(self._content) - self._position
        if size > left:
            raise ValueError(f"{left} bytes where {size} must follow")
        self._position += size
        return bytes(self._content[self._position - size : self._position])


def _check(name: str, tensor: Stored) -> None:
    """Raises a ValueError for fewer bytes than the type and the shape need, or a scale of none."""
    count = math.prod(tensor.shape)
    needed = count * ITEM_SIZES[tensor.type] + (4 if tensor.type == INTGEMM8 else 0)
    if min(tensor.shape, default=0) < 0 or len(tensor.data) < needed:
        raise ValueError(f"{len(tensor.data)} bytes for {name}, {tensor.shape}")
    if tensor.type == INTGEMM8 and not 0 < _scale(tensor) < math.inf:
        raise ValueError(f"the scale {_scale(tensor)} of {name}")


def _scale(tensor: Stored) -> float:
    """Returns the scale of an int8 matrix."""
    return struct.unpack_from("<f", tensor.data, math.prod(tensor.shape))[0]


def binary_file(tensors: Mapping[str, Stored]) -> bytes:
    """Returns the content of a file with these tensors."""
    parts = [struct.pack("<2Q", VERSION, len(tensors))]
    names = [f"{name}\0".encode() for name in tensors]
    for name, tensor in zip(names, tensors.values(), strict=True):
        header = (len(name), tensor.type, len(tensor.shape), len(tensor.data))
        parts.append(HEADER.pack(*header))
    parts += names
    parts += [struct.pack(f"<{len(each.shape)}i", *each.shape) for each in tensors.values()]
    padding = -(sum(map(len, parts)) + 8) % ALIGNMENT
    parts += [struct.pack("<Q", padding), bytes(padding)]
    parts += [each.data for each in tensors.values()]
    return b"".join(parts)


def is_rounded(name: str) -> bool:
    """Whether Marian rounds a tensor with this name to int8: matrices, such as "ffn_W1"."""
    return "Wemb" in name or name[-3:-1] == "_W" or name[-2:] == "_W"


def is_transposed(name: str) -> bool:
    """Whether a tensor with this name is stored transposed as int8."""
    return "Wemb" not in name


def float_tensor(values: np.ndarray) -> Stored:
    """Stores a tensor, float32."""
    return Stored(FLOAT32, values.shape, _padded(values.astype("<f4").tobytes()))


def int8_matrix(name: str, matrix: np.ndarray) -> Stored:
    """Rounds a matrix to int8 and stores it, with its scale."""
    scale = np.float32(LEVELS / max(np.abs(matrix).max(), np.finfo(np.float32).tiny))
    levels = np.clip(np.round(matrix * scale), -LEVELS, LEVELS).astype(np.int8)
    rows = levels.T if is_transposed(name) else levels
    return Stored(INTGEMM8, matrix.shape, _padded(rows.tobytes() + scale.astype("<f4").tobytes()))


def text_tensor(text: str) -> Stored:
    """Stores a text."""
    content = text.encode() + b"\0"
    return Stored(INT8, (len(content),), _padded(content))


def _padded(data: bytes) -> bytes:
    """Marian maps files to memory, where each tensor begins at a multiple of ALIGNMENT."""
    return data + bytes(-len(data) % ALIGNMENT)


def array_of(name: str, tensor: Stored) -> np.ndarray:
    """Returns the values of a tensor, float32; int8 ones divided by their scale."""
    count = math.prod(tensor.shape)
    if tensor.type == FLOAT32:
        return np.frombuffer(tensor.data, "<f4", count).reshape(tensor.shape)
    levels = np.frombuffer(tensor.data, np.int8, count)
    if is_transposed(name):
        levels = levels.reshape(tensor.shape[::-1]).T
    return levels.reshape(tensor.shape) / np.float32(_scale(tensor))
