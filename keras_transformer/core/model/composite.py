"""Layers that consist of others: `quantize` and `enable_lora` apply to their sublayers' matrices.

`quantize` replaces a matrix by integers and scales, which a new layer does not have. So the config
of a saved layer or model lists the sublayers to quantize before their variables are loaded.
"""

from collections.abc import Iterator

import keras

from keras_transformer.support.errors import require


class CompositeLayer(keras.layers.Layer):
    """A layer that consists of others and is saved with their quantization."""

    def quantize(self, mode, type_check=True, config=None):
        """Quantizes the matrices of all sublayers to "int8" or "int4"."""
        for part in parts_with_matrices(self):
            part.quantize(mode, config=config)

    def enable_lora(self, rank: int):
        """Freezes the matrices of all sublayers, and adds trainable low-rank matrices.

        Raises:
            InputError: for a rank below 1, or if the layer is not built.
        """
        enable_lora(self, rank)

    def get_build_config(self):
        config, modes = super().get_build_config(), quantized_parts(self)
        return {**config, "quantized": modes} if config and modes else config

    def build_from_config(self, config):
        config = dict(config)
        modes = config.pop("quantized", {})
        super().build_from_config(config)
        quantize_parts(self, modes)


def parts_with_matrices(layer: keras.layers.Layer) -> Iterator[keras.layers.Layer]:
    """Returns the Dense and embedding layers within a layer or model."""
    for part in layer._flatten_layers(include_self=False):
        if isinstance(part, keras.layers.Dense | keras.layers.Embedding):
            yield part


def enable_lora(layer: keras.layers.Layer, rank: int) -> None:
    """Enables LoRA in all Dense and embedding layers within a built layer or model.

    Raises:
        InputError: for a rank below 1, or if the layer is not built.
    """
    is_size = isinstance(rank, int) and rank >= 1
    require(is_size, "rank", "must be an integer of at least 1", repr(rank))
    require(layer.built, "enable_lora", "must be called on a built layer", layer.name)
    for part in parts_with_matrices(layer):
        part.enable_lora(rank)


def quantized_parts(layer: keras.layers.Layer) -> dict[str, str]:
    """Returns the modes, such as "int8", of the quantized layers within a layer, by path."""
    return {
        _path(part, layer): part.quantization_mode
        for part in parts_with_matrices(layer)
        if part.quantization_mode is not None
    }


def quantize_parts(layer: keras.layers.Layer, modes: dict[str, str]) -> None:
    """Quantizes the layers within a layer, given their modes from `quantized_parts`."""
    for part in parts_with_matrices(layer):
        mode = modes.get(_path(part, layer))
        if mode is not None and part.quantization_mode is None:
            part.quantize(mode)


def _path(part: keras.layers.Layer, layer: keras.layers.Layer) -> str:
    return part.path.removeprefix(f"{layer.path}/")
