"""Translates what several requests have sent in one call: their sentences and short documents."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from keras_transformer.kit.serving.document_service import DocumentService
from keras_transformer.kit.serving.requests import Documents

SENTENCE_CHARACTERS = 100  # of a document, which count as one sentence of a call


def size_of(item: str | Documents) -> int:
    """Returns the number of sentences in an item, which is an estimate for documents."""
    if isinstance(item, str):
        return 1
    return sum(1 + len(text) // SENTENCE_CHARACTERS for text in item.texts)


class JointTranslation:
    """The function of a queue for sentences and short documents.

    Documents that are translated with the same options are one document to the model.

    Args:
        translate: translates sentences.
        documents: translates documents.
        terms_of: returns the terms of a named terminology.

    Attributes:
        sentences: number of sentences translated so far, also those of documents.
    """

    def __init__(
        self,
        translate: Callable[[list[str]], Sequence[Any]],
        documents: DocumentService,
        terms_of: Callable[[str | None], dict[str, str] | None],
    ):
        self._translate = translate
        self._documents = documents
        self._terms_of = terms_of
        self.sentences = 0

    def __call__(self, items: list[str | Documents]) -> list[Any]:
        """Returns the translations of each sentence, and those of the texts of each document."""
        alike = defaultdict(list)
        for index, item in enumerate(items):
            options = None if isinstance(item, str) else item._replace(texts=())
            alike[options].append(index)
        answers: list[Any] = [None] * len(items)
        for options, indices in alike.items():
            group = [items[index] for index in indices]
            rows = self._of_sentences(group) if options is None else self._of_documents(group)
            for index, row in zip(indices, rows, strict=True):
                answers[index] = row
        return answers

    def _of_sentences(self, sentences: list[str]) -> Sequence[Any]:
        self.sentences += len(sentences)
        return self._translate(sentences)

    def _of_documents(self, group: list[Documents]) -> list[list[list[str]]]:
        """Translates the documents of requests with the same options."""
        texts = [text for documents in group for text in documents.texts]
        joined = group[0]._replace(texts=texts)
        translated = self._documents.translations_of(joined, self._terms_of(joined.terminology))
        self.sentences += translated.counts.sentences
        rows = iter(translated.rows)
        return [[next(rows) for _ in documents.texts] for documents in group]
