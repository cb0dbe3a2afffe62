"""Figures of training, computed from the sums of its steps, and the validation loss."""

import math
from collections.abc import Iterable

import keras
import numpy as np
import tensorflow as tf

from keras_transformer.config import PAD_ID
from keras_transformer.model.transformer import shift_right
from keras_transformer.training.losses import cross_entropy
from keras_transformer.training.step import SUMS


def summarize(sums: np.ndarray, steps: int, seconds: float) -> dict[str, float]:
    """Turns the sums of some steps into scalars.

    Args:
        sums: float64 [len(SUMS)].
        steps: over which they were summed.
        seconds: the steps took.

    Returns:
        loss (smoothed), perplexity (unsmoothed), tokens_per_second (target tokens without
        padding), padding (share of all positions), gradient_norm (mean over steps), skipped
        (steps). Skipped steps count as nothing else; where all were, loss and perplexity are NaN.
    """
    total = dict(zip(SUMS, sums.tolist(), strict=True))
    made = steps - total["skipped"]
    tokens = max(total["target_tokens"], 1.0) if made or not steps else math.nan
    positions = max(total["target_positions"] + total["source_positions"], 1.0)
    return {
        "loss": total["smoothed_loss"] / tokens,
        "perplexity": perplexity_of(total["loss"] / tokens),
        "tokens_per_second": total["target_tokens"] / max(seconds, 1e-9),
        "padding": 1 - (total["target_tokens"] + total["source_tokens"]) / positions,
        "gradient_norm": total["gradient_norm"] / max(made, 1),
        "skipped": total["skipped"],
    }


def perplexity_of(cross_entropy: float) -> float:
    """exp(cross_entropy), infinite where that is no float."""
    return math.inf if cross_entropy >= 700 else math.exp(cross_entropy)


class CrossEntropy:
    """The unsmoothed loss per target token over a data set, without dropout.

    Compiled at the first call; later calls see the model's weights as they are then.

    Args:
        model: any Transformer.
    """

    def __init__(self, model: keras.Model):
        self.model = model

    def __call__(self, batches: Iterable[tuple[tf.Tensor, tf.Tensor]]) -> tuple[float, int]:
        """Measures the loss over batches of (source int32 [B, S], target int32 [B, T]).

        Returns:
            Nats a token, 0 where there is none; and the number of tokens, EOS counted.
        """
        loss, tokens = 0.0, 0
        for source, target in batches:
            loss += float(self._sum(source, target))
            tokens += int(np.count_nonzero(np.asarray(target) != PAD_ID))
        return loss / max(tokens, 1), tokens

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32)] * 2, autograph=False)
    def _sum(self, source, target):
        inputs = {"source": source, "target": shift_right(target)}
        return cross_entropy(self.model(inputs, training=False), target, 0.0)[1]
