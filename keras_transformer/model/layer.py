"""What the layers of this folder have in common as Keras objects."""

import keras


class Layer(keras.layers.Layer):
    """A layer whose output has the shape and the Keras mask of its first input.

    Attributes:
        settings: the arguments that would make the same layer again, by name: a subclass fills it,
            and `get_config` returns them.
    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.settings = {}

    def compute_output_shape(self, inputs_shape, *others):
        return inputs_shape

    def get_config(self):
        return {**super().get_config(), **self.settings}
