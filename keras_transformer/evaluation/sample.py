"""Translations of a few validation sentences during training, with their BLEU."""

import random
from collections.abc import Sequence

import keras

from keras_transformer.decoding.answers import text_graphs
from keras_transformer.decoding.inference import DecodingConfig, Tokenizer
from keras_transformer.decoding.translator import Translator
from keras_transformer.evaluation.translation import translation_scores

SHOWN = 8  # number of translations in the text


class SampleTranslation:
    """Greedy translations of a fixed sample: the `translate_sample` of training.TrainingData.

    The sentences are drawn with a seed of their own, so that they are the same each time and the
    random numbers of training do not change.

    Args:
        tokenizer: the vocabulary.
        sources, references: the whole split.
        sentences: size of the sample.
        max_length: length of the longest source in subwords.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        sources: Sequence[str],
        references: Sequence[str],
        sentences: int,
        max_length: int,
    ):
        chosen = random.Random(1).sample(range(len(sources)), min(sentences, len(sources)))
        self.sources = [sources[n] for n in sorted(chosen)]
        self.references = [references[n] for n in sorted(chosen)]
        self.tokenizer = tokenizer
        self.config = DecodingConfig(beam_size=1, alpha=0.0, max_source_length=max_length)
        self.model: keras.Model | None = None
        self.translator: Translator | None = None

    def translator_of(self, model: keras.Model) -> Translator:
        """The translator of a model; its graphs, traced once, read the weights as they are."""
        if self.model is not model:
            self.model, self.translator = model, self.make_translator(model)
        return self.translator

    def make_translator(self, model: keras.Model) -> Translator:
        graphs = text_graphs(model, self.tokenizer, self.config)
        return Translator(graphs, self.config, model.config)

    def __call__(self, model: keras.Model) -> tuple[dict[str, float], str]:
        """Returns {"bleu": percent}, and sources, references and translations in Markdown."""
        found = [best[0].text for best in self.translator_of(model).translate(self.sources)]
        scores = translation_scores(found, self.references)
        rows = list(zip(self.sources, self.references, found, strict=True))[:SHOWN]
        shown = "\n\n".join(
            f"source: {source}  \nreference: {reference}  \ntranslation: {translation}"
            for source, reference, translation in rows
        )
        return {"bleu": scores["bleu"]}, shown
