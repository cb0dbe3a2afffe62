"""Adapters: low-rank matrices trained on top of a finished model's weights.

LoRA (Hu et al. 2021, arXiv 2106.09685), using Keras' `enable_lora`. Every matrix W_0 in attention
and feed-forward networks, [D, E] in Keras, becomes

    W = W_0 + alpha / r A B,    A [D, r], B [r, E]    (section 4.1; there, matrices are transposed)

where A is initialized at random, B starts at zero, and only A and B are trained. Embeddings, biases
and normalizations stay unchanged. An adapter's checkpoints contain its matrices, their optimizer
moments and the random states, but not W_0. To use an adapter, its updates are added to the weights
of its base, which gives a model like any other. Parts of a model can also be frozen by name.

The paper adapts only queries and values (section 4.2). Here, more than half of a stack's weights
are in feed-forward networks, and rank 8 for all matrices is still small. Embeddings have no
adapter, as one matrix serves both texts and the softmax. Keras computes the sum above in each step,
so an adapter saves memory, but almost no computation. A base is identified by its configuration and
weights, so that two imports of a model are the same base. An adapter is no base: its weights would
be sums, which another machine may round differently.
"""

import dataclasses
import fnmatch
import functools
import hashlib
from pathlib import Path

import keras
import numpy as np
from keras import ops

from keras_transformer.core.config import TrainingConfig
from keras_transformer.core.model.composite import parts_with_matrices
from keras_transformer.core.model.transformer import Transformer
from keras_transformer.core.training.checkpoint_files import CheckpointInfo
from keras_transformer.core.training.checkpoint_weights import read_checkpoint, read_variables
from keras_transformer.core.training.model_directory import ModelDescription
from keras_transformer.support.errors import require


def add_adapters(model: Transformer, rank: int, alpha: float) -> None:
    """Adds an adapter to a model, and freezes all other weights.

    Args:
        model: the model; its output is unchanged until the adapter is trained.
        rank: r.
        alpha: the adapter's updates are scaled by alpha / r.

    Raises:
        InputError: if r is not less than every matrix's width.
    """
    layers = adapted_layers(model)
    narrowest = min(min(layer.kernel.shape) for layer in layers)
    rule = f"must be less than {narrowest}, the smallest matrix width"
    require(rank < narrowest, "lora_rank", rule, rank)
    for variable in model.weights:
        variable.trainable = False
    for layer in layers:
        layer.enable_lora(rank, lora_alpha=alpha)


def adapted_layers(model: Transformer) -> list[keras.layers.Dense]:
    """Returns the layers that adapters change: all Dense layers in both stacks, by path.

    Checkpoints store their matrices in this order, which Keras' own lists do not guarantee.
    """
    layers = [*parts_with_matrices(model.encoder), *parts_with_matrices(model.decoder)]
    return sorted(layers, key=lambda layer: layer.path)


def adapter_matrices(model: Transformer) -> list[keras.Variable]:
    """Returns the matrices of a model's adapter: A, B, A, B, ..., in the order of its layers."""
    matrices = []
    for layer in adapted_layers(model):
        matrices += [layer.lora_kernel_a, layer.lora_kernel_b]
    return matrices


def saved_variables(model: Transformer, training: TrainingConfig) -> list[keras.Variable]:
    """Returns the model variables that a training checkpoint stores.

    Args:
        model: the model, with an adapter if `training` has a lora_rank.
        training: its training configuration.

    Returns:
        All of them; for an adapter, its matrices A, B, A, B, ..., and the random states.
    """
    if training.lora_rank is None:
        return model.variables
    return adapter_matrices(model) + random_states(model)


def random_states(model: Transformer) -> list[keras.Variable]:
    """Returns the variables of a model that are not weights."""
    weights = {id(weight) for weight in model.weights}
    return [variable for variable in model.variables if id(variable) not in weights]


def copy_base(base: Transformer, model: Transformer) -> None:
    """Copies a base's weights into a model with the same layers and an adapter."""
    values = {weight.path: weight for weight in base.weights}
    for weight in model.weights:
        if weight.path in values:
            weight.assign(values[weight.path])


def weights_fingerprint(model: Transformer) -> str:
    """Returns the SHA-256 of a model's configuration and weights, however stored."""
    digest = hashlib.sha256(model.config.fingerprint.encode())
    for weight in model.weights:
        digest.update(np.ascontiguousarray(ops.convert_to_numpy(weight)).data)
    return digest.hexdigest()


def merge_adapter(
    base: Transformer,
    model_dir: str | Path,
    checkpoint: str,
    description: ModelDescription,
    scale: float = 1.0,
) -> CheckpointInfo:
    """Adds an adapter's updates to the weights of its base.

    Args:
        base: the model that the adapter was trained for; modified in place.
        model_dir: the adapter's directory.
        checkpoint: the adapter's checkpoint; see restore_model. Several are averaged over W.
        description: the content of that directory's config.json.
        scale: a factor on the updates. Between 0 and 1, it interpolates between the base and the
            adapter: W_0 + scale alpha / r A B.

    Returns:
        Which of the adapter's checkpoints was used.

    Raises:
        InputError: if the checkpoint is missing, incomplete, or for another model or rank.
    """
    layers = adapted_layers(base)
    read = functools.partial(_read_changes, layers, description.training)
    changes, info = read_checkpoint(model_dir, checkpoint, description.model, read)
    for layer, change in zip(layers, changes, strict=True):
        layer.kernel.assign_add(scale * change)
    return info if scale == 1 else dataclasses.replace(info, adapter_scale=float(scale))


def _read_changes(
    layers: list[keras.layers.Dense], training: TrainingConfig, path: str
) -> list[np.ndarray]:
    """Reads alpha / r A B for each layer from a checkpoint: float32 [D, E]."""
    rank, scale = training.lora_rank, training.lora_alpha / training.lora_rank
    matrices = [array for array in read_variables(path) if array.dtype == np.float32]
    sizes = []
    for layer in layers:
        width, units = layer.kernel.shape
        sizes += [(width, rank), (rank, units)]
    rule = f"must contain an adapter of rank {rank} for this model"
    is_adapter = [matrix.shape for matrix in matrices] == sizes
    require(is_adapter, None, rule, "matrices with other shapes", path)
    pairs = zip(matrices[::2], matrices[1::2], strict=True)
    return [ops.convert_to_numpy(scale * ops.matmul(a, b)) for a, b in pairs]


def freeze(model: keras.Model, names: str) -> None:
    """Excludes parts of a model from training.

    Args:
        model: the model; its variables have paths such as
            "encoder/layer_0/feed_forward_norm/gamma".
        names: the parts, separated by commas, such as "embedding,encoder/layer_[01]". Each is one
            path component or several in a row, and may be an fnmatch pattern. Empty: none.

    Raises:
        InputError: if a name matches nothing, or nothing would be left to train.
    """
    variables = {f"/{variable.path}/": variable for variable in model.weights}
    for name in names.split(","):
        if not name:
            continue
        matching = fnmatch.filter(variables, f"*/{name}/*")
        parts = ", ".join(_parts(variables))
        require(matching != [], "freeze", f"must name parts of the model ({parts})", name)
        for path in matching:
            variables[path].trainable = False
    require(model.trainable_variables != [], "freeze", "must leave some parameters to train", names)


def _parts(paths) -> list[str]:
    """Returns the unique components of paths like "/encoder/last_norm/gamma/" except the last."""
    parts = []
    for path in paths:
        for part in path.split("/")[1:-2]:
            if part not in parts:
                parts.append(part)
    return parts
