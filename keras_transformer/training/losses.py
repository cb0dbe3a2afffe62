"""The label-smoothed cross-entropy of section 5.4, computed together with the logits.

The smoothed target distribution mixes the one-hot of the label with the uniform over the whole
vocabulary (Szegedy et al. 2016): q = (1 - epsilon) onehot + epsilon / V. With l the logits of a
position, y its label and lse = log sum exp(l),

    smoothed = -sum_v q_v (l_v - lse) = lse - (1 - epsilon) l_y - epsilon mean(l)
    d smoothed / d l = softmax(l) - q
"""

from keras import ops

from keras_transformer.config import PAD_ID

# The rows of a batch are cut into so many blocks, and no more than one block's logits are needed at
# a time.
NUM_BLOCKS = 8
SMALLEST_LOGIT = -3e4  # below any real one, and a float16


def cross_entropy(logits, labels, label_smoothing: float):
    """Sums the loss over tokens that are not padding: the plain definition.

    Args:
        logits: float32 [..., V].
        labels: int [...]; padding does not count.
        label_smoothing: epsilon_ls.

    Returns:
        float32 scalars: the smoothed loss, and the loss without smoothing that perplexity is of.
    """
    real = ops.cast(ops.not_equal(labels, PAD_ID), "float32")
    normalizer = ops.logsumexp(logits, axis=-1)
    of_labels = ops.squeeze(ops.take_along_axis(logits, labels[..., None], axis=-1), -1)
    mean = ops.mean(logits, axis=-1)
    plain = ops.sum(real * (normalizer - of_labels))
    smoothing = ops.sum(real * (of_labels - mean))
    return plain + label_smoothing * smoothing, plain


def projected_cross_entropy(states, matrix, labels, label_smoothing: float):
    """The same sums for logits = states matrix^T, without ever holding all logits.

    Blocks of rows are multiplied, exponentiated, and turned into the gradients of states and
    matrix at once, so the gradient costs no second pass. The parts of the gradient that come from
    q are products with the mean row of the matrix and lookups of the labels' rows.

    Args:
        states: [R, D], the decoder's states at real tokens.
        matrix: [V, D], rows are the output embeddings.
        labels: int32 [R]; rows of padding give neither loss nor gradient.
        label_smoothing: epsilon_ls.

    Returns:
        float32 scalars: the smoothed loss (differentiable), and the loss without smoothing (not).
    """
    real = ops.cast(ops.not_equal(labels, PAD_ID), "float32")[:, None]  # [R, 1]

    @ops.custom_gradient
    def loss(states, matrix):
        normalizers, to_states, to_matrix = _softmax_part(states, matrix, real)
        wide = ops.cast(states, "float32")
        label_rows = ops.cast(ops.take(matrix, labels, axis=0), "float32")  # [R, D]
        mean_row = ops.mean(ops.cast(matrix, "float32"), axis=0)  # [D]
        target_rows = (1 - label_smoothing) * label_rows + label_smoothing * mean_row  # E^T q
        plain = ops.sum(real * (normalizers - ops.sum(wide * label_rows, -1, keepdims=True)))
        smoothed = ops.sum(real * (normalizers - ops.sum(wide * target_rows, -1, keepdims=True)))

        def gradient(*args, upstream=None):
            upstream = (args[0] if upstream is None else upstream)[0]
            real_states = real * wide
            of_labels = ops.segment_sum(real_states, labels, num_segments=matrix.shape[0])
            uniform = ops.sum(real_states, axis=0) * (label_smoothing / matrix.shape[0])
            # [R, D] and [V, D]
            states_gradient = upstream * (to_states - real * target_rows)
            matrix_gradient = upstream * (to_matrix - (1 - label_smoothing) * of_labels - uniform)
            return (
                ops.cast(states_gradient, states.dtype),
                ops.cast(matrix_gradient, matrix.dtype),
            )

        return ops.stack([smoothed, plain]), gradient

    smoothed, plain = ops.unstack(loss(states, matrix), num=2)
    return smoothed, ops.stop_gradient(plain)


def _softmax_part(states, matrix, real):
    """Computes log sum exp of the logits, and what softmax(logits) adds to the gradients.

    Args:
        states: [R, D].
        matrix: [V, D].
        real: float32 [R, 1], 0 at padding.

    Returns:
        float32: normalizers [R, 1], gradients of states [R, D] and of the matrix [V, D].
    """
    rows = ops.shape(states)[0]
    ends = [rows * (n + 1) // NUM_BLOCKS for n in range(NUM_BLOCKS)]
    transposed = ops.transpose(matrix)  # [D, V]: products with it are faster on a CPU
    normalizers, to_states, to_transposed = [], [], 0.0
    for start, end in zip([0, *ends], ends, strict=False):
        block = states[start:end]  # [b, D]
        logits = ops.cast(ops.matmul(block, transposed), "float32")  # [b, V]
        # With `initial`, a block without rows is no error.
        largest = ops.max(logits, axis=-1, keepdims=True, initial=SMALLEST_LOGIT)
        exponentials = ops.exp(logits - largest)
        totals = ops.sum(exponentials, axis=-1, keepdims=True)  # [b, 1]
        normalizers.append(largest + ops.log(totals))
        # softmax = exponentials / totals, but the quotient is taken on the narrow side.
        scale = real[start:end] / totals
        exponentials = ops.cast(exponentials, states.dtype)
        to_states.append(scale * ops.cast(ops.matmul(exponentials, matrix), "float32"))
        scaled = ops.cast(scale * ops.cast(block, "float32"), states.dtype)
        products = ops.matmul(ops.transpose(scaled), exponentials)  # [D, V]
        to_transposed += ops.cast(products, "float32")
    return (
        ops.concatenate(normalizers, axis=0),
        ops.concatenate(to_states, axis=0),
        ops.transpose(to_transposed),
    )
