"""keras-transformer: "Attention Is All You Need" (arXiv 1706.03762) on Keras 3 and TensorFlow.

Axis letters, used in every shape of this library:

    B  batch (sentences)      T  target positions       H  attention heads (h in the paper)
    S  source positions       D  model width (d_model)  K  beams
    V  vocabulary             F  inner width (d_ff)     N  layers of a stack

The README.md beside this file gives the reading order. Names are the paper's: `d_model`, `d_ff`,
`d_k` (`key_dim` of a layer), `d_v` (`value_dim`), `num_heads` (h), `num_layers` (N), `dropout`
(P_drop), `label_smoothing` (epsilon_ls).

Importing this package imports neither TensorFlow nor Keras; the first use of a name that needs them
does. The classes are registered with Keras as soon as both packages are imported, in either order,
so that `keras.models.load_model` finds them.
"""

import importlib
import sys
from typing import TYPE_CHECKING

from keras_transformer.core.config import TrainingConfig, TransformerConfig
from keras_transformer.core.presets import PRESETS, preset
from keras_transformer.keras_registration import RegisteringKeras, register
from keras_transformer.support.errors import InputError
from keras_transformer.support.quiet_tensorflow import QuietTensorFlow
from keras_transformer.support.version import VERSION as __version__

if TYPE_CHECKING:  # for editors and type checkers; see _LAZY
    from keras_transformer.kit.documents.text_translator import TextTranslator
    from keras_transformer.kit.parsing.parser import Parser
    from keras_transformer.layers import (
        SSRU,
        Decoder,
        DecoderLayer,
        Dropout,
        Encoder,
        EncoderLayer,
        FeedForward,
        GatedFeedForward,
        LabelSmoothedCrossEntropy,
        MaskedAccuracy,
        MaskedPerplexity,
        MultiHeadAttention,
        PositionalEncoding,
        RecurrentDecoderLayer,
        TokenEmbedding,
        Transformer,
        WarmupInverseSquareRoot,
        WarmupToZero,
        causal_mask,
        padding_mask,
        scaled_dot_product_attention,
        shift_right,
        sinusoids,
        teacher_forcing,
    )
    from keras_transformer.loading import load, load_parser
    from pipelines.batches.data_set import DataSet
    from pipelines.programs import evaluate, prepare, train
    from pipelines.sample_text import sample_pairs

__all__ = [
    "PRESETS",
    "SSRU",
    "DataSet",
    "Decoder",
    "DecoderLayer",
    "Dropout",
    "Encoder",
    "EncoderLayer",
    "FeedForward",
    "GatedFeedForward",
    "InputError",
    "LabelSmoothedCrossEntropy",
    "MaskedAccuracy",
    "MaskedPerplexity",
    "MultiHeadAttention",
    "Parser",
    "PositionalEncoding",
    "RecurrentDecoderLayer",
    "TextTranslator",
    "TokenEmbedding",
    "TrainingConfig",
    "Transformer",
    "TransformerConfig",
    "WarmupInverseSquareRoot",
    "WarmupToZero",
    "causal_mask",
    "evaluate",
    "load",
    "load_parser",
    "padding_mask",
    "prepare",
    "preset",
    "sample_pairs",
    "scaled_dot_product_attention",
    "shift_right",
    "sinusoids",
    "teacher_forcing",
    "train",
]

# The modules of public names that are imported on first use: they need TensorFlow and Keras, or
# belong to `pipelines`. All others are in `layers`.
_MODULES = {
    "DataSet": "pipelines.batches.data_set",
    "Parser": "keras_transformer.kit.parsing.parser",
    "TextTranslator": "keras_transformer.kit.documents.text_translator",
    "load": "keras_transformer.loading",
    "load_parser": "keras_transformer.loading",
    "evaluate": "pipelines.programs",
    "prepare": "pipelines.programs",
    "sample_pairs": "pipelines.sample_text",
    "train": "pipelines.programs",
}
_LAZY = {
    name: _MODULES.get(name, "keras_transformer.layers")
    for name in __all__
    if name not in globals()
}

if not TYPE_CHECKING:  # to a type checker, it would make any name an Any

    def __getattr__(name: str):
        if name not in _LAZY:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(_LAZY[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


sys.meta_path[:0] = [QuietTensorFlow(), RegisteringKeras()]
if "keras" in sys.modules:
    register()
