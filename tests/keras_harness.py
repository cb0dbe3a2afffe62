"""What Keras promises of every layer and model, checked for any of them."""

import json

import keras
import numpy as np


def symbolic(value):
    return keras.Input(value.shape[1:], batch_size=None, dtype=keras.ops.dtype(value))


def numpy_of(outputs):
    return [keras.ops.convert_to_numpy(part) for part in keras.tree.flatten(outputs)]


def same_outputs(one, other):
    for part, same in zip(numpy_of(one), numpy_of(other), strict=True):
        np.testing.assert_array_equal(same, part)


def round_trip(thing):
    """Serializes and deserializes an object by its registered name, through JSON."""
    config = json.loads(json.dumps(keras.saving.serialize_keras_object(thing)))
    assert config["registered_name"].startswith("keras_transformer>")
    same = keras.saving.deserialize_keras_object(config)
    assert type(same) is type(thing)
    assert same.get_config() == thing.get_config()
    return same


def check_layer(make, inputs, weights, folder, **options):
    """Holds a layer to what Keras promises.

    Args:
        make: returns a new layer; takes `dtype`.
        inputs: a list of arrays, the call's positional arguments.
        weights: how many numbers the layer's trainable weights hold.
        folder: for files.
        options: further arguments of the call.
    """
    layer = make()
    round_trip(layer)
    outputs = layer(*inputs, **options)
    assert sum(np.prod(weight.shape, dtype=int) for weight in layer.trainable_weights) == weights
    assert not layer.losses

    # In a functional model; symbolic shapes and dtypes are those of the values.
    symbols = [symbolic(value) for value in inputs]
    results = layer(*symbols, **options)
    for found, value in zip(keras.tree.flatten(results), keras.tree.flatten(outputs), strict=True):
        assert found.dtype == keras.ops.dtype(value)
        assert len(found.shape) == len(value.shape) and found.shape[-1] in (None, value.shape[-1])
    model = keras.Model(symbols, results)
    same_outputs(outputs, model(inputs))
    model.save(folder / "layer.keras")
    same_outputs(outputs, keras.models.load_model(folder / "layer.keras")(inputs))
    model.save_weights(folder / "layer.weights.h5")
    clone = keras.models.clone_model(model)
    clone.load_weights(folder / "layer.weights.h5")
    same_outputs(outputs, clone(inputs))


def check_layer_in_bfloat16(make, inputs, **options):
    """Holds a layer to activations of bfloat16 and variables of float32; arguments as above."""
    outputs, narrow = make()(*inputs, **options), make(dtype="mixed_bfloat16")
    for part, wide in zip(
        keras.tree.flatten(narrow(*inputs, **options)), keras.tree.flatten(outputs), strict=True
    ):
        wanted = "bfloat16" if keras.ops.dtype(wide) == "float32" else keras.ops.dtype(wide)
        assert keras.ops.dtype(part) in (wanted, "float32")
    assert all(weight.dtype == "float32" for weight in narrow.trainable_weights)
