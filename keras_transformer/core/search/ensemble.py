"""Several models with the same vocabularies that decode as one.

Their probabilities are averaged at every step. An Ensemble has the methods of a CompiledModel, so a
search need not know which of the two it calls.

fairseq and Sockeye average probabilities, too; Marian adds log probabilities.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf

from keras_transformer.core.search.alignment import alignment
from keras_transformer.core.search.cache import SearchCache
from keras_transformer.core.search.compiled_model import CompiledModel, Decoded, Encoded
from keras_transformer.core.search.matrices import ScaledRows
from keras_transformer.core.search.state import FirstInputs


class Ensemble(NamedTuple):
    """Models whose probabilities are averaged. Their cache lists all models' layers in order."""

    members: tuple[CompiledModel, ...]

    def in_graph(self, for_xla: bool = False) -> "Ensemble":
        """Reads the stored variables of all models; see `CompiledModel.in_graph`."""
        return Ensemble(tuple(model.in_graph(for_xla) for model in self.members))

    def start(self, source: tf.Tensor, beams: int) -> SearchCache:
        """Encodes sources, int32 [B, S], for a search with K beams."""
        caches = [model.start(source, beams) for model in self.members]
        layers = [layer for cache in caches for layer in cache.layers]
        memory = [layer for cache in caches for layer in cache.memory]
        return caches[0]._replace(layers=tuple(layers), memory=tuple(memory))

    def first_inputs(self, source: tf.Tensor) -> FirstInputs:
        """Returns those of each model, which are the same."""
        return self.members[0].first_inputs(source)

    def step(
        self, ids: tf.Tensor, cache: SearchCache, position: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, SearchCache]:
        """Computes one position with each model; see `CompiledModel.step`."""
        every_logits, every_attention, layers = [], [], []
        start = 0
        for model in self.members:
            end = start + len(model.weights.decoder.layers)
            own = cache._replace(layers=cache.layers[start:end], memory=cache.memory[start:end])
            logits, attention, updated = model.attentive_step(ids, own, position)
            every_logits.append(logits)
            every_attention.append(attention)
            layers.extend(updated.layers)
            start = end
        cache = cache._replace(origins=updated.origins, layers=tuple(layers))
        return mean_logits(every_logits), alignment(every_attention, cache.source_mask), cache

    def scaled_step(
        self, ids: tf.Tensor, cache: SearchCache, position: tf.Tensor
    ) -> tuple[ScaledRows, tf.Tensor, SearchCache]:
        """Like `step`, for one beam; scales are 1."""
        logits, aligned, cache = self.step(ids, cache, position)
        return ScaledRows(logits[:, 0], tf.ones_like(logits[:, 0, :1])), aligned, cache


def ensemble_of(models: Sequence[CompiledModel]) -> CompiledModel | Ensemble:
    """Returns a single model itself, or an ensemble of several."""
    return models[0] if len(models) == 1 else Ensemble(tuple(models))


def decode_target(
    model: CompiledModel | Ensemble, source: tf.Tensor, target: tf.Tensor
) -> tuple[tf.Tensor, list[tuple[Encoded, Decoded]]]:
    """Decodes whole targets, int32 [B, T], with each model.

    Returns:
        The logits, float32 [B, T, V], and each model's output.
    """
    computed = [member.decode_target(source, target) for member in model.members]
    return mean_logits([decoded.logits for _, decoded in computed]), computed


def mean_logits(every_logits: Sequence[tf.Tensor]) -> tf.Tensor:
    """Returns the logits of one model; for several, the logarithm of their mean probabilities.

    All are float32 [..., V].
    """
    if len(every_logits) == 1:
        return every_logits[0]
    log_probs = tf.stack([tf.nn.log_softmax(logits) for logits in every_logits])
    return tf.reduce_logsumexp(log_probs, axis=0) - math.log(len(every_logits))
