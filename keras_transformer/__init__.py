"""keras-transformer: "Attention Is All You Need" (arXiv 1706.03762) on Keras 3 and TensorFlow.

Axis letters, used in every shape of this library:

    B  batch (sentences)      T  target positions       H  attention heads (h in the paper)
    S  source positions       D  model width (d_model)  K  beams
    V  vocabulary             F  inner width (d_ff)     N  layers of a stack

Reading order, each folder standing only on those before it: config, presets, model, training,
vocabulary, importing, decoding, parsing, evaluation, export, analysis, serving. Names are the
paper's: `d_model`, `d_ff`, `d_k` (`key_dim` of a layer), `d_v` (`value_dim`), `num_heads` (h),
`num_layers` (N), `dropout` (P_drop), `label_smoothing` (epsilon_ls).

Importing this package imports neither TensorFlow nor Keras; the first use of a name that needs them
does.
"""

import ast
import functools
import importlib
import inspect
import sys
from typing import TYPE_CHECKING

from keras_transformer.config import TrainingConfig, TransformerConfig
from keras_transformer.errors import InputError
from keras_transformer.presets import PRESETS, preset

if TYPE_CHECKING:  # and __getattr__ imports them at their first use
    from keras_transformer.loading import load
    from keras_transformer.model.attention import MultiHeadAttention, scaled_dot_product_attention
    from keras_transformer.model.decoder import Decoder, DecoderLayer
    from keras_transformer.model.dropout import Dropout
    from keras_transformer.model.embedding import TokenEmbedding
    from keras_transformer.model.encoder import Encoder, EncoderLayer
    from keras_transformer.model.feed_forward import FeedForward
    from keras_transformer.model.masks import causal_mask, padding_mask
    from keras_transformer.model.positions import PositionalEncoding, sinusoids
    from keras_transformer.model.restricted_attention import RestrictedSelfAttention
    from keras_transformer.model.sublayer import LayerNorm, Residual
    from keras_transformer.model.transformer import Transformer, shift_right, teacher_forcing
    from keras_transformer.training.losses import LabelSmoothedCrossEntropy
    from keras_transformer.training.metrics import MaskedAccuracy, MaskedPerplexity
    from keras_transformer.training.optimizer import FusedAdam
    from keras_transformer.training.schedule import WarmupInverseSquareRoot, WarmupToZero

__version__ = "0.1.0"

__all__ = ["PRESETS", "InputError", "TrainingConfig", "TransformerConfig", "load", "preset"]
__all__ += ["Decoder", "DecoderLayer", "Encoder", "EncoderLayer", "Transformer"]
__all__ += ["Dropout", "FeedForward", "LayerNorm", "MultiHeadAttention", "PositionalEncoding"]
__all__ += ["Residual", "RestrictedSelfAttention", "TokenEmbedding"]
__all__ += ["FusedAdam", "LabelSmoothedCrossEntropy", "MaskedAccuracy", "MaskedPerplexity"]
__all__ += ["WarmupInverseSquareRoot", "WarmupToZero", "causal_mask", "padding_mask"]
__all__ += ["scaled_dot_product_attention", "shift_right", "sinusoids", "teacher_forcing"]


@functools.cache
def _modules() -> dict[str, str]:
    """The module of each public name, read from the imports above when one is first needed."""
    tree = ast.parse(inspect.getsource(sys.modules[__name__]))
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    return {alias.name: node.module for node in imports for alias in node.names}


def __getattr__(name: str):
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_modules()[name]), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *__all__})
