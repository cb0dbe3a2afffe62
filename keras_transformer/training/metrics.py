"""Keras metrics over the tokens of a batch that are not padding, for `compile` and `fit`."""

import keras
from keras import ops

from keras_transformer.config import PAD_ID
from keras_transformer.training.losses import token_losses


class _MeanOverTokens(keras.metrics.Metric):
    """The mean of a number for each token, over all tokens that are not padding so far.

    Call arguments:
        y_true: int [B, T], labels; 0 is padding.
        y_pred: float [B, T, V], logits.
        sample_weight: broadcast against [B, T], a factor on each token, or None.
    """

    def __init__(self, name: str, **kwargs):
        super().__init__(name=name, **kwargs)
        self.total = self.add_variable((), initializer="zeros", name="total")
        self.weight = self.add_variable((), initializer="zeros", name="weight")

    def update_state(self, y_true, y_pred, sample_weight=None):
        y_true = ops.cast(y_true, "int32")
        weights = ops.cast(ops.not_equal(y_true, PAD_ID), "float32")
        if sample_weight is not None:
            weights = weights * ops.cast(sample_weight, "float32")
        values = ops.cast(self.values(y_true, ops.cast(y_pred, "float32")), "float32")
        self.total.assign_add(ops.sum(weights * values))
        self.weight.assign_add(ops.sum(weights))

    def result(self):
        return ops.divide_no_nan(self.total, self.weight)


@keras.saving.register_keras_serializable(package="keras_transformer")
class MaskedAccuracy(_MeanOverTokens):
    """The share of tokens whose label has the largest logit; padding does not count."""

    def __init__(self, name: str = "accuracy", **kwargs):
        super().__init__(name, **kwargs)

    def values(self, labels, logits):
        return ops.equal(ops.cast(ops.argmax(logits, axis=-1), "int32"), labels)


@keras.saving.register_keras_serializable(package="keras_transformer")
class MaskedPerplexity(_MeanOverTokens):
    """exp(cross-entropy per token), without label smoothing; padding does not count.

    The paper's Table 3 gives this figure, per subword.
    """

    def __init__(self, name: str = "perplexity", **kwargs):
        super().__init__(name, **kwargs)

    def values(self, labels, logits):
        return token_losses(logits, labels, 0.0)

    def result(self):
        return ops.exp(super().result())
