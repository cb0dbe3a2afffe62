"""Several models of one vocabulary that decode as one: the mean of their probabilities."""

import math
from collections.abc import Sequence

import tensorflow as tf

from keras_transformer.config import PAD_ID
from keras_transformer.model.decoder_cache import DecoderCache, scatter
from keras_transformer.model.transformer import Transformer


class Ensemble:
    """Has what decoding uses of a Transformer; its logits are log-probabilities.

    Its models are of any sizes, and of the same vocabularies.
    """

    def __init__(self, models: Sequence[Transformer]):
        self.models = models
        configs = [model.config for model in models]
        learned = [config for config in configs if config.positions == "learned"]
        # Whose limits of lengths are those of all.
        self.config = min(learned, key=lambda config: config.max_positions, default=configs[0])
        self.trainable_variables = [v for model in models for v in model.trainable_variables]

    def count_params(self) -> int:
        return sum(model.count_params() for model in self.models)

    def __call__(self, inputs, training=False):
        return log_mean([model(inputs, training=training) for model in self.models])

    def encode(self, source):
        memories, masks = zip(*[model.encode(source) for model in self.models], strict=True)
        return memories, masks[0]

    def project_memory(self, memories):
        return [m.project_memory(memory) for m, memory in zip(self.models, memories, strict=True)]

    def empty_cache(self, batch, beams: int) -> DecoderCache:
        """One cache, with the layers of all models one after the other."""
        caches = [model.empty_cache(batch, beams) for model in self.models]
        return caches[0]._replace(layers=[layer for cache in caches for layer in cache.layers])

    def decode_step(
        self, ids, position, cache, projected_memory, source_mask, write=scatter, kernel=None
    ):
        logits, layers, old = [], [], iter(cache.layers)
        for model, memory in zip(self.models, projected_memory, strict=True):
            own = cache._replace(layers=[next(old) for _ in memory])
            found, new = model.decode_step(ids, position, own, memory, source_mask, write, kernel)
            logits.append(found)
            layers += new.layers
        return log_mean(logits), new._replace(layers=layers)


AnyModel = Transformer | Ensemble


def log_mean(logits: Sequence[tf.Tensor]) -> tf.Tensor:
    """The logarithm of the mean of the models' probabilities, float32 [..., V] each."""
    each = tf.stack([tf.nn.log_softmax(of_model) for of_model in logits])
    return tf.reduce_logsumexp(each, axis=0) - math.log(len(logits))


def log_probs(logits: tf.Tensor, target: tf.Tensor) -> tf.Tensor:
    """Those of the target's tokens, int32 [B, T]: float32 [B, T], 0 at padding."""
    found = tf.gather(logits, target, batch_dims=2) - tf.reduce_logsumexp(logits, axis=2)
    return tf.where(target == PAD_ID, 0.0, found)
