"""Perplexity per subword: of the loss without label smoothing, so that models can be compared."""

from collections.abc import Iterable
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from tqdm import tqdm

from keras_transformer.config import PAD_ID
from keras_transformer.decoding.inference import target_log_probs
from keras_transformer.errors import InputError


def perplexity(
    model: keras.Model, batches: Iterable[tuple[tf.Tensor, tf.Tensor]], progress: bool = False
) -> dict[str, Any]:
    """Computes exp(-sum of log P(token | tokens before it, source) / number of tokens).

    Every token that is not padding counts, EOS too. Perplexities are comparable between models of
    one vocabulary only.

    Args:
        model: from build_transformer.
        batches: of (source int32 [B, S], target int32 [B, T]), targets ending in EOS.
        progress: whether to draw a bar on stderr.

    Returns:
        {"perplexity", "cross_entropy" in nats a token, "tokens"}.

    Raises:
        InputError: where there is no token.
    """
    ids = tf.TensorSpec([None, None], tf.int32)

    @tf.function(input_signature=[ids, ids], autograph=False)
    def log_probs_of(source, target):
        return target_log_probs(model, source, target)

    total, tokens = 0.0, 0
    for source, target in tqdm(batches, unit="batch", disable=not progress):
        log_probs = log_probs_of(source, target).numpy()
        total += float(np.sum(log_probs, dtype=np.float64))
        tokens += int(np.count_nonzero(np.asarray(target) != PAD_ID))
    if tokens == 0:
        raise InputError("perplexity needs at least one target token. Received: none")
    cross_entropy = -total / tokens
    return {
        "perplexity": float(np.exp(cross_entropy)),
        "cross_entropy": cross_entropy,
        "tokens": tokens,
    }
