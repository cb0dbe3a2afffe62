"""What a model attends to for a pair of texts."""

from keras_transformer.analysis.attention_views import AttentionView, attention_views
from keras_transformer.decoding.attention_maps import AttentionMaps
from keras_transformer.decoding.translator import Translator


def text_views(translator: Translator, source: str, target: str) -> list[AttentionView]:
    """Computes the three attentions of a sentence and a translation of it.

    Both are cut where they are longer than the translator's limits.

    Raises:
        InputError: where the model's weights are not finite.
    """
    found = translator.attention(source, target)
    maps = AttentionMaps(*(getattr(found, name)[None] for name in AttentionMaps._fields))
    return attention_views(found.source_pieces, found.target_pieces, maps)
