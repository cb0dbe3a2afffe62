"""The base class of encoder and decoder layers: their settings and sublayers."""

import inspect

import keras

from keras_transformer.core.config import GATED, NORMS
from keras_transformer.core.model.attention import MultiHeadAttention
from keras_transformer.core.model.composite import CompositeLayer
from keras_transformer.core.model.dropout import Dropout
from keras_transformer.core.model.feed_forward import FeedForward, GatedFeedForward
from keras_transformer.support.errors import require
from keras_transformer.support.fields import shown


class TransformerLayer(CompositeLayer):
    """The base class of EncoderLayer and DecoderLayer.

    Each sublayer has a residual connection (section 3.1). With `norm="post"`, as in the paper, its
    output is LayerNorm(x + Dropout(Sublayer(x))). With `norm="pre"`, it is x +
    Dropout(Sublayer(LayerNorm(x))).

    Args:
        num_heads: H, the number of attention heads.
        key_dim: d_k, the width of the queries and keys of a head.
        d_ff: the width of the feed-forward network's inner activations.
        value_dim: d_v, the width of the values of a head; None for d_k.
        norm: "post" or "pre", whether layer normalization follows or precedes a sublayer.
        activation: the feed-forward network's activation, "relu" in the paper; "swiglu" for a
            GatedFeedForward.
        dropout: P_drop, on each sublayer's output.
        attention_dropout: the probability of dropping an attention weight.
        activation_dropout: the probability of dropping an inner activation of the feed-forward
            network.
        attention_window: r of restricted self-attention (section 4); None for all positions.
        attention_bias: whether the attention projections have biases.
        norm_epsilon: added to the variance in layer normalization.
        positions: the kind of positions, for self-attention; see MultiHeadAttention.
    """

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        d_ff: int,
        value_dim: int | None = None,
        norm: str = "post",
        activation: str = "relu",
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        activation_dropout: float = 0.0,
        attention_window: int | None = None,
        attention_bias: bool = False,
        norm_epsilon: float = 1e-6,
        positions: str = "sinusoidal",
        **kwargs,
    ):
        require(norm in NORMS, "norm", f"must be one of {', '.join(NORMS)}", shown(norm))
        super().__init__(**kwargs)
        self.supports_masking = True
        self.num_heads = num_heads
        self.key_dim = key_dim
        self.d_ff = d_ff
        self.value_dim = value_dim
        self.norm = norm
        self.activation = activation
        self.dropout = dropout
        self.attention_dropout = attention_dropout
        self.activation_dropout = activation_dropout
        self.attention_window = attention_window
        self.attention_bias = attention_bias
        self.norm_epsilon = norm_epsilon
        self.positions = positions
        self.make_sublayers()

    def make_sublayers(self) -> None:
        """Makes the sublayers, each with dropout and layer normalization."""
        raise NotImplementedError

    def make_attention(
        self, name: str, window: int | None = None, positions: str = "sinusoidal"
    ) -> MultiHeadAttention:
        return MultiHeadAttention(
            self.num_heads,
            self.key_dim,
            self.value_dim,
            dropout=self.attention_dropout,
            use_bias=self.attention_bias,
            window=window,
            positions=positions,
            dtype=self.dtype_policy,
            name=name,
        )

    def make_feed_forward(self) -> FeedForward | GatedFeedForward:
        arguments = {
            "dropout": self.activation_dropout,
            "dtype": self.dtype_policy,
            "name": "feed_forward",
        }
        is_name = isinstance(self.activation, str)  # or a function, or the dict of a saved one
        if is_name and self.activation in GATED:
            return GatedFeedForward(self.d_ff, activation=GATED[self.activation], **arguments)
        return FeedForward(self.d_ff, activation=self.activation, **arguments)

    def make_dropout(self, name: str) -> Dropout:
        return Dropout(self.dropout, dtype=self.dtype_policy, name=name)

    def make_norm(self, name: str) -> keras.layers.LayerNormalization:
        return keras.layers.LayerNormalization(
            epsilon=self.norm_epsilon, dtype=self.dtype_policy, name=name
        )

    def residual(self, x, sublayer, dropout, norm, *memory, training: bool | None, **options):
        """Calls a sublayer with dropout, layer normalization and a residual connection.

        Args:
            x: [B, T, D].
            sublayer, dropout, norm: the sublayer, and those that belong to it.
            memory: a second input of the sublayer, if any.
            training: whether to apply dropout.
            options: the sublayer's keyword arguments.

        Returns:
            [B, T, D], and the attention weights if `options` request them, else None.
        """
        options = {**options, "training": training}
        output = sublayer(norm(x) if self.norm == "pre" else x, *memory, **options)
        output, weights = output if "return_attention_scores" in options else (output, None)
        x = x + dropout(output, training=training)
        return norm(x) if self.norm == "post" else x, weights

    def get_config(self):
        arguments = inspect.signature(TransformerLayer.__init__).parameters.keys()
        config = {name: getattr(self, name) for name in arguments if name in vars(self)}
        return {**super().get_config(), **config}
