"""Freezes parts of a model during training."""

import fnmatch

import keras

from keras_transformer.support.errors import require


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
