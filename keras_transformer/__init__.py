"""keras-transformer: "Attention Is All You Need" (arXiv 1706.03762) on Keras 3 and TensorFlow.

Axis letters, used in every shape of this library:

    B  batch (sentences)      T  target positions       H  attention heads (h in the paper)
    S  source positions       D  model width (d_model)  K  beams
    V  vocabulary             F  inner width (d_ff)     N  layers of a stack

Reading order, where each folder uses only those before it: config, presets, model, vocabulary,
training, search, store, translate, parsing, documents, evaluation, importing, export, attention,
paper, serving. Names are the paper's: `d_model`, `d_ff`, `d_k` (`key_dim` of a layer), `d_v`
(`value_dim`), `num_heads` (h), `num_layers` (N), `dropout` (P_drop), `label_smoothing`
(epsilon_ls).

Importing this package imports neither TensorFlow nor Keras; the first use of a name that needs them
does, and registers the classes with Keras. If Keras has already been imported, they are registered
at once. A process that only calls `keras.models.load_model` must first import
`keras_transformer.layers`.
"""

import importlib
import sys
from typing import TYPE_CHECKING

from keras_transformer.core.config import TrainingConfig, TransformerConfig
from keras_transformer.core.presets import PRESETS, preset
from keras_transformer.support.errors import InputError
from keras_transformer.support.quiet_tensorflow import QuietTensorFlow
from keras_transformer.support.version import VERSION as __version__

if TYPE_CHECKING:  # for editors and type checkers; see _LAZY
    from keras_transformer.layers import *
    from keras_transformer.loading import load, load_parser
    from pipelines.batches.data_set import DataSet
    from pipelines.programs import evaluate, prepare, train
    from pipelines.sources.files import GrammarSource

# Public names imported on first use: they need TensorFlow and Keras, or belong to `pipelines`.
_NAMES_IN_LAYERS = (
    "Decoder",
    "DecoderLayer",
    "Dropout",
    "Encoder",
    "EncoderLayer",
    "FeedForward",
    "GatedFeedForward",
    "LabelSmoothedCrossEntropy",
    "MaskedAccuracy",
    "MaskedPerplexity",
    "MultiHeadAttention",
    "PositionalEncoding",
    "TokenEmbedding",
    "Transformer",
    "WarmupInverseSquareRoot",
    "WarmupToZero",
    "causal_mask",
    "padding_mask",
    "scaled_dot_product_attention",
    "shift_right",
    "sinusoids",
    "teacher_forcing",
)
_LAZY = {
    **dict.fromkeys(_NAMES_IN_LAYERS, "keras_transformer.layers"),
    "DataSet": "pipelines.batches.data_set",
    "GrammarSource": "pipelines.sources.files",
    "load": "keras_transformer.loading",
    "load_parser": "keras_transformer.loading",
    "evaluate": "pipelines.programs",
    "prepare": "pipelines.programs",
    "train": "pipelines.programs",
}

__all__ = ["PRESETS", "InputError", "TrainingConfig", "TransformerConfig", "preset", *_LAZY]


def __getattr__(name: str):
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_LAZY[name]), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *__all__})


sys.meta_path.insert(0, QuietTensorFlow())
if "keras" in sys.modules:  # importing the classes registers them with Keras
    importlib.import_module("keras_transformer.layers")
