"""A model in another toolkit's files, and the Transformer that is made of it.

Marian's decoding starts with the embedding of padding, or with zeros. This becomes the BOS row. The
logits of padding and BOS then get a bias so low that neither is ever generated.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from keras_transformer.core.config import BOS_ID, PAD_ID, TransformerConfig
from keras_transformer.core.model.transformer import Transformer
from keras_transformer.kit.exchange.sentencepiece_pieces import Pieces
from keras_transformer.kit.exchange.tensor_table import (
    LOGITS_BIASES,
    Arrangement,
    Held,
    TensorTable,
)
from keras_transformer.kit.exchange.tensors import StoredTensor
from keras_transformer.support.errors import InputError, require
from keras_transformer.support.fields import shown

SMALLEST_LOGIT = -3e4  # below every logit, and within the range of float16


class ForeignModel(NamedTuple):
    """The content of a model's files."""

    file: Path  # of the weights, or its first part
    tensors: Mapping[str, np.ndarray | StoredTensor]  # by their names there, without unused ones
    config: TransformerConfig
    source: Pieces
    target: Pieces
    table: TensorTable
    is_halved: bool = True  # whether sines precede cosines
    never_generated: tuple[int, ...] = (PAD_ID, BOS_ID)  # ids without a row of their own there
    max_length: int = 512  # length of a source, in ids with EOS
    languages: tuple[str, ...] = ()  # source and target, or the source alone, as far as known
    reads_source_code: bool = False  # whether sources begin with their own language
    needs_code: bool = False  # whether sources begin with a code even if there is only one
    notice: str = ""  # to users


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
    if fields["decoder_layers"] == fields["num_layers"]:  # as in our own configurations
        fields["decoder_layers"] = None
    try:
        return TransformerConfig(**fields)
    except InputError as error:
        argument = option_names.get(error.argument, error.argument)
        raise error.replaced(argument=argument, place=place) from None


def build(foreign: ForeignModel) -> Transformer:
    """Makes the Transformer, in float32.

    Raises:
        InputError: if tensors are missing, unused or have the wrong shape.
    """
    model = Transformer(foreign.config, dtype="float32")
    rows = (foreign.source.rows, foreign.target.rows)
    arrangement = Arrangement(foreign.table, foreign.config, *rows, foreign.is_halved)
    variables = {variable.path: variable for variable in model.trainable_variables}
    used = set()
    for held in foreign.table.held(variables, foreign.config):
        used.update(held.names)
        if _may_be_missing(held, foreign) and held.name_in(foreign.tensors) not in foreign.tensors:
            continue  # the variable is zero
        shapes = [arrangement.shape_there(path, variables[path].shape) for path in held.paths]
        ends = np.cumsum([shape[-1] for shape in shapes])[:-1]
        parts = np.split(_tensor(foreign, held, shapes), ends, axis=-1)
        for path, part in zip(held.paths, parts, strict=True):
            variable = variables[path]
            variable.assign(arrangement.to_ours(path, variable.shape, part))
    left_over = sorted(foreign.tensors.keys() - used)
    rule = "must only contain tensors of a Transformer in this library"
    require(not left_over, None, rule, ", ".join(left_over[:3]), foreign.file)
    bias = model.logits_embedding.bias
    if bias is not None:
        values = np.array(bias)
        values[list(foreign.never_generated)] = SMALLEST_LOGIT
        bias.assign(values)
    return model


def _may_be_missing(held: Held, foreign: ForeignModel) -> bool:
    is_bias = held.paths[0].endswith("/bias")
    return held.paths[0] in LOGITS_BIASES or (is_bias and not foreign.table.needs_biases)


def _tensor(foreign: ForeignModel, held: Held, shapes: list[tuple[int, ...]]) -> np.ndarray:
    """Returns the tensor that holds variables of these shapes, after checking its own."""
    name = held.name_in(foreign.tensors)
    require(name in foreign.tensors, name, "must be among the tensors", "none", foreign.file)
    tensor = np.asarray(foreign.tensors[name])
    if foreign.table.transposed and held.paths[0].endswith("/kernel"):
        tensor = tensor.T
    shape = (*shapes[0][:-1], sum(shape[-1] for shape in shapes))
    if len(shape) == 1:
        tensor = tensor.reshape(-1)  # some are [1, D]
    rule = f"must fit the configuration and the vocabulary, {shape}"
    require(tensor.shape == shape, name, rule, tensor.shape, foreign.file)
    return tensor
