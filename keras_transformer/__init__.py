"""keras-transformer: "Attention Is All You Need" (arXiv 1706.03762) on Keras 3 and TensorFlow.

Axis letters, used in every shape of this library:

    B  batch (sentences)      T  target positions       H  attention heads (h in the paper)
    S  source positions       D  model width (d_model)  K  beams
    V  vocabulary             F  inner width (d_ff)     N  layers of a stack

Reading order, each folder standing only on those before it: config, presets, model, vocabulary,
training, importing, decoding, parsing, evaluation, export, attention, paper, serving.
Names are the paper's: `d_model`, `d_ff`, `d_k` (`key_dim` of a layer), `d_v` (`value_dim`),
`num_heads` (h), `num_layers` (N), `dropout` (P_drop), `label_smoothing` (epsilon_ls).

Importing this package imports neither TensorFlow nor Keras; the first use of a name that needs them
does. Where Keras is imported, before or after this package, it knows the classes here, and
`keras.models.load_model` reads models that consist of them (registration.py).
"""

import importlib
from typing import TYPE_CHECKING

from keras_transformer.config import TrainingConfig, TransformerConfig
from keras_transformer.errors import InputError
from keras_transformer.presets import PRESETS, preset
from keras_transformer.registration import register_with_keras

if TYPE_CHECKING:  # what editors and type checkers read; see _LAZY
    from keras_transformer.loading import load
    from keras_transformer.model.attention import MultiHeadAttention, scaled_dot_product_attention
    from keras_transformer.model.decoder import Decoder, DecoderLayer
    from keras_transformer.model.dropout import Dropout
    from keras_transformer.model.embedding import TokenEmbedding
    from keras_transformer.model.encoder import Encoder, EncoderLayer
    from keras_transformer.model.feed_forward import FeedForward, GatedFeedForward
    from keras_transformer.model.masks import causal_mask, padding_mask
    from keras_transformer.model.positions import PositionalEncoding, sinusoids
    from keras_transformer.model.transformer import Transformer, shift_right, teacher_forcing
    from keras_transformer.training.losses import LabelSmoothedCrossEntropy
    from keras_transformer.training.metrics import MaskedAccuracy, MaskedPerplexity
    from keras_transformer.training.schedule import WarmupInverseSquareRoot, WarmupToZero

__version__ = "0.1.0"

# Public names that need TensorFlow or Keras, and the modules that they are imported from at their
# first use.
_LAZY = {
    "Decoder": "model.decoder",
    "DecoderLayer": "model.decoder",
    "Dropout": "model.dropout",
    "Encoder": "model.encoder",
    "EncoderLayer": "model.encoder",
    "FeedForward": "model.feed_forward",
    "GatedFeedForward": "model.feed_forward",
    "LabelSmoothedCrossEntropy": "training.losses",
    "MaskedAccuracy": "training.metrics",
    "MaskedPerplexity": "training.metrics",
    "MultiHeadAttention": "model.attention",
    "PositionalEncoding": "model.positions",
    "TokenEmbedding": "model.embedding",
    "Transformer": "model.transformer",
    "WarmupInverseSquareRoot": "training.schedule",
    "WarmupToZero": "training.schedule",
    "causal_mask": "model.masks",
    "load": "loading",
    "padding_mask": "model.masks",
    "scaled_dot_product_attention": "model.attention",
    "shift_right": "model.transformer",
    "sinusoids": "model.positions",
    "teacher_forcing": "model.transformer",
}

__all__ = ["PRESETS", "InputError", "TrainingConfig", "TransformerConfig", "preset", *_LAZY]

# The modules of layers, losses, metrics and schedules.
_KERAS_MODULES = {module for module in _LAZY.values() if module.startswith(("model.", "training."))}
register_with_keras([f"{__name__}.{module}" for module in sorted(_KERAS_MODULES)])


def __getattr__(name: str):
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if _LAZY[name] in _KERAS_MODULES:
        importlib.import_module("keras")  # before that module, so that all of them are registered
    value = getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *__all__})
