"""Normalisation of the residual stream: layer normalisation (section 3.1), or RMSNorm."""

import keras


def make_normalization(norm_type: str, epsilon: float, dtype, name: str) -> keras.layers.Layer:
    """Makes a normalisation over the last axis.

    Args:
        norm_type: "layer" for (x - mean) / sqrt(variance + epsilon) * gamma + beta, Ba et al. 2016
            (arXiv 1607.06450), as in the paper; "rms" for x / sqrt(mean(x^2) + epsilon) * scale,
            Zhang and Sennrich 2019 (arXiv 1910.07467).
        epsilon: see the equations.
        dtype: a Keras dtype policy.
        name: of the layer.

    Returns:
        One of Keras' own layers.
    """
    if norm_type == "rms":
        layer = keras.layers.RMSNormalization(epsilon=epsilon, dtype=dtype, name=name)
        layer.supports_masking = True  # as LayerNormalization does; each position is on its own
        return layer
    return keras.layers.LayerNormalization(epsilon=epsilon, dtype=dtype, name=name)
