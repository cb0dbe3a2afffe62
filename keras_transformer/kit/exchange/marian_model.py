"""Converts a Marian model to a Transformer.

Three things are rearranged in the weights.

- Marian concatenates sinusoids, all sines before all cosines; here they are interleaved: d_model is
  permuted.
- The special ids come first here (sentencepiece_pieces.py).
- Marian's decoding starts with the embedding of padding, or with zeros. This becomes the BOS row.

The logits of padding and BOS get a bias so low that neither is ever generated.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from keras_transformer.core.config import BOS_ID, PAD_ID, TransformerConfig
from keras_transformer.core.model.transformer import Transformer
from keras_transformer.kit.exchange.sentencepiece_pieces import NEW_ROW, Pieces
from keras_transformer.kit.exchange.tensors import StoredTensor
from keras_transformer.support.errors import InputError, require
from keras_transformer.support.fields import shown

# The Dense layers with inputs of width d_model. It is the first axis of their kernels, and their
# biases have other widths. All other variables have d_model as their last axis.
READ_STATES = ("query", "key", "value", "inner")
BLOCK_ROWS = 10_000
SMALLEST_LOGIT = -3e4  # below every logit, and within the range of float16


class MarianModel(NamedTuple):
    """The content of a Marian model's files."""

    file: Path  # of the weights, or its first part
    tensors: Mapping[str, np.ndarray | StoredTensor]  # by their names there, without unused ones
    config: TransformerConfig
    source: Pieces
    target: Pieces
    names: dict[str, tuple[str, ...]]  # by a variable's path: the possible names of its tensor
    kernels_are_transposed: bool  # PyTorch stores them as [outputs, inputs]
    max_length: int = 512  # length of a source, in ids with EOS
    reads_source_code: bool = False  # whether sources begin with their own language
    notice: str = ""  # to users


def names_of_layers(
    config: TransformerConfig, layer_prefix: str, first_layer: int, names: dict[str, str]
) -> dict[str, tuple[str, ...]]:
    """Expands the names of the tensors in all layers.

    Args:
        config: the configuration, with the number of layers.
        layer_prefix: the prefix of a layer's tensor names, with {stack} and {layer}.
        first_layer: the number of the first layer in the files.
        names: by a variable's path within its layer, the part after the prefix.

    Returns:
        By a variable's path, the only name of its tensor.
    """
    depths = {"encoder": config.num_layers, "decoder": config.num_decoder_layers}
    tensor_names = {}
    for stack, depth in depths.items():
        for layer in range(depth):
            prefix = layer_prefix.format(stack=stack, layer=layer + first_layer)
            for path, name in names.items():
                tensor_names[f"{stack}/layer_{layer}/{path}"] = (prefix + name,)
    return tensor_names


def require_values(place: Path, options: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Raises InputError for the first given option without the required value."""
    for name, value in wanted.items():
        rule = f"must be {shown(value)}, the only supported value"
        require(options.get(name, value) == value, name, rule, shown(options.get(name)), place)


def make_config(
    place: Path, options: dict[str, Any], option_names: dict[str, str], **fields
) -> TransformerConfig:
    """Makes the configuration of a model.

    Args:
        place: the file with the options, for errors.
        options: the other toolkit's options.
        option_names: by a field of TransformerConfig, the name of its option.
        fields: other fields.

    Raises:
        InputError: if an option is missing, or its value is invalid for the field.
    """
    for field, option in option_names.items():
        require(option in options, option, "must be given", "none", place)
        fields[field] = options[option]
    try:
        return TransformerConfig(attention_bias=True, logits_bias=True, **fields)
    except InputError as error:
        argument = option_names.get(error.argument, error.argument)
        raise error.replaced(argument=argument, place=place) from None


def build(kept: MarianModel) -> Transformer:
    """Makes the Transformer, in float32.

    Raises:
        InputError: if tensors are missing, unused or have the wrong shape.
    """
    model = Transformer(kept.config, dtype="float32")
    used = set()
    for variable in model.trainable_variables:
        used.update(kept.names[variable.path])
        if variable is model.logits_embedding.bias:
            values = _logits_bias(kept, variable)
        elif variable is model.embedding.embeddings:
            values = _embeddings(kept, variable, kept.source)
        elif variable.path.endswith("/embeddings"):
            values = _embeddings(kept, variable, kept.target)
        else:
            values = _layer_weight(kept, variable)
        variable.assign(values)
    left_over = sorted(kept.tensors.keys() - used)
    rule = "must only contain tensors of a Transformer in this library"
    require(not left_over, None, rule, ", ".join(left_over[:3]), kept.file)
    return model


def _embeddings(kept: MarianModel, variable, pieces: Pieces) -> np.ndarray:
    """Returns an embedding matrix [V, D], with rows in the order of this library's ids."""
    _, d_model = variable.shape
    matrix = _tensor(kept, variable.path, (pieces.size_in_files, d_model))
    rows = _rows_by_our_ids(matrix, pieces)
    for start in range(0, len(rows), BLOCK_ROWS):  # in place, as the matrix can have a gigabyte
        block = rows[start : start + BLOCK_ROWS]
        block[:] = _interleaved(block, axis=-1)
    return rows


def _logits_bias(kept: MarianModel, variable) -> np.ndarray:
    """Returns the logits bias [V], zeros if the file has none."""
    shape = (kept.target.size_in_files,)
    bias = np.zeros(shape, np.float32)
    if _name(kept, variable.path) in kept.tensors:
        bias = _tensor(kept, variable.path, shape)
    bias = _rows_by_our_ids(bias, kept.target)
    bias[[PAD_ID, BOS_ID]] = SMALLEST_LOGIT
    return bias


def _layer_weight(kept: MarianModel, variable) -> np.ndarray:
    """Returns a weight in a layer, from a Dense layer or a layer normalization."""
    tensor = _tensor(kept, variable.path, tuple(variable.shape))
    *_, sublayer, kind = variable.path.split("/")
    if sublayer not in READ_STATES:
        return _interleaved(tensor, axis=-1)
    if kind == "kernel":
        return _interleaved(tensor, axis=0)
    return tensor


def _tensor(kept: MarianModel, path: str, shape: tuple[int, ...]) -> np.ndarray:
    """Returns the tensor with a variable's values, after checking its shape."""
    name = _name(kept, path)
    require(name in kept.tensors, name, "must be among the tensors", "none", kept.file)
    tensor = np.asarray(kept.tensors[name])
    if path.endswith("kernel") and kept.kernels_are_transposed:
        tensor = tensor.T
    if len(shape) == 1:
        tensor = tensor.reshape(-1)  # Marian's are [1, D]
    rule = f"must fit the configuration and the vocabulary, {shape}"
    require(tensor.shape == shape, name, rule, tensor.shape, kept.file)
    return tensor


def _name(kept: MarianModel, path: str) -> str:
    """Returns the first name of a variable's tensor found in the file, or else the first name."""
    names = kept.names[path]
    for name in names:
        if name in kept.tensors:
            return name
    return names[0]


def _rows_by_our_ids(tensor: np.ndarray, pieces: Pieces) -> np.ndarray:
    """Returns a copy with rows in the order of this library's ids; new rows are zero."""
    ordered = tensor[pieces.rows]
    ordered[pieces.rows == NEW_ROW] = 0
    return ordered


def _interleaved(tensor: np.ndarray, axis: int) -> np.ndarray:
    """Interleaves the second half of d_model, the cosines, with the first half."""
    d_model = tensor.shape[axis]
    halves = np.arange(d_model).reshape(2, -1)  # [sines, cosines]
    return np.take(tensor, halves.T.ravel(), axis)
