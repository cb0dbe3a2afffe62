"""The encoder: N layers of self-attention and feed-forward network (section 3.1)."""

import functools

import keras

from keras_transformer.model.rematerialization import rematerialized
from keras_transformer.model.stack import Stack, SublayersInResiduals


@keras.saving.register_keras_serializable(package="keras_transformer")
class EncoderLayer(SublayersInResiduals):
    """Self-attention, then the feed-forward network, each in a residual connection.

    Args: as of SublayersInResiduals.

    Call arguments:
        inputs: [B, S, D].
        mask: bool [B, S], False at padding, which nothing attends to.
        return_attention_scores: whether to return the attention weights, too.
        training: whether to apply dropout.

    Returns:
        [B, S, D]; with `return_attention_scores`, also [B, H, S, S].
    """

    sublayer_names = ("self_attention", "feed_forward")

    def call(self, inputs, mask=None, return_attention_scores=False, training=False):
        scores = [] if return_attention_scores else None
        attend = self.attention("self_attention", scores, mask=mask, training=training)
        states = self.in_residual("self_attention", inputs, attend, training)
        feed_forward = functools.partial(self.feed_forward, training=training)
        states = self.in_residual("feed_forward", states, feed_forward, training)
        return (states, *scores) if return_attention_scores else states

    def compute_output_spec(self, inputs, mask=None, return_attention_scores=False, training=False):
        states = keras.KerasTensor(inputs.shape, self.compute_dtype)
        if not return_attention_scores:
            return states
        return states, self.scores_spec(inputs, inputs)


@keras.saving.register_keras_serializable(package="keras_transformer")
class Encoder(Stack):
    """A stack of N EncoderLayers; with `norm="pre"`, a last normalisation after them.

    Args: as of Stack.

    Call arguments:
        inputs: [B, S, D], embeddings with positions.
        mask: bool [B, S], False at padding, which nothing attends to.
        training: whether to apply dropout.

    Returns:
        [B, S, D], the memory that the decoder attends to.
    """

    layer_class = EncoderLayer

    def call(self, inputs, mask=None, training=False):
        states = inputs
        for layer in self.layers:
            if training and self.rematerialize:
                states = rematerialized(layer, states, mask=mask)
            else:
                states = layer(states, mask=mask, training=training)
        return states if self.last_norm is None else self.last_norm(states)

    # Stated, as Keras would otherwise trace the whole stack once more to find it out.
    def compute_output_spec(self, inputs, mask=None, training=False):
        return keras.KerasTensor(inputs.shape, self.compute_dtype)
