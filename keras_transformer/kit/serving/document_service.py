"""Translates the documents of requests; this is slow, and must not run in the event loop."""

import threading
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from keras_transformer.kit.documents.formats import read_document
from keras_transformer.kit.documents.text.xml_source import MOST_MARKUP
from keras_transformer.kit.documents.tree.segments import Document
from keras_transformer.kit.serving.errors import RequestError
from keras_transformer.kit.serving.limits import Limits
from keras_transformer.kit.serving.requests import Documents
from keras_transformer.support.errors import InputError

if TYPE_CHECKING:  # it imports TensorFlow, which checking a flag need not wait for
    from keras_transformer.kit.documents.text_translator import TextTranslator
    from keras_transformer.kit.documents.tree.translation import DocumentTranslator
    from keras_transformer.use.translate.answer_counts import AnswerCounts


class TranslatedDocuments(NamedTuple):
    """The translations of documents."""

    rows: list[list[str | bytes]]  # the best translations of each document, the best first
    counts: "AnswerCounts"  # of the answers to their sentences; equal ones count once
    left: dict[str, int]  # pieces that stay as they are, by kind


class DocumentService:
    """Translates documents with a translator.

    Args:
        translator: from keras_transformer.load.
        limits: the limits on requests.
    """

    def __init__(self, translator: "TextTranslator", limits: Limits):
        self._translator = translator
        self._limits = limits

    def check_review(self, review_below: float) -> None:
        """Rejects a review if the model cannot judge its translations."""
        if review_below:
            self._translator.require_calibration("review_below", review_below)

    def translations_of(
        self,
        documents: Documents,
        terms: dict[str, str] | None,
        given_up: threading.Event | None = None,
    ) -> "TranslatedDocuments":
        """Translates documents, whose sentences are searched together.

        When `given_up` is set, the sentences that are left are not translated, and an error is
        raised.
        """
        translators, counts = self._translators(documents, terms, documents.review_below or None)
        first = translators[0]
        opened = [
            self._opened(text, documents, first.language, first.target) for text in documents.texts
        ]
        parts = [part for document in opened for part in document.parts]
        translated = [until(given_up, each.translate(parts)) for each in translators]
        rows, left = [], Counter()
        for text, document in zip(documents.texts, opened, strict=True):
            own = [islice(each, len(document.parts)) for each in translated]
            if isinstance(text, bytes):
                rows.append([b"".join(document.written(each)) for each in own])
            else:
                rows.append(["".join(each) for each in own])
            left.update(document.left)
        return TranslatedDocuments(rows, counts, dict(+left))

    def _translators(
        self, documents: Documents, terms: dict[str, str] | None, review_below: float | None
    ) -> tuple[list["DocumentTranslator"], "AnswerCounts"]:
        """Returns the translators for the best translations of documents, and their counts."""
        counts = self._translator.new_counts(documents.review_below)
        translators = self._translator.document_translators(
            documents.count,
            documents.language,
            terminology=terms,
            to=documents.to,
            counts=counts,
            review_below=review_below,
        )
        return translators, counts

    def _opened(
        self, text: str | bytes, documents: Documents, language: str, target: str | None
    ) -> Document:
        """Reads one of the documents, which may be an archive with too much text."""
        document = document_of(
            text,
            documents.format,
            language,
            target,
            self._limits.markup,
            is_reviewed=documents.review_below > 0,
        )
        if isinstance(text, bytes):
            self._limits.check_texts(["".join(one.text for one in document.segments)])
        return document

    def translate_sentences(
        self, documents: Documents, terms: dict[str, str] | None
    ) -> tuple[str, list, "AnswerCounts"]:
        """Returns the translation of a plain text, its sentences, and their counts."""
        (translator,), counts = self._translators(documents, terms, documents.review_below)
        (text,) = documents.texts
        document = document_of(text, documents.format, translator.language)
        return *translator.translate_sentences(document.parts), counts


def until(given_up: threading.Event | None, parts: Iterator[str]) -> Iterator[str]:
    """Yields the parts of a translation; raises an error when nobody waits for it any longer."""
    for part in parts:
        if given_up is not None and given_up.is_set():
            raise RequestError(504, "nobody waits for the translation")
        yield part


def document_of(
    text: str | bytes,
    format: str,
    language: str,
    target: str | None = None,
    most_markup: int = MOST_MARKUP,
    is_reviewed: bool = False,
) -> Document:
    """Reads a document during a model call, where an InputError would count as the model's."""
    try:
        return read_document(text, format, language, None, target, most_markup, is_reviewed)
    except InputError as error:
        raise RequestError(400, str(error)) from None


def language_in(text: str, format: str) -> str:
    """Returns the text of a document without its markup, to detect its language."""
    document = document_of(text, format, "en")  # neither sentences nor their language are needed
    return "\n".join(segment.text for segment in document.segments)
