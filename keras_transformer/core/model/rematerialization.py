"""Recomputes a layer in the backward pass instead of storing its activations."""

import keras
from keras import ops


def rematerialized(layer: keras.layers.Layer, *inputs, **masks):
    """Calls a layer in training, storing only its inputs for the backward pass.

    The backward pass recomputes the layer, with the same result. This adds about a third to the
    time of a training step, but saves the memory for the layer's activations, which for long
    sentences are mostly attention weights.

    Dropout must draw the same masks both times. So its random seeds are drawn once, here, and both
    computations are functions of tensors only.

    Args:
        layer: the layer, called with `training=True`.
        inputs: tensors, the positional arguments of the call; gradients flow to them.
        masks: the other arguments of the call; no gradients flow to them.

    Returns:
        The output of the layer.
    """
    seeds_by_state = {}
    for part in layer._flatten_layers():
        seed_generator = getattr(part, "seed_generator", None)
        if seed_generator is not None:
            seeds_by_state[id(seed_generator.state)] = seed_generator.next()
    # The states of the seed generators, and frozen weights.
    fixed = []
    for variable in layer.non_trainable_variables:
        seed = seeds_by_state.get(id(variable))
        fixed.append(ops.convert_to_tensor(variable) if seed is None else seed)
    # Indexing converts the variables to tensors: otherwise TensorFlow would pass the variable
    # itself outside a graph, and count its gradient twice.
    weights = [ops.convert_to_tensor(variable)[...] for variable in layer.trainable_variables]

    @keras.remat
    def compute(*tensors):
        layer_inputs, layer_weights = tensors[: len(inputs)], tensors[len(inputs) :]
        outputs, _ = layer.stateless_call(
            layer_weights, fixed, *layer_inputs, **masks, training=True
        )
        return outputs

    return compute(*inputs, *weights)
