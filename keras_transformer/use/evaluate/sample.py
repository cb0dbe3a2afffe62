"""Answers to a few validation sentences during training, with their scores."""

import dataclasses
import random
import re
from collections.abc import Callable, Sequence
from typing import Any

from absl import logging

from keras_transformer.core.model.transformer import Transformer
from keras_transformer.core.search.compiled_model import CompiledModel, compile_model
from keras_transformer.core.search.config import TASKS, DecodingConfig, SearchSettings
from keras_transformer.core.search.engines.engine import Engine
from keras_transformer.core.search.engines.graphs import SearchGraphs
from keras_transformer.core.search.engines.tensorflow_engine import TensorFlowEngine
from keras_transformer.core.search.weights import update_weights
from keras_transformer.core.training.model_directory import describe_unknown_training
from keras_transformer.core.vocabulary.pair import VocabularyPair
from keras_transformer.use.evaluate.directions import direction_scores
from keras_transformer.use.evaluate.translation import translation_scores
from keras_transformer.use.store.card import ModelCard
from keras_transformer.use.translate.answers import Translation
from keras_transformer.use.translate.translator import Translator

SHOWN = 8  # rows in the table


def _bleu(answers: Sequence[Translation], references: Sequence[str]) -> dict[str, float]:
    return {"bleu": translation_scores([answer.text for answer in answers], references)["bleu"]}


@dataclasses.dataclass(frozen=True)
class SampleTask:
    """How a sample is answered and scored; translation, if not given."""

    name: str = "translation"
    options: dict[str, Any] | None = None  # of the model's description
    answerer: Callable[[Translator], Any] = lambda translator: translator
    scores: Callable[[Sequence[Translation], Sequence[Any]], dict[str, float]] = _bleu


class SampleAnswers:
    """Greedy answers to a fixed sample: the `translate_sample` of training.TrainingData.

    The sentences are drawn with a separate seed, so that they are the same each time and do not
    affect the random numbers in training.

    Args:
        sources, references: the whole split; the references are what `task.scores` takes.
        sentences: size of the sample.
        max_length: length of the longest source in subwords.
        task: how they are answered and scored.
        directions: the direction of each sentence, such as "en-de", if there are several. The
            sample has equally many sentences of each, if possible.
    """

    def __init__(
        self,
        vocabularies: VocabularyPair,
        sources: Sequence[str],
        references: Sequence[Any],
        sentences: int,
        max_length: int,
        task: SampleTask = SampleTask(),
        directions: Sequence[str] | None = None,
    ):
        chosen = _drawn(range(len(sources)), sentences)
        self.directions = None
        if directions is not None:
            chosen = _drawn_of_each(directions, sentences)
            self.directions = [directions[n] for n in chosen]
        self.sources = [sources[n] for n in chosen]
        self.references = [references[n] for n in chosen]
        by_length = sorted(range(len(chosen)), key=lambda n: len(self.sources[n]))
        self.logged = by_length[len(chosen) // 4]  # a rather short one
        self.vocabularies = vocabularies
        self.task = task
        self.config = DecodingConfig(
            beam_size=1,
            alpha=0.0,
            extra_length=TASKS[task.name].extra_length,
            max_source_length=max_length,
        )
        self.compiled: CompiledModel | None = None
        self.translator: Any = None  # what the task makes of a Translator

    def translator_of(self, model: Transformer) -> Any:
        """Returns a translator with the current weights of the model, always the same one."""
        if self.translator is None:  # its graphs are only traced once
            self.compiled = compile_model(model)
            settings = SearchSettings(self.config)
            engine = TensorFlowEngine(SearchGraphs(self.compiled, settings))
            self.translator = self._make_translator(engine, model)
        else:
            update_weights(self.compiled.weights, model)
        return self.translator

    def _make_translator(self, engine: Engine, model: Transformer) -> Any:
        description = describe_unknown_training(
            model.config,
            self.vocabularies.fingerprints,
            self.task.name,
            self.task.options,
        )
        card = ModelCard(description, self.config, parameters=model.count_params())
        return self.task.answerer(Translator(engine, self.vocabularies, card))

    def __call__(self, model: Transformer) -> tuple[dict[str, float], str]:
        """Answers the sample, scores the answers, and logs one of them.

        Returns the task's scores, such as {"bleu"}, and the first answers as a Markdown table. With
        several directions, "bleu" and "chrf" are means, and each has {"bleu_en-de", "chrf_en-de"}.
        """
        translator = self.translator_of(model)
        answers = [best for best, *_ in translator.translate(self.sources, scores=False)]
        texts = [best.text for best in answers]
        if self.directions is not None:
            all_scores = direction_scores(texts, self.references, self.directions)
            scores = {name: all_scores[name] for name in ("bleu", "chrf")}
            for direction, of_direction in all_scores["directions"].items():
                scores[f"bleu_{direction}"] = of_direction["bleu"]
                scores[f"chrf_{direction}"] = of_direction["chrf"]
        else:
            scores = self.task.scores(answers, self.references)
        logging.info("%s -> %s", self.sources[self.logged], texts[self.logged])
        rows = list(zip(self.sources, self.references, texts, strict=True))[:SHOWN]
        lines = ["| source | reference | answer |", "|---|---|---|"]
        lines += [f"| {' | '.join(map(_literal, row))} |" for row in rows]
        return scores, "\n".join(lines)


def _drawn(numbers: Sequence[int], size: int) -> list[int]:
    """Draws at most `size` of the numbers, and returns them in order."""
    return sorted(random.Random(1).sample(numbers, min(size, len(numbers))))


def _drawn_of_each(directions: Sequence[str], size: int) -> list[int]:
    """Draws indices of about `size` sentences: equally many per direction, at least 1."""
    rows = {name: [] for name in directions}
    for row, name in enumerate(directions):
        rows[name].append(row)
    of_each = max(1, size // len(rows))
    return [row for numbers in rows.values() for row in _drawn(numbers, of_each)]


def _literal(text: Any) -> str:
    """Escapes a text, or what is shown as one, for Markdown."""
    return re.sub(r"[^\w ]|_", lambda mark: f"&#{ord(mark[0])};", str(text))
