import dataclasses
import functools

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.core.config import TransformerConfig
from keras_transformer.core.model import transformer
from tests import numpy_reference

CONFIG = TransformerConfig(
    vocab_size=13, num_layers=1, d_model=8, d_ff=12, num_heads=2, d_k=3, d_v=5
)


@functools.cache
def random_model(config=CONFIG, precision="float32"):
    """A model whose every weight is random, gains and biases too; no test changes it."""
    dtype = precision if precision == "float32" else f"mixed_{precision}"
    model = transformer.Transformer(config, dtype=dtype)
    rng = np.random.default_rng(3)
    for variable in model.trainable_variables:
        variable.assign(rng.normal(size=variable.shape, scale=0.5))
    return model


DROPOUT = {"dropout": 0.3, "attention_dropout": 0.2, "activation_dropout": 0.1}


def logits(model, source, target):
    inputs = {"source": np.array(source, "int32"), "target": np.array(target, "int32")}
    return model(inputs).numpy()


# Settings that the shapes of the weights do not show.
READ_FROM_THE_CONFIG = (
    "num_layers",
    "num_heads",
    "decoder_layers",
    "norm",
    "positions",
    "attention_window",
    "activation",
    "scale_embeddings",
    "norm_epsilon",
    "decoder_self_attention",
    "starts_with_zeros",
)
SOURCE, TARGET = [4, 9, 12, 5, 7, 2], [1, 7, 3, 11, 8]


def assert_equals_numpy(config):
    model = random_model(config)
    weights = {v.path: v.numpy() for v in model.trainable_variables}
    settings = {name: getattr(config, name) for name in READ_FROM_THE_CONFIG}
    expected = numpy_reference.transformer(weights, SOURCE, TARGET, **settings)
    np.testing.assert_allclose(logits(model, [SOURCE], [TARGET])[0], expected, atol=2e-5)
    return weights


@pytest.mark.parametrize(
    "settings",
    [
        {"num_layers": 2},
        {"norm": "pre", "positions": "learned", "max_positions": 9, "activation": "swish"},
        {"positions": "learned", "attention_window": 2, "attention_bias": True},
        {"norm": "pre", "attention_window": 3, "decoder_layers": 2, "norm_epsilon": 0.01},
        {"positions": "marian", "activation": "gelu", "attention_bias": True, "logits_bias": True},
        {"logits_bias": True, "scale_embeddings": False, "norm_epsilon": 0.01},
        {"logits_bias": True, "source_vocab_size": 17, "num_layers": 2, "decoder_layers": 1},
        {"norm": "pre", "logits_bias": True, "tie_embeddings": False, "attention_bias": True},
        {"activation": "swiglu", "norm_epsilon": 0.01},
        {"norm": "pre", "activation": "swiglu", "positions": "rotary", "d_k": 6},
        {"decoder_self_attention": "ssru", "num_layers": 2, "positions": "marian"},
        {"decoder_self_attention": "ssru", "norm": "pre", "attention_window": 3},
        {"starts_with_zeros": True, "tie_embeddings": False},
    ],
    ids=lambda settings: " ".join(settings) or "defaults",
)
def test_whole_model_equals_numpy(settings):
    config = dataclasses.replace(CONFIG, **settings)
    weights = assert_equals_numpy(config)
    biases = sum(path.endswith(("embedding/bias", "output/bias")) for path in weights)
    attentions = config.num_layers + 2 * (config.decoder_layers or config.num_layers)
    assert biases == config.logits_bias + config.attention_bias * attentions


@pytest.mark.parametrize(
    ("source_vocab_size", "tie_embeddings", "matrices"),
    [(None, True, 1), (None, False, 3), (17, True, 2), (17, False, 3), (13, True, 2)],
)
def test_matrices_of_embeddings_and_softmax(source_vocab_size, tie_embeddings, matrices):
    settings = {"source_vocab_size": source_vocab_size, "tie_embeddings": tie_embeddings}
    weights = assert_equals_numpy(dataclasses.replace(CONFIG, **settings))
    assert sum(path.endswith("embedding/embeddings") for path in weights) == matrices


def test_paths_of_the_variables():
    """Frozen parts, imported models and checkpoints rely on these names."""
    paths = [
        v.path
        for v in random_model(dataclasses.replace(CONFIG, norm="pre", num_layers=2)).variables
    ]
    for path in (
        "embedding/embeddings",
        "encoder/layer_0/self_attention/query/kernel",
        "encoder/layer_1/self_attention_norm/gamma",
        "encoder/layer_0/feed_forward/inner/kernel",
        "encoder/layer_0/feed_forward/outer/bias",
        "encoder/last_norm/beta",
        "decoder/layer_1/cross_attention/output/kernel",
        "decoder/layer_0/cross_attention_norm/beta",
        "decoder/layer_1/feed_forward_norm/gamma",
        "decoder/last_norm/gamma",
    ):
        assert path in paths


VARIANTS = pytest.mark.parametrize(
    "settings",
    [
        {},
        {"norm": "pre", "positions": "learned"},
        {"attention_window": 3},
        {"decoder_self_attention": "ssru"},
    ],
    ids=lambda settings: " ".join(settings) or "defaults",
)


@VARIANTS
def test_padding_changes_nothing(settings):
    model = random_model(dataclasses.replace(CONFIG, **settings))
    alone = logits(model, [[4, 9, 2]], [[1, 7]])[0]
    batched = logits(model, [[4, 9, 2, 0, 0], [3, 4, 5, 6, 2]], [[1, 7, 0, 0], [1, 5, 6, 7]])
    np.testing.assert_allclose(batched[0, :2], alone, atol=1e-5)


@VARIANTS
def test_future_changes_nothing_and_the_past_does(settings):
    model = random_model(dataclasses.replace(CONFIG, **settings))
    one = logits(model, [[4, 9, 2]], [[1, 7, 8, 5]])[0]
    other = logits(model, [[4, 9, 2]], [[1, 7, 6, 12]])[0]
    np.testing.assert_allclose(one[:2], other[:2], atol=1e-6)
    assert np.abs(one[2:] - other[2:]).max() > 1e-3


def test_shift_right():
    shifted = transformer.shift_right(tf.constant([[5, 6, 2], [7, 2, 0]]))
    np.testing.assert_array_equal(shifted, [[1, 5, 6], [1, 7, 2]])


def test_dropout_acts_in_training_only():
    model = random_model(dataclasses.replace(CONFIG, **DROPOUT))
    inputs = {"source": np.array([[4, 9, 2]], "int32"), "target": np.array([[1, 7]], "int32")}
    np.testing.assert_array_equal(model(inputs), model(inputs, training=False))
    assert np.abs(model(inputs, training=True) - model(inputs, training=True)).max() > 1e-3


@pytest.mark.parametrize("precision", ["bfloat16", pytest.param("float16", marks=pytest.mark.slow)])
def test_narrow_activations_give_float32_logits_near_the_exact_ones(precision):
    config = dataclasses.replace(CONFIG, num_layers=2)
    exact, narrow = random_model(config), random_model(config, precision)
    arguments = np.random.default_rng(0).integers(3, 13, size=(2, 8, 12))
    found, expected = logits(narrow, *arguments), logits(exact, *arguments)
    assert found.dtype == np.float32
    errors = (found - expected) / expected.std()
    # Processors differ: the errors that were measured are about a third of these bounds.
    mean, most = (0.03, 0.3) if precision == "bfloat16" else (0.003, 0.05)
    assert np.sqrt((errors**2).mean()) < mean
    assert np.abs(errors).max() < most


def gradients_of(model, jit_compile=False, run_eagerly=False):
    """The gradients of a training pass, by a graph unless it runs eagerly."""
    inputs = {
        "source": tf.constant([[4, 9, 2, 0], [5, 6, 7, 2]]),
        "target": tf.constant([[1, 7, 8, 2], [1, 5, 3, 2]]),
    }

    def gradients():
        with tf.GradientTape() as tape:
            total = tf.reduce_mean(model(inputs, training=True) ** 2)
        return tape.gradient(total, [v.value for v in model.trainable_variables])

    if not run_eagerly:
        gradients = tf.function(gradients, jit_compile=jit_compile)
    return [tf.convert_to_tensor(gradient).numpy() for gradient in gradients()]


def assert_same_gradients(found, expected):
    largest = max(np.abs(gradient).max() for gradient in expected)
    assert largest > 1e-3
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5 * largest)


WINDOW = {"norm": "pre", "attention_window": 3}


@pytest.mark.slow  # compiles with XLA
@pytest.mark.parametrize("settings", [{}, pytest.param(WINDOW, marks=pytest.mark.slow)])
def test_training_pass_compiled_by_xla(settings):
    config = dataclasses.replace(CONFIG, dropout=0.0, **settings)
    model = random_model(config)
    assert_same_gradients(gradients_of(model, jit_compile=True), gradients_of(model))


@pytest.mark.slow
def test_training_pass_with_dropout_compiled_by_xla():
    model = random_model(dataclasses.replace(CONFIG, **DROPOUT))
    seeds = [v for v in model.variables if "seed_generator" in v.path]
    states = [v.numpy() for v in seeds]
    compiled = gradients_of(model, jit_compile=True)
    for variable, state in zip(seeds, states, strict=True):
        variable.assign(state)
    assert_same_gradients(compiled, gradients_of(model))


@pytest.mark.parametrize(
    ("frozen", "run_eagerly"),
    [
        (True, True),
        pytest.param(False, True, marks=pytest.mark.slow),
        pytest.param(True, False, marks=pytest.mark.slow),
        pytest.param(False, False, marks=pytest.mark.slow),
    ],
)
def test_rematerialization_changes_no_gradient(frozen, run_eagerly):
    config = dataclasses.replace(CONFIG, **DROPOUT)
    found = []
    for rematerialize in (True, False):
        model = transformer.Transformer(config, rematerialize=rematerialize)
        rng = np.random.default_rng(3)
        for variable in model.variables:
            if variable.trainable:
                variable.assign(rng.normal(size=variable.shape, scale=0.5))
            else:
                variable.assign(rng.integers(1000, size=variable.shape))  # a seed
        if frozen:
            model.encoder.layers[0].trainable = False
            dense = model.decoder.layers[0].self_attention.query_dense
            dense.enable_lora(2)
            dense.lora_kernel_a.assign(rng.normal(size=dense.lora_kernel_a.shape))
        found.append(gradients_of(model, run_eagerly=run_eagerly))
    assert_same_gradients(*found)


def test_a_code_is_an_input_of_the_decoder():
    """As in a model without codes whose targets begin with them."""
    plain = random_model(dataclasses.replace(CONFIG, positions="m2m100"))
    coded = transformer.Transformer(dataclasses.replace(plain.config, decoder_reads_code=True))
    for variable, other in zip(coded.trainable_variables, plain.trainable_variables, strict=True):
        variable.assign(other)
    code, *text = SOURCE
    bos, *target = TARGET
    expected = logits(plain, [text], [[bos, code, *target]])[:, 1:]
    np.testing.assert_allclose(logits(coded, [SOURCE], [TARGET]), expected, atol=1e-5)
    other_code = logits(coded, [[code + 1, *text]], [TARGET])
    assert np.abs(other_code - expected).max() > 0.05
