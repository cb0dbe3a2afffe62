"""Pictures of all attention heads while a model trains, for TensorBoard."""

from collections.abc import Sequence

import keras
import numpy as np
from absl import logging

from keras_transformer.analysis.attention_pictures import INSTALL, all_heads, has_matplotlib
from keras_transformer.analysis.attention_views import attention_views
from keras_transformer.decoding.answers import Answers
from keras_transformer.decoding.config import DecodingConfig
from keras_transformer.decoding.translator import Translator
from keras_transformer.vocabulary.subwords import Subwords


class AttentionImages:
    """Draws what every head attends to in one sentence, for `draw_sample` of training.TrainingData.

    It is the same sentence and reference each time: the one of median length among the first 1,000
    of the split. Without matplotlib, a line of the log says so and there are no pictures.
    """

    def __init__(
        self,
        tokenizer: Subwords,
        sources: Sequence[str],
        references: Sequence[str],
        max_length: int,  # of a source, in subwords
    ):
        pairs = list(zip(sources, references, strict=True))[:1000]
        self.pair = sorted(pairs, key=lambda pair: len(pair[0]))[len(pairs) // 2]
        self.tokenizer = tokenizer
        self.config = DecodingConfig(max_source_length=max_length)
        if not has_matplotlib():
            logging.warning("no attention pictures: matplotlib is not installed (%s)", INSTALL)

    def __call__(self, model: keras.Model) -> dict[str, np.ndarray]:
        """Returns {"encoder", "decoder", "cross"}: uint8 [Y, X, 3], layers down, heads across."""
        if not has_matplotlib():
            return {}
        # Not traced, as it is needed once.
        graphs = {"attention": Answers(model, self.tokenizer, self.config).attention}
        translator = Translator(graphs, self.config, model.config)
        views = attention_views(translator.attention(*self.pair))
        return {view.kind: all_heads(view) for view in views}
