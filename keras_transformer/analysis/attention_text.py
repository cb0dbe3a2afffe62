"""What a model attends to for a pair of texts."""

import keras
import tensorflow as tf

from keras_transformer.analysis.attention_views import AttentionView, attention_views
from keras_transformer.decoding import answers
from keras_transformer.decoding.attention_maps import AttentionMaps
from keras_transformer.decoding.inference import DecodingConfig, Tokenizer
from keras_transformer.decoding.translator import utf8


def text_views(
    model: keras.Model, tokenizer: Tokenizer, source: str, target: str, config: DecodingConfig
) -> list[AttentionView]:
    """Computes the three attentions of a sentence and a translation of it.

    Both are cut where they are longer than `config` and the model allow.

    Raises:
        InputError: where the model's weights are not finite.
    """
    texts = (tf.constant([utf8(text)]) for text in (source, target))
    found = answers.attention(model, tokenizer, *texts, config)
    pieces = (
        [piece.decode("utf-8") for piece in found[f"{side}_pieces"][0].numpy().tolist()]
        for side in ("source", "target")
    )
    return attention_views(*pieces, AttentionMaps(*(found[n] for n in AttentionMaps._fields)))
