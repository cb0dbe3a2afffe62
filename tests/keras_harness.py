"""Checks that a layer or model does everything that Keras promises for all of them.

Throughout, `make` returns a new layer and accepts `dtype`; `inputs` is a list of arrays, the
positional arguments of the call; and `options` are its keyword arguments.
"""

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


def close_outputs(found, expected, share):
    """Checks that each output's largest error is within a share of its standard deviation."""
    for part, exact in zip(numpy_of(found), numpy_of(expected), strict=True):
        assert np.abs(part - exact).max() <= share * exact.std()


def round_trip(thing):
    """Serializes and deserializes an object by its registered name, through JSON."""
    config = json.loads(json.dumps(keras.saving.serialize_keras_object(thing)))
    assert config["registered_name"].startswith("keras_transformer>")
    same = keras.saving.deserialize_keras_object(config)
    assert type(same) is type(thing)
    assert same.get_config() == thing.get_config()
    return same


def functional(layer, inputs, **options):
    """Makes a functional model of one layer."""
    symbols = [symbolic(value) for value in inputs]
    return keras.Model(symbols, layer(*symbols, **options))


def randomize(layer, seed=0):
    """Sets every trainable weight to random values, even biases and gains, initially 0 and 1."""
    rng = np.random.default_rng(seed)
    for variable in layer.trainable_variables:
        variable.assign(rng.normal(size=variable.shape, scale=0.5))


def count(weights):
    """Counts the numbers in weights."""
    return sum(np.prod(weight.shape, dtype=int) for weight in weights)


def check_layer(make, inputs, weights, folder, **options):
    """Checks that a layer does what Keras promises.

    Args:
        make, inputs, options: see the module's docstring.
        weights: number of numbers in the layer's trainable weights.
        folder: for files.
    """
    layer = make()
    round_trip(layer)
    layer(*inputs, **options)
    randomize(layer)
    outputs = layer(*inputs, **options)
    round_trip(layer)  # now that it is built
    assert count(layer.trainable_weights) == weights
    assert all(weight.path.startswith(f"{layer.name}/") for weight in layer.trainable_weights)
    assert not layer.losses

    # In a functional model, symbolic shapes and dtypes match those of the values.
    symbols = [symbolic(value) for value in inputs]
    results = layer(*symbols, **options)
    for found, value in zip(keras.tree.flatten(results), keras.tree.flatten(outputs), strict=True):
        assert found.dtype == keras.ops.dtype(value)
        assert len(found.shape) == len(value.shape) and found.shape[-1] in (None, value.shape[-1])
    model = keras.Model(symbols, results)
    same_outputs(outputs, model(inputs))
    lines = []
    model.summary(line_length=200, print_fn=lines.append)
    summary = "\n".join(lines)
    assert layer.name in summary and f"Total params: {model.count_params():,}" in summary

    model.save(folder / "layer.keras")
    loaded = keras.models.load_model(folder / "layer.keras")
    same_outputs(outputs, loaded(inputs))
    paths = [weight.path for weight in layer.trainable_weights]
    assert [weight.path for weight in loaded.trainable_weights] == paths
    model.save_weights(folder / "layer.weights.h5")
    clone = keras.models.clone_model(model)
    clone.load_weights(folder / "layer.weights.h5")
    same_outputs(outputs, clone(inputs))


def check_layer_in_bfloat16(make, inputs, **options):
    """Checks that a layer has bfloat16 activations and float32 variables in mixed precision."""
    outputs, narrow = make()(*inputs, **options), make(dtype="mixed_bfloat16")
    for part, wide in zip(
        keras.tree.flatten(narrow(*inputs, **options)), keras.tree.flatten(outputs), strict=True
    ):
        wanted = "bfloat16" if keras.ops.dtype(wide) == "float32" else keras.ops.dtype(wide)
        assert keras.ops.dtype(part) in (wanted, "float32")
    assert all(weight.dtype == "float32" for weight in narrow.trainable_weights)


def sublayers_with_matrices(layer):
    """Returns the Dense and Embedding layers in a layer or model, itself included."""
    kinds = (keras.layers.Dense, keras.layers.Embedding)
    return [part for part in layer._flatten_layers() if isinstance(part, kinds)]


def enable_lora(layer, rank):
    """Enables LoRA wherever Keras supports it; returns the number of added weights."""
    added = 0
    for part in sublayers_with_matrices(layer):
        matrix = part.embeddings if isinstance(part, keras.layers.Embedding) else part.kernel
        added += rank * sum(matrix.shape)
        part.enable_lora(rank)
    return added


def check_lora(make, inputs, matrices, folder, **options):
    """Checks `enable_lora` on a layer's Dense and Embedding sublayers.

    Args:
        make, inputs, options: see the module's docstring.
        matrices: number of numbers in the sublayers' matrices.
        folder: for files.
    """
    layer = make()
    model = functional(layer, inputs, **options)
    randomize(layer)
    outputs = model(inputs)
    weights = count(layer.trainable_weights)
    added = enable_lora(layer, 1)
    same_outputs(outputs, model(inputs))
    assert count(layer.trainable_weights) == weights - matrices + added

    randomize(layer, seed=1)
    outputs = model(inputs)
    model.save(folder / "lora.keras")
    loaded = keras.models.load_model(folder / "lora.keras")  # LoRA is merged into the matrices
    close_outputs(loaded(inputs), outputs, 1e-5)


def check_int8(make, inputs, matrices, folder, **options):
    """Checks `quantize("int8")` on a model of a layer; takes the arguments of `check_lora`."""
    model = functional(make(), inputs, **options)
    randomize(model)
    outputs = model(inputs)
    model.quantize("int8")
    assert count(w for w in model.weights if w.dtype == "int8") == matrices
    close_outputs(model(inputs), outputs, 0.1)
    model.save_weights(folder / "int8.weights.h5")

    clone = functional(make(), inputs, **options)
    clone.quantize("int8")
    clone.load_weights(folder / "int8.weights.h5")
    same_outputs(model(inputs), clone(inputs))

    for _ in range(2):  # a loaded model can be saved again
        model.save(folder / "int8.keras")
        model = keras.models.load_model(folder / "int8.keras")
        same_outputs(model(inputs), clone(inputs))
