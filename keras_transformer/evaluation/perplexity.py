"""Perplexity per subword, from the loss without label smoothing."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import tensorflow as tf
from tqdm import tqdm

from keras_transformer.config import PAD_ID
from keras_transformer.decoding.streams import in_streams
from keras_transformer.decoding.translator import Translator
from keras_transformer.errors import require
from keras_transformer.training.summaries import perplexity_of


def perplexity(
    translator: Translator, batches: Iterable[tuple[tf.Tensor, tf.Tensor]], progress: bool = False
) -> dict[str, Any]:
    """Computes exp(-sum of log P(token | tokens before it, source) / number of tokens).

    Every token that is not padding counts, EOS too. Only perplexities of models with the same
    vocabulary can be compared.

    Args:
        translator: of the model.
        batches: of (source int32 [B, S], target int32 [B, T]), targets ending in EOS.
        progress: whether to draw a bar on stderr.

    Returns:
        {"perplexity", "cross_entropy" in nats a token, "tokens"}.

    Raises:
        InputError: if there are no tokens.
    """
    batches = list(batches)
    found = in_streams(lambda batch: translator.score_ids(*batch), batches)
    bar = tqdm(found, total=len(batches), unit="batch", disable=not progress)
    log_prob = sum(float(np.sum(log_probs, dtype=np.float64)) for log_probs in bar)
    tokens = sum(int(np.count_nonzero(np.asarray(target) != PAD_ID)) for _, target in batches)
    require(tokens > 0, "perplexity needs at least one target token", "none")
    cross_entropy = -log_prob / tokens
    return {
        "perplexity": perplexity_of(cross_entropy),
        "cross_entropy": cross_entropy,
        "tokens": tokens,
    }
