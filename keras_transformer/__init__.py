"""keras-transformer: "Attention Is All You Need" (arXiv 1706.03762) on Keras 3 and TensorFlow.

Axis letters, used in every shape of this library:

    B  batch (sentences)      T  target positions       H  attention heads (h in the paper)
    S  source positions       D  model width (d_model)  K  beams
    V  vocabulary             F  inner width (d_ff)     N  layers of a stack

Reading order, each folder standing only on those before it: config, presets, model, training,
decoding, evaluation, export, analysis. Names are the paper's: `d_model`, `d_ff`, `d_k`, `d_v`,
`num_heads` (h), `num_layers` (N), `dropout` (P_drop), `label_smoothing` (epsilon_ls).

Importing this package imports neither TensorFlow nor Keras; `keras_transformer.model` does.
"""

from keras_transformer.config import TransformerConfig
from keras_transformer.errors import InputError
from keras_transformer.presets import PRESETS, preset

__version__ = "0.1.0"
__all__ = ["PRESETS", "InputError", "TransformerConfig", "preset"]
