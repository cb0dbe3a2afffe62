"""The base of encoder and decoder: a stack of layers, maybe with a last normalization."""

from collections.abc import Sequence

import keras

from keras_transformer.model.composite import CompositeLayer
from keras_transformer.model.rematerialization import rematerialized


class Stack(CompositeLayer):
    """The base of Encoder and Decoder.

    Args:
        layers: the layers, from the first to the last; 6 equal ones in the paper.
        last_norm: whether a layer normalization follows the last layer, as it must if the layers
            have `norm="pre"`.
        norm_epsilon: what this normalization adds to variances.
        rematerialize: whether training computes each layer again in the backward pass, which saves
            memory and takes time.
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
        """Builds all layers but those that another stack has built, and the last normalization."""
        for layer in self.layers:
            if not layer.built:
                layer.build(inputs_shape, *other_shapes)
        if self.last_norm is not None:
            self.last_norm.build(inputs_shape)

    def compute_output_shape(self, inputs_shape):
        """That of the inputs; without this method, Keras would trace all layers to find it."""
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
    """Serializes a layer without the shapes that it was built for.

    With these, Keras would build the new layer as soon as it makes it, outside its stack, and the
    paths of its variables would lack the name of the stack.
    """
    description = keras.saving.serialize_keras_object(layer)
    description.pop("build_config", None)
    return description
