"""A fake translator with fixed answers and attention."""

import types
from collections import namedtuple

import numpy as np
import pytest

from keras_transformer.core.vocabulary.language_codes import source_languages_of
from keras_transformer.kit.documents.memory.memory import best_matches
from keras_transformer.kit.documents.tree.translation import AlignedText, DocumentTranslator, Model
from keras_transformer.support.errors import require
from keras_transformer.use.store.languages import model_languages
from keras_transformer.use.translate.answer_counts import AnswerCounts
from keras_transformer.use.translate.answers import Translation
from keras_transformer.use.translate.language_prefix import LanguagePrefix
from keras_transformer.use.translate.terminology import phrases_of, terms_in
from keras_transformer.use.translate.translator import Translator

SOURCE_PIECES = ["▁the", "▁cat", "▁sleeps", ".", "</s>"]
TARGET_PIECES = ["▁die", "▁Ka", "tze", "▁schläft", ".", "</s>"]
# Replaces an AlignedPair.
Pair = namedtuple("Pair", ("target_pieces", "log_probs", "pharaoh"))
# Source position for each target piece.
ALIGNMENT = [0, 1, 1, 2, 3, 4]


class FakeCard(dict):
    """A card as GET /model shows it, whose fields a test may change."""

    calibration = None

    def flat(self):
        return dict(self)

    @property
    def description(self):
        return types.SimpleNamespace(
            task=self.get("task"),
            task_options=self.get("task_options") or {},
            languages=(self.get("data") or {}).get("languages"),
        )

    @property
    def languages(self):
        evaluation = self.get("evaluation") or {}
        return model_languages(self.description, evaluation.get("languages"))


class FakeTranslator:
    """Answers at once, unless `before_call` waits or raises, and records its arguments.

    Attention has two layers of two heads. In the second layer, the first head of `memory` follows
    ALIGNMENT and the second attends to "</s>"; all other heads attend uniformly.
    """

    require_calibration = Translator.require_calibration

    def __init__(self):
        self.engine = types.SimpleNamespace(
            name="tensorflow", functions=["attention_ids", "search_ids"]
        )
        self.card = FakeCard(
            task="translation", beam_size=2, alpha=0.6, max_source_length=256, parameters=1234567
        )
        self.config = types.SimpleNamespace(beam_size=2, is_greedy=False)
        self.memories = ()
        self.calls = []
        self.confidences = {}  # in sentences of documents
        self.lacking = {}  # terms that translations of sentences of documents lack
        self.before_call = lambda: None

    def translate(
        self,
        sentences,
        target_prefixes=None,
        aligned=False,
        required_phrases=(),
        confidence=False,
        terminology=None,
    ):
        self.calls.append(list(sentences))
        self.before_call()
        if target_prefixes:
            self.calls.append(list(target_prefixes))
            require(max(map(len, target_prefixes)) < 9, "prefixes", "must be short", "a long one")
            texts = [f"{prefix.strip()} b".strip() for prefix in target_prefixes]
            return [[translation(text, -0.5, -1.25)] for text in texts]
        if required_phrases:
            fits = len(required_phrases) == len(sentences)
            require(fits, "required_phrases", "must be as many as texts", len(required_phrases))
            return [[translation("+".join(row), -0.5, -1.25)] for row in required_phrases]
        if terminology:
            terms = terms_in(sentences, terminology)
            return [[translation("+".join(phrases_of(row)), -0.5, -1.25)] for row in terms]
        if aligned:
            pair = Pair(["b", "</s>"], [-0.125, -1.125], "0-0")
            return [[translation("b", -0.5, -1.25, pair=pair)] for _ in sentences]
        if confidence:
            return [[translation("b", -0.5, -1.25, confidence=0.3714)] for _ in sentences]
        known = [self.recall(sentence) for sentence in sentences]
        found = [
            translation("die Katze schläft.", -0.5, -1.25),
            translation("der Kater.", -1.75, -3.5),
        ]
        return [
            found if text is None else [translation(text, -0.25, -0.5, from_memory=True)]
            for text in known
        ]

    def recall(self, text):
        """Gives the translation of a text in the memories, if there is one."""
        found = [memory.find(text) for memory in self.memories]
        return next((target for target in found if target is not None), None)

    def matches(self, texts, count, to=None):
        texts = texts if to is None else self.with_codes(texts, to)
        return [best_matches(self.memories, text, count) for text in texts]

    def with_codes(self, texts, to):
        """Adds language codes like a model that has "de" and "cs", or such as LanguagePrefix."""
        if source_languages_of(self.card.description.task_options):
            return LanguagePrefix(self.card.languages).prepended(texts, to)
        require(to in ("de", "cs"), "to", "must be one of de, cs", to)
        require(not any(">>" in text for text in texts), "texts", "must be without codes", texts)
        return [f">>{to}<< {text}" for text in texts]

    def new_counts(self, review_below=0.0):
        return AnswerCounts(review_below)

    def document_translator(
        self, language=None, terminology=None, to=None, counts=None, review_below=None
    ):
        return self.document_translators(1, language, terminology, to, counts, review_below)[0]

    def document_translators(
        self, count, language=None, terminology=None, to=None, counts=None, review_below=None
    ):
        if to is not None:
            self.calls.append((to, language))
        if terminology is not None:
            self.calls.append(terminology)

        def of_rank(rank):
            def translate(texts, aligned):
                counts.from_memory += texts.count("known.")
                rows = self.translate(texts)
                counts.sentences += len(texts)
                judged = {} if review_below is None else self.confidences
                counts.doubtful += sum(judged.get(text, 1) < counts.review_below for text in texts)
                counts.without_terms += sum(text in self.lacking for text in texts)
                return [
                    AlignedText(
                        row[min(rank, len(row) - 1)].text,
                        confidence=judged.get(text),
                        without_terms=self.lacking.get(text, ()),
                    )
                    for text, row in zip(texts, rows, strict=True)
                ]

            def count_subwords(texts):
                return [len(text.split()) for text in texts]

            def knows(text):
                return text == "known." or self.recall(text) is not None

            model = Model(translate, count_subwords, limit=9, knows=knows)
            return DocumentTranslator(model, "en", review_below=review_below or 0.0)

        return [of_rank(rank) for rank in range(count)]

    def attention(self, source, target):
        self.calls.append((source, target))
        self.before_call()
        S, T = len(SOURCE_PIECES), len(TARGET_PIECES)
        memory = np.full([2, 2, T, S], 1 / S, np.float32)
        memory[1, 0] = np.eye(S)[ALIGNMENT]
        memory[1, 1] = np.eye(S)[[S - 1] * T]
        past = np.tril(np.ones([T, T], np.float32))
        return types.SimpleNamespace(
            source_pieces=SOURCE_PIECES,
            target_pieces=TARGET_PIECES,
            encoder=np.full([2, 2, S, S], 1 / S, np.float32),
            decoder=np.tile(past / past.sum(axis=1, keepdims=True), [2, 2, 1, 1]),
            memory=memory,
            alignment=np.array(ALIGNMENT, np.int32),
        )


def translation(text, score, log_prob, **others):
    return Translation(text, score, log_prob, tokens=5, **others)


@pytest.fixture
def translator():
    return FakeTranslator()
