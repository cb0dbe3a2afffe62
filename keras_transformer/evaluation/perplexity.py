"""The perplexity of a translator's model."""

from collections.abc import Iterable
from typing import Any

import tensorflow as tf
from tqdm import tqdm

from keras_transformer.decoding.streams import in_streams
from keras_transformer.decoding.translator import Translator
from keras_transformer.errors import require
from keras_transformer.training.metrics import held_out_perplexity


def perplexity(
    translator: Translator, batches: Iterable[tuple[tf.Tensor, tf.Tensor]], progress: bool = False
) -> dict[str, Any]:
    """Measures a translator as `held_out_perplexity` does.

    Only perplexities of models with the same vocabulary can be compared.

    Args:
        translator: of the model.
        batches: of (source int32 [B, S], target int32 [B, T]), targets ending in EOS.
        progress: whether to draw a bar on stderr.

    Raises:
        InputError: if there are no tokens.
    """
    batches = list(batches)
    losses = in_streams(lambda batch: (-translator.score_ids(*batch), batch[1]), batches)
    result = held_out_perplexity(
        tqdm(losses, total=len(batches), unit="batch", disable=not progress)
    )
    require(result["tokens"] > 0, "perplexity needs at least one target token", "none")
    return result
