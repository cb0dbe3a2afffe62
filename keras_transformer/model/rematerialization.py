"""Layers that keep only their inputs for the backward pass, and compute the rest once more there.

Costs another forward pass, about a third of a training step, and saves the memory of all that is
within a layer: for long sentences mostly attention weights, which grow with the square of length.
"""

import keras
from keras import ops


def rematerialized(layer: keras.layers.Layer, *inputs, **masks):
    """layer(*inputs, **masks, training=True), with the same result and the same gradients.

    Dropout must draw the same masks both times. So its random numbers are drawn here, once, and
    both computations are functions of tensors alone. Gradients flow to `inputs`, not to `masks`.
    """
    draws = {
        id(part.seed_generator.state): part.seed_generator.next()
        for part in layer._flatten_layers()
        if getattr(part, "seed_generator", None) is not None
    }
    seeds = [draws[id(state)] for state in layer.non_trainable_variables]
    weights = [ops.convert_to_tensor(variable) for variable in layer.trainable_variables]

    @keras.remat
    def compute(*tensors):
        states, weights = tensors[: len(inputs)], tensors[len(inputs) :]
        outputs, _ = layer.stateless_call(weights, seeds, *states, **masks, training=True)
        return outputs

    return compute(*inputs, *weights)
