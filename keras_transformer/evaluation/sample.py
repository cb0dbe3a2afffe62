"""Answers to a few validation sentences during training, with their score."""

import random
import re
from collections.abc import Sequence
from typing import Any

import keras

from keras_transformer.decoding.answers import text_graphs
from keras_transformer.decoding.config import TASKS, DecodingConfig
from keras_transformer.decoding.parser import Parser
from keras_transformer.decoding.translator import Translator
from keras_transformer.evaluation.translation import translation_scores
from keras_transformer.parsing.parseval import parsing_scores, percent
from keras_transformer.parsing.trees import Tree
from keras_transformer.vocabulary.pair import VocabularyPair

SHOWN = 8  # rows of the table


class SampleAnswers:
    """Greedy answers to a fixed sample: the `translate_sample` of training.TrainingData.

    The sentences are drawn with a seed of their own, so that they are the same each time and the
    random numbers of training do not change.

    Args:
        sources, references: the whole split; the references of a parser are gold trees.
        sentences: size of the sample.
        max_length: length of the longest source in subwords.
        task_options: the fields of the Linearisation, if sources are to be parsed.
    """

    def __init__(
        self,
        vocabularies: VocabularyPair,
        sources: Sequence[str],
        references: Sequence[str] | Sequence[Tree],
        sentences: int,
        max_length: int,
        task_options: dict[str, Any] | None = None,
    ):
        chosen = random.Random(1).sample(range(len(sources)), min(sentences, len(sources)))
        self.sources = [sources[n] for n in sorted(chosen)]
        self.references = [references[n] for n in sorted(chosen)]
        self.vocabularies, self.task_options = vocabularies, task_options
        task = TASKS["translation" if task_options is None else "parsing"]
        self.config = DecodingConfig(1, 0.0, task.extra_length, max_source_length=max_length)
        self.translator: Translator | None = None

    def translator_of(self, model: keras.Model) -> Translator:
        """A translator with the weights that the model, each time the same one, has now."""
        if self.translator is None:  # its graphs are traced once
            of_task = Translator if self.task_options is None else Parser
            graphs = text_graphs(model, self.vocabularies, self.config)
            card = {"task_options": self.task_options}
            self.translator = of_task(graphs, self.config, model.config, card)
        return self.translator

    def __call__(self, model: keras.Model) -> tuple[dict[str, float], str]:
        """Answers the sample, and scores the answers.

        Returns {"bleu"}, or {"f1", "repaired": share of trees}, in percent, and the first answers
        as a table in Markdown.
        """
        found = [best for best, *_ in self.translator_of(model).translate(self.sources)]
        texts = [best.text for best in found]
        if self.task_options is None:
            scores = {"bleu": translation_scores(texts, self.references)["bleu"]}
        else:
            f1 = parsing_scores([best.tree for best in found], self.references)["f1"]
            repaired = sum(best.repairs.total > 0 for best in found)
            scores = {"f1": f1, "repaired": percent(repaired, len(found))}
        rows = list(zip(self.sources, self.references, texts, strict=True))[:SHOWN]
        lines = ["| source | reference | answer |", "|---|---|---|"]
        lines += [f"| {' | '.join(map(_literal, row))} |" for row in rows]
        return scores, "\n".join(lines)


def _literal(text: str | Tree) -> str:
    """Writes a text so that none of its characters has a meaning in Markdown."""
    return re.sub(r"[^\w ]|_", lambda mark: f"&#{ord(mark[0])};", str(text))
