"""The tensors of other toolkits, and the variables of a Transformer that they hold.

A format's TensorTable serves both directions: `build` (foreign_model.py) reads a model by it, and
`tensors_of` writes one. A tensor may hold several variables side by side, such as the projections
of queries, keys and values. An Arrangement says what else differs for a model:

- Marian and Hugging Face concatenate sinusoids, all sines before all cosines; here they are
  interleaved: d_model is permuted.
- The special ids come first here (sentencepiece_pieces.py): the rows of embeddings are reordered.
"""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from keras import ops

from keras_transformer.core.config import TransformerConfig
from keras_transformer.core.model.transformer import Transformer
from keras_transformer.kit.exchange.sentencepiece_pieces import NEW_ROW
from keras_transformer.support.errors import require

# The paths of the logits bias, of which a model has at most one.
LOGITS_BIASES = ("embedding/bias", "target_embedding/bias", "logits_embedding/bias")
# The Dense layers with inputs of width d_model. It is the first axis of their kernels, and their
# biases have other widths. All other variables have d_model as their last axis.
READ_STATES = ("query", "key", "value", "inner", "gate")
# Those whose outputs have this width, too: the SSRU's. They are permuted along both axes.
READ_AND_WRITE_STATES = ("input", "forget")
BLOCK_ROWS = 10_000
# The scales for x sigmoid(c x), an approximation of gelu, which is swish(c x) / c: c goes into the
# inner product, and 1 / c into the outer one.
FORMER_GELU = {
    "feed_forward/inner/kernel": 1.702,
    "feed_forward/inner/bias": 1.702,
    "feed_forward/outer/kernel": 1 / 1.702,
}

Names = str | tuple[str, ...]


class Held(NamedTuple):
    """A tensor, and the variables that it holds."""

    names: tuple[str, ...]  # its possible names; the first one is written
    paths: tuple[str, ...]  # of the variables, side by side along their last axis

    def name_in(self, tensors: Iterable[str]) -> str:
        """Returns the first of the names that a file has, or else the first name."""
        return next((name for name in self.names if name in tensors), self.names[0])


class TensorTable(NamedTuple):
    """How a format names and stores the weights of a Transformer."""

    # By a sublayer, or a tuple of those that one tensor holds side by side: the name of its tensors
    # without the prefix, with {} for the kind of weight.
    layers: Mapping[Names, str]
    prefix: str  # of the names in a layer, with {stack} and {layer}
    kinds: Mapping[str, str]  # by our word for a kind of weight, such as "kernel": theirs
    others: Mapping[str, Names]  # by the path of any other variable: its name, or possible names
    decoder: Mapping[Names, str] = MappingProxyType({})  # what differs from `layers` in the decoder
    first_layer: int = 0  # the number of the first layer
    transposed: bool = False  # whether kernels are [outputs, inputs]
    row_vectors: bool = False  # whether vectors are [1, D]
    needs_biases: bool = True  # whether all biases but that of the logits are in the file
    wide_heads: bool = False  # whether the narrower of keys and values are padded with zeros
    # By the last parts of a variable's path: the factor from values in the file to ours.
    scales: Mapping[str, float] = MappingProxyType({})

    def held(self, paths: Iterable[str], config: TransformerConfig) -> Iterator[Held]:
        """Yields the tensors of a model whose variables have these paths."""
        paths = set(paths)
        for path, names in self.others.items():
            if path in paths:
                yield Held(_tuple(names), (path,))
        stacks = {"encoder": config.num_layers, "decoder": config.num_decoder_layers}
        for stack, depth in stacks.items():
            for layer in range(depth):
                prefix = self.prefix.format(stack=stack, layer=layer + self.first_layer)
                yield from self._held_in_layer(paths, f"{stack}/layer_{layer}", prefix)

    def _held_in_layer(self, paths: set[str], layer: str, prefix: str) -> Iterator[Held]:
        of_decoder = self.decoder if layer.startswith("decoder") else {}
        for sublayers, name in {**self.layers, **of_decoder}.items():
            for kind, word in self.kinds.items():
                parts = tuple(f"{layer}/{sublayer}/{kind}" for sublayer in _tuple(sublayers))
                if paths.issuperset(parts):
                    yield Held((prefix + name.replace("{}", word),), parts)


class Arrangement(NamedTuple):
    """How the variables of one model are arranged in a file."""

    table: TensorTable
    config: TransformerConfig
    source_rows: np.ndarray  # int [V], the row there of each id of the source, or NEW_ROW
    target_rows: np.ndarray  # the same for the target
    is_halved: bool = True  # whether the sines precede the cosines

    def shape_there(self, path: str, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Returns the shape of a variable's values in a tensor, before it is transposed."""
        shape = list(shape)
        axis = _heads_axis(path)
        if axis is not None and self.table.wide_heads:
            shape[axis] = self.config.num_heads * max(self.config.d_k, self.config.d_v)
        rows = self._rows(path)
        if rows is not None:
            shape[0] = int(rows.max()) + 1
        return tuple(shape)

    def to_ours(self, path: str, shape: tuple[int, ...], values: np.ndarray) -> np.ndarray:
        """Converts values of a tensor to those of our variable with this path and shape."""
        rows, heads = self._rows(path), _heads_axis(path)
        if rows is not None:
            values = values[rows]
            values[rows == NEW_ROW] = 0
        if heads is not None and self.table.wide_heads:
            values = _with_heads(values, heads, self.config.num_heads, shape[heads])
        for axis in _d_model_axes(path) if self.is_halved else ():
            order = _interleaved(values.shape[axis])
            if rows is None:
                values = np.take(values, order, axis)
            else:  # in place, as the matrix can have a gigabyte
                for start in range(0, len(values), BLOCK_ROWS):
                    block = values[start : start + BLOCK_ROWS]
                    block[:] = block[:, order]
        scale = self._scale(path)
        return values if scale == 1 else values * scale

    def to_theirs(self, path: str, values: np.ndarray) -> np.ndarray:
        """Converts the values of our variable, the inverse of `to_ours`."""
        rows, heads = self._rows(path), _heads_axis(path)
        shape = self.shape_there(path, values.shape)
        for axis in _d_model_axes(path) if self.is_halved else ():
            values = np.take(values, np.argsort(_interleaved(values.shape[axis])), axis)
        if heads is not None and self.table.wide_heads:
            values = _with_heads(values, heads, self.config.num_heads, shape[heads])
        if rows is not None:
            ordered = np.zeros(shape, values.dtype)
            ordered[rows[rows != NEW_ROW]] = values[rows != NEW_ROW]
            values = ordered
        scale = self._scale(path)
        return values if scale == 1 else values / scale

    def _rows(self, path: str) -> np.ndarray | None:
        """Returns the order of the rows of a variable with a row for each id, or else None."""
        if path == "embedding/embeddings":
            return self.source_rows
        is_of_target = path in LOGITS_BIASES or path.endswith("_embedding/embeddings")
        return self.target_rows if is_of_target else None

    def _scale(self, path: str) -> np.float32:
        factors = [value for end, value in self.table.scales.items() if path.endswith(end)]
        return np.float32(factors[0] if factors else 1)


def tensors_of(model: Transformer, arrangement: Arrangement) -> dict[str, np.ndarray]:
    """Returns the tensors of a model in float32, by their names. Biases that it lacks are zeros.

    Raises:
        InputError: if a weight is not finite, or an adapter is not merged.
    """
    table = arrangement.table
    weights = {variable.path: variable for variable in model.variables}
    adapters = [path for path in weights if "/lora_" in path]
    rule = "must be saved and loaded again first, which merges its adapter"
    require(not adapters, "model", rule, ", ".join(adapters[:1]))
    if table.needs_biases:
        for path, kernel in list(weights.items()):
            if path.endswith("/kernel"):
                bias = path.removesuffix("kernel") + "bias"
                weights.setdefault(bias, np.zeros(kernel.shape[-1:], np.float32))
    tensors = {}
    for held in table.held(weights, model.config):
        parts = [arrangement.to_theirs(path, array(weights[path])) for path in held.paths]
        tensor = np.concatenate(parts, axis=-1)
        if table.transposed and held.paths[0].endswith("/kernel"):
            tensor = tensor.T
        if table.row_vectors and tensor.ndim == 1:
            tensor = tensor[None]
        tensors[held.names[0]] = np.ascontiguousarray(tensor)
    return tensors


def array(variable) -> np.ndarray:
    """Returns the values of a variable or tensor as float32.

    Raises:
        InputError: if they are not finite.
    """
    values = ops.convert_to_numpy(variable).astype(np.float32)
    require(np.isfinite(values).all(), "model", "must have finite weights", "others")
    return values


def _tuple(names: Names) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else names


def _d_model_axes(path: str) -> tuple[int, ...]:
    """Returns the axes of a variable that have the width d_model of states."""
    sublayer, kind = path.split("/")[-2:]
    if path in LOGITS_BIASES:
        return ()
    if sublayer in READ_STATES:
        return (0,) if kind == "kernel" else ()
    return (0, -1) if sublayer in READ_AND_WRITE_STATES and kind == "kernel" else (-1,)


def _heads_axis(path: str) -> int | None:
    """Returns the axis of a variable that has the width of all heads; None for none."""
    sublayer, kind = path.split("/")[-2:]
    if sublayer in ("query", "key", "value"):
        return -1
    return 0 if (sublayer, kind) == ("output", "kernel") else None


def _with_heads(values: np.ndarray, axis: int, num_heads: int, width: int) -> np.ndarray:
    """Gives an axis of H heads another width: cuts each of them, or pads it with zeros."""
    heads = np.moveaxis(values, axis, -1)
    heads = heads.reshape(*heads.shape[:-1], num_heads, -1)[..., : width // num_heads]
    missing = width // num_heads - heads.shape[-1]
    heads = np.pad(heads, [(0, 0)] * (heads.ndim - 1) + [(0, missing)])
    return np.moveaxis(heads.reshape(*heads.shape[:-2], width), -1, axis)


def _interleaved(d_model: int) -> np.ndarray:
    """Returns the order that interleaves both halves of d_model, the sines and the cosines."""
    return np.arange(d_model).reshape(2, -1).T.ravel()
