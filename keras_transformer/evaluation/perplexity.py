"""Perplexity per subword: of the loss without label smoothing, so that models can be compared."""

from collections.abc import Iterable
from typing import Any

import keras
import tensorflow as tf
from tqdm import tqdm

from keras_transformer.errors import InputError
from keras_transformer.training.summaries import CrossEntropy, perplexity_of


def perplexity(
    model: keras.Model, batches: Iterable[tuple[tf.Tensor, tf.Tensor]], progress: bool = False
) -> dict[str, Any]:
    """Computes exp(-sum of log P(token | tokens before it, source) / number of tokens).

    Every token that is not padding counts, EOS too. Perplexities are comparable between models of
    one vocabulary only.

    Args:
        model: any Transformer.
        batches: of (source int32 [B, S], target int32 [B, T]), targets ending in EOS.
        progress: whether to draw a bar on stderr.

    Returns:
        {"perplexity", "cross_entropy" in nats a token, "tokens"}.

    Raises:
        InputError: where there is no token.
    """
    cross_entropy, tokens = CrossEntropy(model)(tqdm(batches, unit="batch", disable=not progress))
    if tokens == 0:
        raise InputError("perplexity needs at least one target token. Received: none")
    return {
        "perplexity": perplexity_of(cross_entropy),
        "cross_entropy": cross_entropy,
        "tokens": tokens,
    }
