"""Pictures of all attention heads while a model trains, for TensorBoard."""

from collections.abc import Callable, Sequence

import keras
import numpy as np
from absl import logging

from keras_transformer.analysis.attention_pictures import INSTALL, all_heads, has_matplotlib
from keras_transformer.analysis.attention_views import attention_views
from keras_transformer.decoding.answers import Answers
from keras_transformer.decoding.config import DecodingConfig
from keras_transformer.decoding.translator import Translator
from keras_transformer.vocabulary.pair import VocabularyPair


def attention_images(
    vocabularies: VocabularyPair,
    sources: Sequence[str],
    references: Sequence[str],
    max_source_length: int,
) -> Callable[[keras.Model], dict[str, np.ndarray]] | None:
    """Makes `draw_sample` of training.TrainingData; None, with a warning, without matplotlib.

    It draws the pair of median length among the first 1,000, the same each time:
    {"encoder", "decoder", "cross"}: uint8 [Y, X, 3], layers downwards, heads across.
    """
    if not has_matplotlib():
        logging.warning("no attention pictures: matplotlib is not installed (%s)", INSTALL)
        return None
    pairs = list(zip(sources, references, strict=True))[:1000]
    pair = sorted(pairs, key=lambda pair: len(pair[0]))[len(pairs) // 2]
    config = DecodingConfig(max_source_length=max_source_length)

    def draw(model: keras.Model) -> dict[str, np.ndarray]:
        # Not traced, as it is needed once.
        graphs = {"attention": Answers(model, vocabularies, config).attention}
        views = attention_views(Translator(graphs, config, model.config).attention(*pair))
        return {view.kind: all_heads(view) for view in views}

    return draw
