"""The base class of encoder and decoder: a stack of layers with an optional final normalization."""

from collections.abc import Sequence

import keras

from keras_transformer.core.model.composite import CompositeLayer
from keras_transformer.core.model.rematerialization import rematerialized


class Stack(CompositeLayer):
    """The base class of Encoder and Decoder.

    Args:
        layers: the layers in order; 6 identical ones in the paper.
        last_norm: whether a layer normalization follows the last layer, as is required with
            `norm="pre"`.
        norm_epsilon: added to the variance in this normalization.
        rematerialize: whether training recomputes each layer in the backward pass, which saves
            memory and costs time.
    """

    def __init__(
        self,
        layers: Sequence[keras.layers.Layer],
        last_norm: bool = False,
        norm_epsilon: float = 1e-6,
        rematerialize: bool = False,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.layers = list(layers)
        self.norm_epsilon = norm_epsilon
        self.rematerialize = rematerialize
        self.last_norm = None
        if last_norm:
            self.last_norm = keras.layers.LayerNormalization(
                epsilon=norm_epsilon, dtype=self.dtype_policy, name="last_norm"
            )

    def build_layers(self, inputs_shape, *other_shapes) -> None:
        """Builds the final normalization, and all layers not built by another stack."""
        for layer in self.layers:
            if not layer.built:
                layer.build(inputs_shape, *other_shapes)
        if self.last_norm is not None:
            self.last_norm.build(inputs_shape)

    def compute_output_shape(self, inputs_shape):
        """Returns the input shape; without this method, Keras would trace all layers."""
        return inputs_shape

    def call_layer(self, layer: keras.layers.Layer, *inputs, training: bool | None, **masks):
        """Calls a layer; see `rematerialized` for the arguments."""
        if training and self.rematerialize:
            return rematerialized(layer, *inputs, **masks)
        return layer(*inputs, **masks, training=training)

    def get_config(self):
        return {
            **super().get_config(),
            "layers": [_serialized(layer) for layer in self.layers],
            "last_norm": self.last_norm is not None,
            "norm_epsilon": self.norm_epsilon,
            "rematerialize": self.rematerialize,
        }

    @classmethod
    def from_config(cls, config):
        layers = [keras.saving.deserialize_keras_object(layer) for layer in config["layers"]]
        return cls(**{**config, "layers": layers})


def _serialized(layer: keras.layers.Layer) -> dict:
    """Serializes a layer without its build shapes.

    With these, Keras would build the new layer on creation, outside its stack, and its variables'
    paths would lack the stack's name.
    """
    description = keras.saving.serialize_keras_object(layer)
    description.pop("build_config", None)
    return description
