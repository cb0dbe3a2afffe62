"""Muon: updates of matrices that are close to orthogonal. Not in the paper.

Jordan et al. 2024 (kellerjordan.github.io/posts/muon). For a matrix W [M, N] with gradient G,

    momentum = mu momentum + G
    update = sqrt(max(M, N)) rms O(G + mu momentum)
    W = W - learning_rate update

where O(X) = U V^T for the singular value decomposition X = U S V^T: every direction of X counts the
same, however small its singular value. With the factor of Liu et al. 2025 (arXiv 2502.16982), the
root mean square of an update's elements is that of Adam, `rms`, whatever its shape. So one learning
rate serves both.
"""

from collections import defaultdict

import keras
import tensorflow as tf

from keras_transformer.core.training.adam import FusedAdam, of_this_replica

MOMENTUM = 0.95  # mu
UPDATE_RMS = 0.2  # rms
# The Newton-Schulz iteration, X = a X + b (X X^T) X + c (X X^T)^2 X, moves all singular values
# between 0 and 1 close to 1; with these coefficients of Jordan et al., between 0.7 and 1.2.
COEFFICIENTS = (3.4445, -4.7750, 2.0315)
ITERATIONS = 5


def is_hidden_matrix(variable) -> bool:
    """Whether Muon updates a model's variable: a matrix, but no table of vectors.

    The gradient of an embedding table has the rows of single tokens, which are no directions of one
    linear map. Like biases and normalizations, it is left to Adam.
    """
    return len(variable.shape) == 2 and "embedding" not in variable.path


def muon_updates(directions: tf.Tensor) -> tf.Tensor:
    """Computes the updates of several matrices of the same shape.

    Args:
        directions: float32 [K, M, N], each matrix's G + mu momentum.

    Returns:
        The updates to multiply by the learning rate, [K, M, N].
    """
    rows, columns = directions.shape[1:]
    return UPDATE_RMS * max(rows, columns) ** 0.5 * orthogonalize(directions)


def orthogonalize(matrices: tf.Tensor) -> tf.Tensor:
    """Approximates O(X), for each matrix X in [K, M, N], by Newton-Schulz iterations."""
    is_tall = matrices.shape[1] > matrices.shape[2]
    x = tf.linalg.matrix_transpose(matrices) if is_tall else matrices
    x = x / (tf.norm(x, axis=(1, 2), keepdims=True) + 1e-7)  # no singular value exceeds this norm
    a, b, c = COEFFICIENTS
    for _ in range(ITERATIONS):
        squares = tf.matmul(x, x, transpose_b=True)  # X X^T
        x = a * x + tf.matmul(b * squares + c * tf.matmul(squares, squares), x)
    return tf.linalg.matrix_transpose(x) if is_tall else x


class FusedMuon(FusedAdam):
    """Muon for the matrices of a model's layers, and Adam for all other variables.

    It computes the same updates as keras.optimizers.Muon, but those of all matrices of one shape
    together. The arguments and the learning rate are those of FusedAdam.
    """

    def build(self, variables):
        """Creates Adam's moments, Muon's momentums, and the loss scale for float16."""
        matrices = [variable for variable in variables if is_hidden_matrix(variable)]
        super().build([variable for variable in variables if not is_hidden_matrix(variable)])
        self._matrix_momentums = self.add_optimizer_variables(matrices, "momentum")

    def _update_all(self, grads, variables, rate):
        pairs = list(zip(grads, variables, strict=True))
        others = [pair for pair in pairs if not is_hidden_matrix(pair[1])]
        matrices = [pair for pair in pairs if is_hidden_matrix(pair[1])]
        super()._update_all([pair[0] for pair in others], [pair[1] for pair in others], rate)

        directions, same_shape = defaultdict(list), defaultdict(list)
        for (gradient, variable), momentum in zip(matrices, self._matrix_momentums, strict=True):
            momentum = of_this_replica(momentum)
            momentum.assign(MOMENTUM * momentum + gradient)
            directions[variable.shape].append(gradient + MOMENTUM * momentum)
            same_shape[variable.shape].append(of_this_replica(variable))
        for shape, of_shape in same_shape.items():
            updates = tf.unstack(rate * muon_updates(tf.stack(directions[shape])))
            for variable, update in zip(of_shape, updates, strict=True):
                variable.assign_sub(update)
        return tf.constant(0)


def keras_muon(learning_rate, beta_1, beta_2, epsilon, **options) -> keras.optimizers.Muon:
    """Makes the same optimizer for `fit`, with the arguments of keras.optimizers.Adam."""
    return keras.optimizers.Muon(  # its other defaults are those of this module
        learning_rate,
        adam_beta_1=beta_1,
        adam_beta_2=beta_2,
        epsilon=epsilon,
        weight_decay=None,
        adam_weight_decay=None,
        **options,
    )
