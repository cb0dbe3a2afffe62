"""A Translator of sentences and of whole documents: what `keras_transformer.load` returns."""

import functools
from collections.abc import Iterable, Sequence

from tqdm import tqdm

from keras_transformer.documents.formats import read_document
from keras_transformer.documents.sentence_search import SentenceSearch
from keras_transformer.documents.sentences import check_language
from keras_transformer.documents.translation import DocumentTranslator, Model
from keras_transformer.errors import InputError, require
from keras_transformer.translate.answer_counts import AnswerCounts
from keras_transformer.translate.terminology import check_terminology, required_terms
from keras_transformer.translate.translator import Translator


class TextTranslator(Translator):
    """Translates sentences, as a Translator does, and documents of any format."""

    def translate_document(
        self,
        text: str | bytes,
        format: str = "text",
        language: str | None = None,
        case: str = "auto",
        terminology: dict[str, str] | None = None,
        columns: Sequence[str] | None = None,
        progress: bool = False,
        to: str | None = None,
    ) -> str | bytes:
        """Returns a document with its sentences translated, and all else as it is.

        Args:
            text: all of the document; bytes, as is what is returned, if the format is an archive
                (docx, odt, pptx, odp, epub).
            format: a name of documents.formats.FORMATS; in "text", each line is a paragraph.
            language: of the text, as "en"; if not given, that of the model's data, or English. It
                says where sentences end.
            case: "auto" translates sentences in capitals, and titles, as if they were none;
                "keep" gives the model what is written.
            terminology: source phrases, and what the translations of sentences with them contain.
            columns: of a table (tsv, csv, jsonl), those that are translated: their names or, from
                1, their numbers, both as strings: ["text", "3"].
            progress: whether to draw a bar on stderr.
            to: the language to translate into, of a model of several; see `with_codes`.

        Raises:
            InputError: for another format, one whose packages are not installed, text that the
                format cannot be, or a language that is missing or unknown.
        """
        translator = self.document_translator(language, case, terminology, to=to)
        document = read_document(text, format, translator.language, columns)
        parts = translator.translate(document.parts)
        bar = tqdm(parts, total=len(document.parts), unit="part", disable=not progress)
        if isinstance(text, bytes):
            return b"".join(document.written(bar))
        return "".join(bar)

    def document_translator(
        self,
        language: str | None = None,
        case: str = "auto",
        terminology: dict[str, str] | None = None,
        to: str | None = None,
        counts: AnswerCounts | None = None,
    ) -> DocumentTranslator:
        """Returns what `translate_document` translates the parts of documents with.

        `counts` are added to.
        """
        (documents,) = self.document_translators(1, language, case, terminology, to, counts)
        return documents

    def document_translators(
        self,
        count: int,
        language: str | None = None,
        case: str = "auto",
        terminology: dict[str, str] | None = None,
        to: str | None = None,
        counts: AnswerCounts | None = None,
    ) -> list[DocumentTranslator]:
        """Returns one for each of the best `count` translations of a document, the best first.

        Sentences become their best translation in the first one, their second best in the next one;
        the last one of a sentence that has no more. All of them together search once for each
        sentence, and keep what they find: they are for documents that fit into memory.

        Args:
            count: up to `beam_size`.
            language, case, terminology, to: as `translate_document` takes them.
            counts: are added to.
        """
        rule = f"must be from 1 to the beam size, {self.config.beam_size}"
        require(1 <= count <= self.config.beam_size, "count", rule, count)
        check_terminology(terminology)
        check_language(language)
        self.with_codes([], to)  # refuses a language at once
        # By expected utility, the best translation can be any of those that were searched.
        exact = count if self.config.mbr is None else self.config.exact

        def search(texts: Sequence[str], aligned: bool) -> list[list]:
            phrases = None
            if terminology:
                phrases = [required_terms(text, terminology) for text in texts]
            coded = self.with_codes(texts, to)
            return self.translate_coded(
                coded, aligned=aligned, required_phrases=phrases, scores=False, exact=exact
            )

        sentences = SentenceSearch(search, keeps_answers=count > 1, counts=counts)
        languages = (self.card.origin.data or {}).get("languages") or ["en"]
        limit = self.source_limit - 1 - self._has_codes  # EOS and a code are among its subwords
        models = [
            Model(
                functools.partial(sentences.translate, rank),
                functools.partial(sentences.align, rank),
                self.count_subwords,
                limit,
            )
            for rank in range(count)
        ]
        return [DocumentTranslator(model, language or languages[0], case) for model in models]

    def parse(self, texts: Iterable[str], progress: bool = False) -> list:
        """Raises an InputError: a Parser, which a parsing model has, returns trees."""
        received = "a translation model, which has translate, score and attention"
        raise InputError("parse", "must be asked of a parsing model", received)
