"""keras-transformer: "Attention Is All You Need" (arXiv 1706.03762) on Keras 3 and TensorFlow.

Axis letters, used in every shape of this library:

    B  batch (sentences)      T  target positions       H  attention heads (h in the paper)
    S  source positions       D  model width (d_model)  K  beams
    V  vocabulary             F  inner width (d_ff)     N  layers of a stack

Reading order, each folder standing only on those before it: config, presets, model, vocabulary,
training, importing, parsing, documents, decoding, evaluation, export, attention, paper, serving.
Names are the paper's: `d_model`, `d_ff`, `d_k` (`key_dim` of a layer), `d_v` (`value_dim`),
`num_heads` (h), `num_layers` (N), `dropout` (P_drop), `label_smoothing` (epsilon_ls).

Importing this package imports neither TensorFlow nor Keras; the first use of a name that needs them
does. Where Keras is imported, before, after or by this package, it knows the classes here, and
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
    from pipelines.programs import evaluate, prepare, train

__version__ = "0.1.0"

# Public names that need TensorFlow, Keras or pipelines, and the modules that they are imported from
# at their first use.
_LAZY = {
    "Decoder": "keras_transformer.model.decoder",
    "DecoderLayer": "keras_transformer.model.decoder",
    "Dropout": "keras_transformer.model.dropout",
    "Encoder": "keras_transformer.model.encoder",
    "EncoderLayer": "keras_transformer.model.encoder",
    "FeedForward": "keras_transformer.model.feed_forward",
    "GatedFeedForward": "keras_transformer.model.feed_forward",
    "LabelSmoothedCrossEntropy": "keras_transformer.training.losses",
    "MaskedAccuracy": "keras_transformer.training.metrics",
    "MaskedPerplexity": "keras_transformer.training.metrics",
    "MultiHeadAttention": "keras_transformer.model.attention",
    "PositionalEncoding": "keras_transformer.model.positions",
    "TokenEmbedding": "keras_transformer.model.embedding",
    "Transformer": "keras_transformer.model.transformer",
    "WarmupInverseSquareRoot": "keras_transformer.training.schedule",
    "WarmupToZero": "keras_transformer.training.schedule",
    "causal_mask": "keras_transformer.model.masks",
    "evaluate": "pipelines.programs",
    "load": "keras_transformer.loading",
    "padding_mask": "keras_transformer.model.masks",
    "prepare": "pipelines.programs",
    "scaled_dot_product_attention": "keras_transformer.model.attention",
    "shift_right": "keras_transformer.model.transformer",
    "sinusoids": "keras_transformer.model.positions",
    "teacher_forcing": "keras_transformer.model.transformer",
    "train": "pipelines.programs",
}

__all__ = ["PRESETS", "InputError", "TrainingConfig", "TransformerConfig", "preset", *_LAZY]

# The modules of layers, losses, metrics and schedules.
_OF_KERAS = ("keras_transformer.model.", "keras_transformer.training.")
_KERAS_MODULES = sorted({module for module in _LAZY.values() if module.startswith(_OF_KERAS)})
register_with_keras(_KERAS_MODULES)


def __getattr__(name: str):
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_LAZY[name]), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *__all__})
