import dataclasses
import functools

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.core.config import TrainingConfig, TransformerConfig
from keras_transformer.core.model.transformer import shift_right
from keras_transformer.core.training.checkpoint_files import StepSums
from keras_transformer.core.training.step import TrainingStep, accumulate_gradients, zero_sums

CONFIG = TransformerConfig(vocab_size=9, num_layers=1, d_model=4, d_ff=4, num_heads=2, dropout=0.0)


@functools.cache
def traced_step(logits_bias, **training):
    """A step, and its variables with the values that they have at first."""
    config = dataclasses.replace(CONFIG, logits_bias=logits_bias)
    step = TrainingStep(config, TrainingConfig(**training), tf.distribute.get_strategy())
    if logits_bias:
        step.model.logits_embedding.bias.assign(np.linspace(-2, 3, CONFIG.vocab_size))
    variables = [*step.model.variables, *step.optimizer.variables]
    return step, [(variable, variable.numpy()) for variable in variables]


def make_step(logits_bias=False, **training):
    """A step as it is at first: equal ones are traced once."""
    step, initial = traced_step(logits_bias, **training)
    for variable, value in initial:
        variable.assign(value)
    return step


def iterator_of(*batches):
    dataset = tf.data.Dataset.from_generator(
        lambda: iter(batches), output_signature=(tf.TensorSpec([None, None], tf.int32),) * 2
    )
    return iter(dataset)


def take_steps(step, steps, *batches, sums=None):
    """Takes steps over the batches, and gives the sums as floats."""
    sums = zero_sums() if sums is None else sums
    sums = step.run(iterator_of(*batches), tf.constant(steps), sums)
    return tf.nest.map_structure(float, sums)


BATCH = (
    np.array([[4, 5, 2], [6, 2, 0]], "int32"),
    np.array([[7, 8, 4, 2], [5, 2, 0, 0]], "int32"),
)


@pytest.mark.parametrize("logits_bias", [False, True])
def test_sums_equal_the_model_by_numpy(logits_bias):
    step = make_step(logits_bias)
    source, target = (tf.constant(ids) for ids in BATCH)
    logits = step.model({"source": source, "target": shift_right(target)}).numpy().astype("float64")
    log_probabilities = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    plain = smoothed = 0.0
    for row, column in zip(*np.nonzero(BATCH[1]), strict=True):
        of_label = log_probabilities[row, column, BATCH[1][row, column]]
        plain -= of_label
        smoothed -= 0.9 * of_label + 0.1 * log_probabilities[row, column].mean()
    sums = take_steps(step, 1, BATCH)
    np.testing.assert_allclose(sums.loss, plain, rtol=1e-5)
    np.testing.assert_allclose(sums.smoothed_loss, smoothed, rtol=1e-5)
    assert (sums.target_tokens, sums.source_tokens) == (6, 5)
    assert (sums.target_positions, sums.source_positions) == (8, 6)
    assert (sums.skipped, sums.skipped_in_row) == (0, 0)


@pytest.mark.parametrize("logits_bias", [False, True])
def test_gradient_is_that_of_the_mean_over_tokens(logits_bias):
    step = make_step(logits_bias)
    source, target = (tf.constant(ids) for ids in BATCH)
    with tf.GradientTape() as tape:
        logits = step.model({"source": source, "target": shift_right(target)})
        labels = 0.9 * tf.one_hot(target, CONFIG.vocab_size) + 0.1 / CONFIG.vocab_size
        losses = tf.nn.softmax_cross_entropy_with_logits(labels, logits)
        mean = tf.reduce_sum(losses * tf.cast(target != 0, tf.float32)) / 6
    gradients = tape.gradient(mean, [v.value for v in step.model.trainable_variables])
    norm = tf.linalg.global_norm([tf.convert_to_tensor(gradient) for gradient in gradients])
    sums = take_steps(step, 1, BATCH)
    np.testing.assert_allclose(sums.gradient_norm, norm, rtol=1e-4)


def test_a_step_over_a_batch_of_the_caller_is_the_same():
    sums = take_steps(make_step(), 1, BATCH)
    expected = [variable.numpy() for variable in make_step().model.variables]
    step = make_step()
    same = tf.nest.map_structure(float, step.run_batch(*map(tf.constant, BATCH)))
    assert same == sums
    changed = [variable.numpy() for variable in step.model.variables]
    assert any(not np.array_equal(one, other) for one, other in zip(changed, expected, strict=True))


def test_one_trace_serves_all_shapes():
    step = make_step()
    shapes = [(2, 3, 4), (1, 7, 2), (5, 2, 9), (1, 1, 1)]
    batches = [(np.full((b, s), 4, "int32"), np.full((b, t), 5, "int32")) for b, s, t in shapes]
    take_steps(step, 1, *batches)
    take_steps(step, 4, *batches)
    assert step.run.experimental_get_tracing_count() == 1


def test_batch_of_padding_changes_no_weight_by_much_and_none_to_nan():
    step = make_step()
    empty = (np.zeros((0, 3), "int32"), np.zeros((0, 4), "int32"))
    padding = (np.zeros((2, 3), "int32"), np.zeros((2, 4), "int32"))
    sums = take_steps(step, 2, empty, padding)
    losses_and_tokens = (sums.smoothed_loss, sums.loss, sums.target_tokens, sums.source_tokens)
    assert losses_and_tokens == (0, 0, 0, 0)
    assert sums.skipped == 0
    assert all(np.isfinite(v.numpy()).all() for v in step.model.trainable_variables)


def values(variables):
    return [variable.numpy().copy() for variable in variables]


@pytest.mark.parametrize(
    "precision", ["float32", pytest.param("bfloat16", marks=pytest.mark.slow), "float16"]
)
def test_steps_without_finite_gradients_are_skipped_and_counted(precision):
    config = dataclasses.replace(CONFIG, tie_embeddings=False)
    step = TrainingStep(config, TrainingConfig(precision=precision), tf.distribute.get_strategy())
    matrix = step.model.embedding.embeddings
    spoiled = matrix.numpy()
    spoiled[8] = np.nan
    matrix.assign(spoiled)
    bad = (np.array([[8, 4, 2]], "int32"), np.array([[7, 8, 2]], "int32"))
    optimizer = step.optimizer
    before = values([*step.model.trainable_variables, *optimizer._momentums])
    sums = step.run(iterator_of(bad), tf.constant(1), zero_sums())
    assert tf.nest.map_structure(float, sums) == StepSums(skipped=1, skipped_in_row=1)
    after = values([*step.model.trainable_variables, *optimizer._momentums])
    for old, new in zip(before, after, strict=True):
        np.testing.assert_array_equal(new, old)
    assert int(optimizer.iterations) == 0

    sums = take_steps(step, 3, bad, BATCH, bad, sums=sums)
    assert (sums.skipped, sums.skipped_in_row) == (3, 1)
    assert (sums.target_tokens, sums.source_tokens) == (6, 5)
    assert np.isfinite(sums.smoothed_loss) and sums.gradient_norm > 0
    assert int(optimizer.iterations) == 1
    assert any((moment.numpy() != 0).any() for moment in optimizer._momentums)
    if precision == "float16":
        assert float(optimizer.loss_scale) == 2**15 / 2**3


def test_sums_do_not_depend_on_how_steps_are_parted():
    batches = [BATCH, BATCH[::-1]] * 3
    step = make_step()
    whole = step.run(iterator_of(*batches), tf.constant(6), zero_sums())
    step, iterator = make_step(), iterator_of(*batches)
    sums = step.run(iterator, tf.constant(1), zero_sums())
    sums = step.run(iterator, tf.constant(3), sums)
    sums = step.run(iterator, tf.constant(2), sums)
    for in_parts, at_once in zip(sums, whole, strict=True):
        assert in_parts.dtype == at_once.dtype == tf.float64
        assert float(in_parts) == float(at_once)


@pytest.mark.slow  # a step of its own
def test_rematerialized_step_keeps_less():
    """Of a layer, the backward pass reads nothing that the forward pass has computed."""
    layers = []
    for rematerialize in (False, True):
        step = TrainingStep(
            CONFIG, TrainingConfig(rematerialize=rematerialize), tf.distribute.get_strategy()
        )
        ids = tf.constant(BATCH[0])
        graph = tf.function(step._gradients).get_concrete_function(ids, ids, tf.constant(5.0)).graph
        softmaxes = [op for op in graph.get_operations() if op.type == "Softmax"]
        layers.append(len(softmaxes))
    assert layers == [3, 6]  # one in the encoder, two in the decoder; and once more of each


def test_frozen_parts_stay_as_they_are():
    step = make_step(freeze="embedding,encoder/layer_0/feed*,*_norm", warmup_steps=1)
    before = {weight.path: weight.numpy() for weight in step.model.weights}
    take_steps(step, 1, BATCH)
    same = {w.path for w in step.model.weights if np.array_equal(w.numpy(), before[w.path])}
    frozen = ("embedding/", "encoder/layer_0/feed_forward", "_norm/")
    assert same == {path for path in before if any(part in path for part in frozen)}
    assert 0 < len(same) < len(before)


@pytest.mark.parametrize("parts", [2, 3, 4])
def test_every_row_is_in_one_part(parts):
    source = tf.constant([[1], [10], [100], [1000], [10000]])
    target = 2 * source
    sizes = []

    def gradients_of(source, target, tokens):
        sizes.append(source.shape[0])
        sums = tf.cast(tf.reduce_sum(source), tf.float32), tf.reduce_sum(target)
        return {"losses": sums, "divided": tf.cast(sums[0], tf.float32) / tokens}

    total = accumulate_gradients(gradients_of, source, target, tf.constant(4.0), parts)
    assert float(total["losses"][0]) == 11111
    assert int(total["losses"][1]) == 22222
    assert float(total["divided"]) == 11111 / 4
    assert sizes == [len(range(part, 5, parts)) for part in range(parts)]


def test_parts_are_added_in_their_order():
    """In float32, the sum depends on the order."""
    values = np.array([1e8, 1.0, -1e8, 1.0], "float32")

    def gradients_of(source, target, tokens):
        return tf.gather(values, source[0, 0])

    rows = tf.constant([[0], [1], [2], [3]])
    total = accumulate_gradients(gradients_of, rows, rows, tf.constant(1.0), 4)
    assert float(total) == float(((values[0] + values[1]) + values[2]) + values[3]) == 1.0
