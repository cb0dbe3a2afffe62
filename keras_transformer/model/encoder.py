"""The encoder: N layers of self-attention and feed-forward network (section 3.1)."""

import keras

from keras_transformer.model.stack import Stack, SublayersInResiduals


@keras.saving.register_keras_serializable(package="keras_transformer")
class EncoderLayer(SublayersInResiduals):
    """Self-attention, then the feed-forward network, each in a residual connection.

    Args:
        num_heads: H.
        key_dim: d_k, the width of a head's queries and keys.
        d_ff: width of the feed-forward network's inner activations.
        value_dim: d_v, the width of a head's values; None for d_k.
        norm: "post", or "pre" (see Residual).
        attention_window: r of restricted self-attention (section 4); None for all positions.
        dropout: P_drop, on the output of each sublayer.
        attention_dropout: on attention weights.
        activation_dropout: on the feed-forward network's inner activations.
        activation: of the feed-forward network (see FeedForward).
        attention_bias: whether attention's projections have biases.
        norm_epsilon: added to variances by layer normalisation.

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
        states = self.in_residual("self_attention", inputs, training, scores, mask=mask)
        states = self.in_residual("feed_forward", states, training)
        return (states, *scores) if return_attention_scores else states


@keras.saving.register_keras_serializable(package="keras_transformer")
class Encoder(Stack):
    """A stack of N EncoderLayers; with `norm="pre"`, a last normalisation after them.

    Args:
        num_layers: N.
        rematerialize: whether training computes each layer again in its backward pass.
        all others: as of EncoderLayer, for every layer.

    Call arguments:
        inputs: [B, S, D], embeddings with positions.
        mask: bool [B, S], False at padding, which nothing attends to.
        training: whether to apply dropout.

    Returns:
        [B, S, D], the memory that the decoder attends to.
    """

    layer_class = EncoderLayer

    def call(self, inputs, mask=None, training=False):
        return self.apply_layers(inputs, mask=mask, training=training)
