"""All layers, losses, metrics and schedules of this library, and related functions.

Importing this module registers the classes with Keras; see keras_registration.py.
"""

from keras_transformer.core.model.attention import MultiHeadAttention, scaled_dot_product_attention
from keras_transformer.core.model.decoder import Decoder, DecoderLayer, RecurrentDecoderLayer
from keras_transformer.core.model.dropout import Dropout
from keras_transformer.core.model.embedding import TokenEmbedding
from keras_transformer.core.model.encoder import Encoder, EncoderLayer
from keras_transformer.core.model.feed_forward import FeedForward, GatedFeedForward
from keras_transformer.core.model.masks import causal_mask, padding_mask
from keras_transformer.core.model.positional_encoding import PositionalEncoding
from keras_transformer.core.model.positions import sinusoids
from keras_transformer.core.model.ssru import SSRU
from keras_transformer.core.model.transformer import Transformer, shift_right, teacher_forcing
from keras_transformer.core.training.losses import LabelSmoothedCrossEntropy
from keras_transformer.core.training.metrics import MaskedAccuracy, MaskedPerplexity
from keras_transformer.core.training.schedule import WarmupInverseSquareRoot, WarmupToZero

__all__ = [
    "SSRU",
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
    "RecurrentDecoderLayer",
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
]
