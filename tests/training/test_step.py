import numpy as np
import tensorflow as tf

from keras_transformer.config import TrainingConfig, TransformerConfig
from keras_transformer.model.transformer import shift_right
from keras_transformer.training.step import SUMS, TrainingStep

CONFIG = TransformerConfig(vocab_size=9, num_layers=1, d_model=4, d_ff=4, num_heads=2, dropout=0.0)


def make_step(**training):
    return TrainingStep(CONFIG, TrainingConfig(**training), tf.distribute.get_strategy())


def iterator_of(*batches):
    dataset = tf.data.Dataset.from_generator(
        lambda: iter(batches), output_signature=(tf.TensorSpec([None, None], tf.int32),) * 2
    )
    return iter(dataset)


BATCH = (
    np.array([[4, 5, 2], [6, 2, 0]], "int32"),
    np.array([[7, 8, 4, 2], [5, 2, 0, 0]], "int32"),
)


def test_sums_equal_the_model_by_numpy():
    step = make_step(label_smoothing=0.1)
    source, target = (tf.constant(ids) for ids in BATCH)
    logits = step.model({"source": source, "target": shift_right(target)}).numpy().astype("float64")
    log_probabilities = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    plain = smoothed = 0.0
    for row, column in zip(*np.nonzero(BATCH[1]), strict=True):
        of_label = log_probabilities[row, column, BATCH[1][row, column]]
        plain -= of_label
        smoothed -= 0.9 * of_label + 0.1 * log_probabilities[row, column].mean()
    sums = dict(zip(SUMS, step.run(iterator_of(BATCH), tf.constant(1)).numpy(), strict=True))
    np.testing.assert_allclose(sums["loss"], plain, rtol=1e-5)
    np.testing.assert_allclose(sums["smoothed_loss"], smoothed, rtol=1e-5)
    assert (sums["target_tokens"], sums["source_tokens"]) == (6, 5)
    assert (sums["target_positions"], sums["source_positions"]) == (8, 6)


def test_gradient_is_that_of_the_mean_over_tokens():
    step = make_step(label_smoothing=0.0)
    source, target = (tf.constant(ids) for ids in BATCH)
    with tf.GradientTape() as tape:
        logits = step.model({"source": source, "target": shift_right(target)})
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(target, logits)
        mean = tf.reduce_sum(losses * tf.cast(target != 0, tf.float32)) / 6
    gradients = tape.gradient(mean, [v.value for v in step.model.trainable_variables])
    norm = tf.linalg.global_norm([tf.convert_to_tensor(gradient) for gradient in gradients])
    sums = step.run(iterator_of(BATCH), tf.constant(1)).numpy()
    np.testing.assert_allclose(sums[SUMS.index("gradient_norm")], norm, rtol=1e-4)


def test_one_trace_serves_all_shapes():
    step = make_step()
    shapes = [(2, 3, 4), (1, 7, 2), (5, 2, 9), (1, 1, 1)]
    batches = [(np.full((b, s), 4, "int32"), np.full((b, t), 5, "int32")) for b, s, t in shapes]
    step.run(iterator_of(*batches), tf.constant(1))
    step.run(iterator_of(*batches), tf.constant(4))
    assert step.run.experimental_get_tracing_count() == 1


def test_batch_of_padding_changes_no_weight_by_much_and_none_to_nan():
    step = make_step()
    empty = (np.zeros((0, 3), "int32"), np.zeros((0, 4), "int32"))
    padding = (np.zeros((2, 3), "int32"), np.zeros((2, 4), "int32"))
    sums = step.run(iterator_of(empty, padding), tf.constant(2)).numpy()
    np.testing.assert_array_equal(sums[:4], 0)
    assert all(np.isfinite(v.numpy()).all() for v in step.model.trainable_variables)
