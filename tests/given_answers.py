"""What tests need of a model without TensorFlow: an engine with canned answers, and a card."""

import dataclasses

import numpy as np

from keras_transformer.core.config import EOS_ID
from keras_transformer.core.search.hypotheses import Hypotheses
from keras_transformer.core.training.model_directory import describe_unknown_training
from keras_transformer.core.vocabulary.pair import VocabularyPair
from keras_transformer.use.store.card import ModelCard


class GivenAnswers:
    """An engine with canned answers, which is also its own vocabulary.

    Every text is one subword with an id of its own, and so is every answer.

    Args:
        answer: text -> [(translation, score), ...], of the same length for every text.

    Attributes:
        texts: all texts that were encoded, in order.
        vocabularies: for a Translator with this engine.
    """

    languages = ()
    term_ids = ()
    streams = 1
    functions = ("search_ids", "score_ids")

    def __init__(self, answer):
        self._answer = answer
        self.texts = []
        self.vocabularies = VocabularyPair(self, self)

    def encode(self, texts, threads=1):
        first = len(self.texts) + 4
        self.texts += texts
        return [[first + place] for place, _ in enumerate(texts)]

    def decode(self, rows):
        return [self._written[row[0]] if row else "" for row in rows]

    def search(self, request):
        answers = [self._answer(self.texts[row[0] - 4]) for row in request.ids]
        self._written = [text for row in answers for text, _ in row]
        shape = (len(answers), len(answers[0]))
        ids = np.arange(len(self._written)).reshape(*shape, 1)
        ids = np.concatenate([ids, np.full((*shape, 2), EOS_ID)], axis=2)
        scores = np.array([[float(score) for _, score in row] for row in answers])
        return Hypotheses(ids, np.full(shape, 3), scores, 2 * scores)

    search_greedily = search

    def score(self, source, target):
        return np.full(len(source), -1.0)


def card_of(config, options, **facts):
    """Makes the card of a model about which nothing else is known.

    Args:
        facts: further fields of the card, or of its description.
    """
    fields = [field.name for field in dataclasses.fields(ModelCard)]
    of_card = {name: facts.pop(name) for name in fields if name in facts}
    description = describe_unknown_training(config, {"vocabulary_fingerprint": "0123"})
    description = dataclasses.replace(description, **facts)
    return ModelCard(description, options, parameters=7, **of_card)
