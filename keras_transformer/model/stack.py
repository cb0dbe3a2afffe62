"""What the encoder and the decoder have in common: N equal layers of residual sublayers (3.1)."""

import keras

from keras_transformer.model.attention import MultiHeadAttention
from keras_transformer.model.feed_forward import FeedForward
from keras_transformer.model.restricted_attention import RestrictedSelfAttention
from keras_transformer.model.sublayer import LayerNorm, Residual


class SublayersInResiduals(keras.layers.Layer):
    """Base of EncoderLayer and DecoderLayer: attention and FFN sublayers, each with its Residual.

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
    """

    self_attention_class = MultiHeadAttention
    restricted_attention_class = RestrictedSelfAttention
    cross_attention_class = MultiHeadAttention
    sublayer_names: tuple[str, ...] = ()

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        d_ff: int,
        value_dim: int | None = None,
        norm: str = "post",
        attention_window: int | None = None,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        activation_dropout: float = 0.0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.settings = {
            "num_heads": num_heads,
            "key_dim": key_dim,
            "d_ff": d_ff,
            "value_dim": value_dim,
            "norm": norm,
            "attention_window": attention_window,
            "dropout": dropout,
            "attention_dropout": attention_dropout,
            "activation_dropout": activation_dropout,
        }
        policy = self.dtype_policy
        for name in self.sublayer_names:
            setattr(self, name, self.make_sublayer(name))
            residual = Residual(norm, dropout, dtype=policy, name=f"{name}_residual")
            setattr(self, f"{name}_residual", residual)

    def make_sublayer(self, name):
        given, options = self.settings, {"dtype": self.dtype_policy, "name": name}
        if name == "feed_forward":
            return FeedForward(given["d_ff"], given["activation_dropout"], **options)
        options["dropout"] = given["attention_dropout"]
        sizes = {key: given[key] for key in ("num_heads", "key_dim", "value_dim")}
        if name == "cross_attention":
            return self.cross_attention_class(**sizes, **options)
        if given["attention_window"] is None:
            return self.self_attention_class(**sizes, **options)
        window = given["attention_window"]
        return self.restricted_attention_class(**sizes, window=window, **options)

    def build(self, inputs_shape, *others):
        for name in self.sublayer_names:
            getattr(self, name).build(inputs_shape)
            getattr(self, f"{name}_residual").build(inputs_shape)

    def in_residual(self, name, states, sublayer, training):
        """Applies a sublayer in its residual connection: [B, T, D] -> [B, T, D]."""
        residual = getattr(self, f"{name}_residual")
        outputs = sublayer(residual.sublayer_input(states))
        return residual(states, outputs, training=training)

    def attention(self, name, scores, **arguments):
        """Returns an attention sublayer as a function of its input alone.

        Args:
            name: of the sublayer.
            scores: a list that its attention weights are appended to, or None.
            arguments: the sublayer's other call arguments.
        """
        layer = getattr(self, name)

        def attend(states):
            if scores is None:
                return layer(states, **arguments)
            outputs, weights = layer(states, return_attention_scores=True, **arguments)
            scores.append(weights)
            return outputs

        return attend

    def scores_spec(self, queries, keys):
        """The symbolic attention weights of two symbolic sequences: [B, H, Q, P]."""
        shape = (queries.shape[0], self.settings["num_heads"], queries.shape[1], keys.shape[1])
        return keras.KerasTensor(shape, self.compute_dtype)

    def compute_output_shape(self, inputs_shape, *others):
        return inputs_shape

    def get_config(self):
        return {**super().get_config(), **self.settings}


class Stack(keras.layers.Layer):
    """Base of Encoder and Decoder: N layers; with `norm="pre"`, a last normalisation after them.

    Args:
        num_layers: N.
        rematerialize: whether training computes each layer again in its backward pass.
        The others: as of SublayersInResiduals.
    """

    layer_class = SublayersInResiduals

    def __init__(
        self,
        num_layers: int,
        num_heads: int,
        key_dim: int,
        d_ff: int,
        value_dim: int | None = None,
        norm: str = "post",
        attention_window: int | None = None,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        activation_dropout: float = 0.0,
        rematerialize: bool = False,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.rematerialize = rematerialize
        self.layers = [
            self.layer_class(
                num_heads=num_heads,
                key_dim=key_dim,
                d_ff=d_ff,
                value_dim=value_dim,
                norm=norm,
                attention_window=attention_window,
                dropout=dropout,
                attention_dropout=attention_dropout,
                activation_dropout=activation_dropout,
                dtype=self.dtype_policy,
                name=f"layer_{n}",
            )
            for n in range(num_layers)
        ]
        self.last_norm = None
        if norm == "pre":
            self.last_norm = LayerNorm(dtype=self.dtype_policy, name="norm")

    def build(self, inputs_shape, *others):
        for layer in [*self.layers, self.last_norm]:
            if layer is not None:
                layer.build(inputs_shape)

    def compute_output_shape(self, inputs_shape, *others):
        return inputs_shape

    def get_config(self):
        return {
            **super().get_config(),
            "num_layers": len(self.layers),
            **self.layers[0].settings,
            "rematerialize": self.rematerialize,
        }
