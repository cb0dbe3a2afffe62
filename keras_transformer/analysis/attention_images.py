"""Pictures of all attention heads while a model trains, for TensorBoard."""

from collections.abc import Sequence

import keras
import numpy as np

from keras_transformer.analysis.attention_text import text_views
from keras_transformer.decoding import answers
from keras_transformer.decoding.inference import DecodingConfig, Tokenizer
from keras_transformer.decoding.translator import Translator

TILE = 96  # pixels of a head's picture at least, where its weights are few
SPACE = 4  # pixels between heads
INK, RULE = (16, 42, 92), (200, 204, 212)  # weight 1, and between the heads; weight 0 is white


class AttentionImages:
    """Draws what every head attends to in one sentence, for `draw_sample` of training.TrainingData.

    The same sentence and reference each time: of the middle length of the split's first 1,000.

    Args:
        tokenizer: the vocabulary.
        sources, references: the split.
        max_length: longest source in subwords.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        sources: Sequence[str],
        references: Sequence[str],
        max_length: int,
    ):
        pairs = list(zip(sources, references, strict=True))[:1000]
        self.pair = sorted(pairs, key=lambda pair: len(pair[0]))[len(pairs) // 2]
        self.tokenizer = tokenizer
        self.config = DecodingConfig(max_source_length=max_length)

    def __call__(self, model: keras.Model) -> dict[str, np.ndarray]:
        """Returns {"encoder", "decoder", "memory"}: uint8 [Y, X, 3], layers down, heads across."""

        def attention(source, target):  # untraced: it is needed once
            return answers.attention(model, self.tokenizer, source, target, self.config)

        translator = Translator({"attention": attention}, self.config, model.config)
        views = text_views(translator, *self.pair)
        return {view.kind: head_tiles(view.weights) for view in views}


def head_tiles(weights: np.ndarray) -> np.ndarray:
    """Lays out the heat maps of all heads: queries downwards, keys across, darker for more weight.

    Args:
        weights: [N, H, Q, P], from 0 to 1.

    Returns:
        uint8 [Y, X, 3], Y = N (s Q + SPACE) + SPACE and X alike of H and P, where a weight is a
        square of s pixels.
    """
    layers, heads, queries, keys = weights.shape
    size = max(1, TILE // max(queries, keys))
    squares = weights.repeat(size, axis=2).repeat(size, axis=3)[..., None]
    tiles = np.rint(255 + squares * (np.array(INK) - 255)).astype(np.uint8)
    shape = [layers * (size * queries + SPACE) + SPACE, heads * (size * keys + SPACE) + SPACE, 3]
    picture = np.full(shape, RULE, np.uint8)
    for n, h in np.ndindex(layers, heads):
        y, x = (SPACE + i * (tiles.shape[axis] + SPACE) for i, axis in ((n, 2), (h, 3)))
        picture[y : y + tiles.shape[2], x : x + tiles.shape[3]] = tiles[n, h]
    return picture
