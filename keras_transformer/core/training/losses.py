"""The label-smoothed cross-entropy of section 5.4, computed together with the logits.

The smoothed target distribution mixes the label's one-hot with the uniform distribution over the
whole vocabulary (Szegedy et al. 2016): q = (1 - epsilon) onehot + epsilon / V. With l the logits at
a position, y its label and lse = log sum exp(l),

    smoothed = -sum_v q_v (l_v - lse) = lse - (1 - epsilon) l_y - epsilon mean(l)
    d smoothed / d l = softmax(l) - q

Losses are in nats per token. Not holding all logits adds half to the speed of a step, with the
memory in docs/diary.md. The blocks of rows are unrolled, because keras.ops.scan needs outputs with
the shape of the carry under TensorFlow.
"""

import math

import keras
from keras import ops

from keras_transformer.core.config import PAD_ID
from keras_transformer.support.errors import require

NUM_BLOCKS = 8  # number of rows per block; only one block's logits are in memory at a time


@keras.saving.register_keras_serializable(package="keras_transformer")
class LabelSmoothedCrossEntropy(keras.losses.Loss):
    """The label-smoothed cross-entropy, averaged over the tokens that are not padding.

    For `model.compile`. The training loop sums the same loss over replicas and computes it together
    with the logits, in less memory (`projected_cross_entropy`).

    Args:
        label_smoothing: epsilon_ls, in [0, 1).
        reduction: "mean_with_sample_weight", the mean over the tokens (weighted if a sample_weight
            is given); "sum"; or None for each token's loss.

    Call arguments:
        y_true: int [B, T], labels; 0 is padding.
        y_pred: float [B, T, V], logits.
        sample_weight: broadcast to [B, T], a factor on each token, or None. Factors on sentences
            are [B, 1].

    Returns:
        float32 scalar; [B, T], 0 at padding, if `reduction` is None.
    """

    def __init__(
        self,
        label_smoothing: float = 0.1,
        reduction: str | None = "mean_with_sample_weight",
        name: str | None = "label_smoothed_cross_entropy",
        **kwargs,
    ):
        in_range = 0 <= label_smoothing < 1
        require(in_range, "label_smoothing", "must be in [0, 1)", label_smoothing)
        super().__init__(name=name, reduction=reduction, **kwargs)
        self.label_smoothing = label_smoothing

    def __call__(self, y_true, y_pred, sample_weight=None):
        return super().__call__(y_true, y_pred, token_weights(y_true, sample_weight))

    def call(self, y_true, y_pred):
        logits, labels = as_tensor(y_pred, "float32"), as_tensor(y_true, "int32")
        wanted, received = tuple(logits.shape)[:-1], tuple(labels.shape)
        fits = len(wanted) == len(received) and all(
            None in pair or pair[0] == pair[1] for pair in zip(wanted, received, strict=True)
        )
        require(fits, "y_true", f"must have a label for each row of logits, {wanted}", received)
        return token_losses(logits, labels, self.label_smoothing)

    def get_config(self):
        return {**super().get_config(), "label_smoothing": self.label_smoothing}


def as_tensor(values, dtype: str):
    """Casts labels or logits: an array, a tensor, or a tf.Variable.

    Keras' `cast` returns a variable that already has the dtype; indexing reads its value.
    """
    return ops.cast(values, dtype)[...]


def token_weights(labels, sample_weight=None):
    """Returns each token's weight in a mean: 0 for padding, 1 times sample_weight otherwise.

    Args:
        labels: int [B, T].
        sample_weight: broadcast to [B, T], or None.

    Returns:
        float32 [B, T].
    """
    weights = ops.cast(ops.not_equal(labels, PAD_ID), "float32")
    return weights if sample_weight is None else weights * ops.cast(sample_weight, "float32")


def token_losses(logits, labels, label_smoothing: float):
    """Computes the loss of every token.

    Args:
        logits: float32 [..., V].
        labels: int [...].
        label_smoothing: epsilon_ls.

    Returns:
        float32 [...], in nats.
    """
    normalizer = ops.logsumexp(logits, axis=-1)
    label_logits = ops.squeeze(ops.take_along_axis(logits, labels[..., None], axis=-1), -1)
    loss = normalizer - label_logits
    if label_smoothing:
        loss = loss + label_smoothing * (label_logits - ops.mean(logits, axis=-1))
    return loss


def projected_cross_entropy(states, matrix, labels, label_smoothing: float):
    """Sums the loss for logits = states matrix^T over tokens, without storing all logits.

    The logits of a block of rows are computed, exponentiated, and turned into gradients of states
    and matrix at once, so the gradient needs no second pass. The parts of the gradient that come
    from q need no logits: they are products with the mean row of the matrix, and rows of labels.

    Args:
        states: [R, D], the decoder's states.
        matrix: [V, D], the output embeddings as rows.
        labels: int32 [R]; padding rows contribute neither loss nor gradient.
        label_smoothing: epsilon_ls.

    Returns:
        float32 scalars: the smoothed loss (differentiable), and the loss without smoothing, for
            perplexity (not differentiable).
    """
    not_padding = token_weights(labels)[:, None]  # [R, 1]

    @ops.custom_gradient
    def loss(states, matrix):
        normalizers, to_states, to_matrix = _softmax_part(states, matrix, not_padding)
        wide = ops.cast(states, "float32")
        label_rows = ops.cast(ops.take(matrix, labels, axis=0), "float32")  # [R, D]
        mean_row = ops.mean(ops.cast(matrix, "float32"), axis=0)  # [D]
        target_rows = (1 - label_smoothing) * label_rows + label_smoothing * mean_row  # E^T q

        def total(rows):
            return ops.sum(not_padding * (normalizers - ops.sum(wide * rows, -1, keepdims=True)))

        def gradient(*args, upstream=None):
            # Backends pass the two losses' gradients by position or by name; the second loss has
            # none.
            both = args[0] if upstream is None else upstream
            factor = both[0]
            token_states = not_padding * wide
            label_states = ops.segment_sum(token_states, labels, num_segments=matrix.shape[0])
            uniform = ops.sum(token_states, axis=0) * (label_smoothing / matrix.shape[0])
            # [R, D] and [V, D]
            states_gradient = factor * (to_states - not_padding * target_rows)
            matrix_gradient = factor * (to_matrix - (1 - label_smoothing) * label_states - uniform)
            return ops.cast(states_gradient, states.dtype), ops.cast(matrix_gradient, matrix.dtype)

        return ops.stack([total(target_rows), total(label_rows)]), gradient

    smoothed, plain = ops.unstack(loss(states, matrix), num=2)
    return smoothed, ops.stop_gradient(plain)


def _softmax_part(states, matrix, not_padding):
    """Computes everything that depends on all logits: normalizers and softmax gradients.

    Returns:
        log sum exp of the logits, float32 [R, 1]; and the softmax terms of the gradients of the
        states, float32 [R, D], and the matrix, float32 [V, D].
    """
    rows = ops.shape(states)[0]
    ends = [rows * (n + 1) // NUM_BLOCKS for n in range(NUM_BLOCKS)]
    transposed = ops.transpose(matrix)  # [D, V]: products with it are faster on a CPU
    normalizers, to_states, to_transposed = [], [], 0.0
    for start, end in zip([0, *ends], ends, strict=False):
        block = states[start:end]  # [b, D]
        logits = ops.cast(ops.matmul(block, transposed), "float32")  # [b, V]
        # Without `initial`, an empty block would raise an error.
        largest = ops.max(logits, axis=-1, keepdims=True, initial=-math.inf)
        exponentials = ops.exp(logits - largest)
        totals = ops.sum(exponentials, axis=-1, keepdims=True)  # [b, 1]
        normalizers.append(largest + ops.log(totals))
        # softmax = exponentials / totals, but divide on the narrow side.
        scale = not_padding[start:end] / totals
        exponentials = ops.cast(exponentials, states.dtype)
        to_states.append(scale * ops.cast(ops.matmul(exponentials, matrix), "float32"))
        scaled = ops.cast(scale * ops.cast(block, "float32"), states.dtype)
        products = ops.matmul(ops.transpose(scaled), exponentials)  # [D, V]
        to_transposed += ops.cast(products, "float32")
    return ops.concatenate(normalizers), ops.concatenate(to_states), ops.transpose(to_transposed)
