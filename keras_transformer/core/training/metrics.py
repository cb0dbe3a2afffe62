"""Accuracy and perplexity over the tokens that are not padding."""

import math
from collections.abc import Iterable
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_transformer.core.config import PAD_ID
from keras_transformer.core.training.losses import as_tensor, token_losses, token_weights
from keras_transformer.support.errors import require


class _MeanOverTokens(keras.metrics.Mean):
    """The mean of a per-token value over all tokens so far, without padding.

    Call arguments:
        y_true: int [B, T], labels; 0 is padding.
        y_pred: float [B, T, V], logits.
        sample_weight: broadcast to [B, T], a factor on each token, or None.
    """

    def update_state(self, y_true, y_pred, sample_weight=None):
        values = self.values(as_tensor(y_true, "int32"), as_tensor(y_pred, "float32"))
        weights = token_weights(y_true, sample_weight)
        # Flattened, as Mean would weight each row of [B, T] equally.
        super().update_state(ops.reshape(values, [-1]), ops.reshape(weights, [-1]))


@keras.saving.register_keras_serializable(package="keras_transformer")
class MaskedAccuracy(_MeanOverTokens):
    """The share of tokens whose label has the largest logit, ignoring padding."""

    def __init__(self, name: str | None = "masked_accuracy", **kwargs):
        super().__init__(name, **kwargs)
        self._direction = "up"  # for callbacks that monitor it, as in Keras' own metrics

    def values(self, labels, logits):
        return ops.equal(ops.cast(ops.argmax(logits, axis=-1), "int32"), labels)


@keras.saving.register_keras_serializable(package="keras_transformer")
class MaskedPerplexity(_MeanOverTokens):
    """exp(cross-entropy per token), without label smoothing, ignoring padding.

    Table 3 of the paper reports this per subword. It is 1 before any token is counted.
    """

    def __init__(self, name: str | None = "masked_perplexity", **kwargs):
        super().__init__(name, **kwargs)
        self._direction = "down"

    def values(self, labels, logits):
        return token_losses(logits, labels, 0.0)

    def result(self):
        return ops.exp(super().result())


def held_out_perplexity(losses: Iterable[tuple[Any, Any]]) -> dict[str, Any]:
    """Computes exp(-sum of log P(token | tokens before it, source) / number of tokens).

    Args:
        losses: for each batch, -log P of its targets, as one sum or per sentence, and the targets,
            int [B, T]. EOS counts as a token, padding does not.

    Returns:
        {"perplexity", "cross_entropy" in nats per token, "tokens"}.

    Raises:
        InputError: if there are no tokens.
    """
    total_loss, tokens = 0.0, 0
    for batch_losses, target in losses:
        total_loss += float(np.sum(batch_losses, dtype=np.float64))
        tokens += int(np.count_nonzero(np.asarray(target) != PAD_ID))
    require(tokens > 0, "perplexity", "must cover at least one target token", "none")
    nats = total_loss / tokens
    return {"perplexity": perplexity_of(nats), "cross_entropy": nats, "tokens": tokens}


def perplexity_of(cross_entropy: float) -> float:
    """exp(cross_entropy), or infinity on overflow."""
    return math.inf if cross_entropy >= 700 else math.exp(cross_entropy)
