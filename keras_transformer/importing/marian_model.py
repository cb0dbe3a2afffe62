"""A Marian model as its files have it, made into a Transformer of this library.

Three things are put in order in the weights.

- Sinusoids stand in halves there, all sines before all cosines, and interleaved here: d_model is
  permuted.
- The special ids come first here (sentencepiece_pieces.py).
- Decoding starts there with the embedding of padding, or with zeros. This becomes the row of BOS.

The logits of padding and BOS get a bias so low that neither is ever generated.
"""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from keras_transformer.config import BOS_ID, PAD_ID, TransformerConfig
from keras_transformer.errors import InputError, require
from keras_transformer.fields import shown
from keras_transformer.importing.sentencepiece_pieces import Pieces
from keras_transformer.model.transformer import Transformer

# The Dense layers that read states of width d_model. It is the first axis of their kernels, and
# their biases have other widths. All other variables have d_model as their last axis.
READ_STATES = ("query", "key", "value", "inner")
SMALLEST_LOGIT = -3e4  # below every logit of a model, and within the range of float16


class MarianModel(NamedTuple):
    """A model as its files have it."""

    file: Path  # of the weights
    tensors: dict[str, np.ndarray]  # by the names in the file; those of no use are left out
    config: TransformerConfig
    source: Pieces
    target: Pieces
    names: dict[str, tuple[str, ...]]  # by a variable's path: what its tensor may be called
    kernels_are_transposed: bool  # PyTorch has them as [outputs, inputs]
    max_length: int = 512  # of a source, in ids with EOS


def names_of_layers(
    config: TransformerConfig, layer_prefix: str, first_layer: int, names: dict[str, str]
) -> dict[str, tuple[str, ...]]:
    """Writes out the names of the tensors of all layers.

    Args:
        config: says how many layers there are.
        layer_prefix: what the names of a layer's tensors begin with, with {stack} and {layer}.
        first_layer: the number of the first layer in the files.
        names: by a variable's path within its layer, what follows the prefix.

    Returns:
        By the path of a variable, the one name of its tensor.
    """
    depths = {"encoder": config.num_layers, "decoder": config.num_decoder_layers}
    found = {}
    for stack, depth in depths.items():
        for layer in range(depth):
            prefix = layer_prefix.format(stack=stack, layer=layer + first_layer)
            for path, name in names.items():
                found[f"{stack}/layer_{layer}/{path}"] = (prefix + name,)
    return found


def require_values(place: Path, options: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Raises InputError for the first option that is given, and not as it must be."""
    for name, value in wanted.items():
        rule = f"must be {shown(value)}, as no other can be imported"
        require(options.get(name, value) == value, name, rule, shown(options.get(name)), place)


def make_config(
    place: Path, options: dict[str, Any], option_names: dict[str, str], **fields
) -> TransformerConfig:
    """Makes the configuration of a model.

    Args:
        place: the file that has the options, for errors.
        options: those of the other toolkit.
        option_names: by a field of TransformerConfig, the name of the option that it is read from.
        fields: other fields.

    Raises:
        InputError: if an option is missing, or has a value that the field cannot have.
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
        InputError: if tensors are missing, left over or of another shape.
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
    rule = "must hold nothing that a Transformer of this library has no place for"
    require(not left_over, None, rule, ", ".join(left_over[:3]), kept.file)
    return model


def _embeddings(kept: MarianModel, variable, pieces: Pieces) -> np.ndarray:
    """An embedding matrix [V, D], with its rows by the ids of this library."""
    _, d_model = variable.shape
    matrix = _tensor(kept, variable.path, (pieces.size_in_files, d_model))
    return _interleaved(_rows_by_our_ids(matrix, pieces), axis=-1)


def _logits_bias(kept: MarianModel, variable) -> np.ndarray:
    """The bias of the logits [V], zeros where the file has none."""
    shape = (kept.target.size_in_files,)
    bias = np.zeros(shape, np.float32)
    if _name(kept, variable.path) in kept.tensors:
        bias = _tensor(kept, variable.path, shape)
    bias = _rows_by_our_ids(bias, kept.target)
    bias[[PAD_ID, BOS_ID]] = SMALLEST_LOGIT
    return bias


def _layer_weight(kept: MarianModel, variable) -> np.ndarray:
    """A weight of a layer: of a Dense layer, or of a layer normalisation."""
    tensor = _tensor(kept, variable.path, tuple(variable.shape))
    *_, sublayer, kind = variable.path.split("/")
    if sublayer not in READ_STATES:
        return _interleaved(tensor, axis=-1)
    if kind == "kernel":
        return _interleaved(tensor, axis=0)
    return tensor


def _tensor(kept: MarianModel, path: str, shape: tuple[int, ...]) -> np.ndarray:
    """The tensor of the file that a variable's values are in, with the shape that it must have."""
    name = _name(kept, path)
    require(name in kept.tensors, name, "must be among the tensors", "none", kept.file)
    tensor = kept.tensors[name]
    if path.endswith("kernel") and kept.kernels_are_transposed:
        tensor = tensor.T
    if len(shape) == 1:
        tensor = tensor.reshape(-1)  # Marian's are [1, D]
    rule = f"must fit the configuration and the vocabulary, {shape}"
    require(tensor.shape == shape, name, rule, tensor.shape, kept.file)
    return tensor


def _name(kept: MarianModel, path: str) -> str:
    """The first name of a variable's tensor that the file has; the first of all if it has none."""
    names = kept.names[path]
    for name in names:
        if name in kept.tensors:
            return name
    return names[0]


def _rows_by_our_ids(tensor: np.ndarray, pieces: Pieces) -> np.ndarray:
    """Orders rows by the ids of this library; rows of zeros are new."""
    zeros = np.zeros_like(tensor[:1])
    return np.append(tensor, zeros, axis=0)[pieces.rows]  # NEW_ROW is -1, the row of zeros


def _interleaved(tensor: np.ndarray, axis: int) -> np.ndarray:
    """Moves the second half of d_model, that of the cosines, between the elements of the first."""
    d_model = tensor.shape[axis]
    halves = np.arange(d_model).reshape(2, -1)  # [sines, cosines]
    return np.take(tensor, halves.T.ravel(), axis)
