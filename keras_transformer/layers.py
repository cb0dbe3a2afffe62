"""All layers, losses, metrics and schedules of this library, and related functions.

Importing this module registers the classes with Keras, so that `keras.models.load_model` finds
them:

    import keras
    import keras_transformer.layers

    model = keras.models.load_model("model.keras")
"""

from keras_transformer.model.attention import MultiHeadAttention, scaled_dot_product_attention
from keras_transformer.model.decoder import Decoder, DecoderLayer
from keras_transformer.model.dropout import Dropout
from keras_transformer.model.embedding import TokenEmbedding
from keras_transformer.model.encoder import Encoder, EncoderLayer
from keras_transformer.model.feed_forward import FeedForward, GatedFeedForward
from keras_transformer.model.masks import causal_mask, padding_mask
from keras_transformer.model.positional_encoding import PositionalEncoding
from keras_transformer.model.positions import sinusoids
from keras_transformer.model.transformer import Transformer, shift_right, teacher_forcing
from keras_transformer.training.losses import LabelSmoothedCrossEntropy
from keras_transformer.training.metrics import MaskedAccuracy, MaskedPerplexity
from keras_transformer.training.schedule import WarmupInverseSquareRoot, WarmupToZero

__all__ = [
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
]
