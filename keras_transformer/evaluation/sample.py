"""Answers to a few validation sentences during training, with their score."""

import dataclasses
import random
from collections.abc import Sequence

import keras

from keras_transformer.decoding.answers import text_graphs
from keras_transformer.decoding.config import TASKS, DecodingConfig
from keras_transformer.decoding.parser import Parser
from keras_transformer.decoding.translator import Translator
from keras_transformer.evaluation.translation import translation_scores
from keras_transformer.parsing.linearisation import Linearisation
from keras_transformer.parsing.parseval import parsing_scores, percent
from keras_transformer.parsing.trees import Tree
from keras_transformer.vocabulary.pair import VocabularyPair

SHOWN = 8  # number of answers in the text


class SampleAnswers:
    """Greedy answers to a fixed sample: the `translate_sample` of training.TrainingData.

    The sentences are drawn with a seed of their own, so that they are the same each time and the
    random numbers of training do not change.

    Args:
        sources, references: the whole split; the references of a parser are gold trees.
        sentences: size of the sample.
        max_length: length of the longest source in subwords.
        linearisation: of the trees, if sources are to be parsed.
    """

    def __init__(
        self,
        vocabularies: VocabularyPair,
        sources: Sequence[str],
        references: Sequence[str] | Sequence[Tree],
        sentences: int,
        max_length: int,
        linearisation: Linearisation | None = None,
    ):
        chosen = random.Random(1).sample(range(len(sources)), min(sentences, len(sources)))
        self.sources = [sources[n] for n in sorted(chosen)]
        self.references = [references[n] for n in sorted(chosen)]
        self.vocabularies, self.linearisation = vocabularies, linearisation
        task = TASKS["translation" if linearisation is None else "parsing"]
        self.config = DecodingConfig(1, 0.0, task.extra_length, max_source_length=max_length)
        self.translator: Translator | None = None

    def __call__(self, model: keras.Model) -> tuple[dict[str, float], str]:
        """Answers with the weights that the model, each time the same one, has now.

        Returns:
            {"bleu"}, or {"f1", "repaired": share of trees}, in percent; and sources, references and
            answers in Markdown.
        """
        if self.translator is None:  # its graphs are traced once
            graphs = text_graphs(model, self.vocabularies, self.config)
            parts = (graphs, self.config, model.config)
            if self.linearisation is None:
                self.translator = Translator(*parts)
            else:
                card = {"task_options": dataclasses.asdict(self.linearisation)}
                self.translator = Parser(*parts, card)
        found = [best for best, *_ in self.translator.translate(self.sources)]
        if self.linearisation is None:
            texts = [best.text for best in found]
            scores = {"bleu": translation_scores(texts, self.references)["bleu"]}
        else:
            f1 = parsing_scores([best.tree for best in found], self.references)["f1"]
            repaired = sum(best.repairs.total > 0 for best in found)
            scores = {"f1": f1, "repaired": percent(repaired, len(found))}
        rows = list(zip(self.sources, self.references, found, strict=True))[:SHOWN]
        shown = "\n\n".join(
            f"source: {source}  \nreference: `{reference}`  \nanswer: `{answer.text}`"
            for source, reference, answer in rows
        )
        return scores, shown
