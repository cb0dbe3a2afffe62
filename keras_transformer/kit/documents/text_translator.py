"""A Translator for sentences and whole documents, as returned by `keras_transformer.load`."""

import copy
import functools
from collections.abc import Iterable, Mapping, Sequence

from keras_transformer.kit.documents.formats import read_document
from keras_transformer.kit.documents.memory.corrections import Corrections
from keras_transformer.kit.documents.memory.memory import (
    LEAST_SIMILARITY,
    Match,
    TranslationMemory,
    best_matches,
)
from keras_transformer.kit.documents.tree.sentence_search import SentenceSearch
from keras_transformer.kit.documents.tree.sentences import check_language
from keras_transformer.kit.documents.tree.translation import DocumentTranslator, Model
from keras_transformer.support.errors import InputError, require
from keras_transformer.support.progress import progress_bar
from keras_transformer.use.store.languages import short_code
from keras_transformer.use.translate.answer_counts import AnswerCounts
from keras_transformer.use.translate.answers import Translation
from keras_transformer.use.translate.recall import recall
from keras_transformer.use.translate.search_request import SearchRequest
from keras_transformer.use.translate.terminology import phrases_of, term_finder
from keras_transformer.use.translate.translator import Translator


class TextTranslator(Translator):
    """Translates sentences, as a Translator does, and documents in any supported format."""

    memories: tuple[TranslationMemory, ...]

    def with_memory(self, translations: Mapping[str, str]) -> "TextTranslator":
        """Returns the same model with a translation memory, which comes before those it has.

        A sentence in the memory gets exactly one translation, marked as `from_memory`. White space
        and placeholders need not match. The memory is not used with target prefixes, nor for a
        translation that lacks a required phrase.

        Args:
            translations: sentence -> its translation, both one line. For a model with several
                target languages, each sentence begins with a language code: ">>de<< A dog.".

        Raises:
            InputError: if a sentence lacks such a code; see `with_codes`.
        """
        sources = self.with_codes(translations)
        memory = TranslationMemory(dict(zip(sources, translations.values(), strict=True)))
        return self._with_first(memory)

    def with_corrections(self, corrections: Corrections) -> "TextTranslator":
        """Returns the same model with corrections as a translation memory; see `with_memory`.

        Corrections that are added later count at once.
        """
        return self._with_first(corrections.memory)

    def _with_first(self, memory: TranslationMemory) -> "TextTranslator":
        changed = copy.copy(self)
        changed.memories = (memory, *self.memories)
        return changed

    def matches(
        self,
        texts: Iterable[str],
        count: int = 1,
        least_similarity: float = LEAST_SIMILARITY,
        to: str | None = None,
    ) -> list[list[Match]]:
        """Finds the sentences in the translation memories that resemble each text most.

        Args:
            texts: sentences.
            count: the most matches of each.
            least_similarity: the least similarity of a match: 1 is the sentence itself, apart from
                white space and placeholders.
            to: the target language, for a model with several; see `with_codes`.

        Returns:
            For each text, its matches, the most similar one first; see documents/memory/memory.py.
        """
        coded = self.with_codes(texts, to)
        return [best_matches(self.memories, text, count, least_similarity) for text in coded]

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
        review_below: float = 0.0,
    ) -> str | bytes:
        """Returns a document with its sentences translated and everything else unchanged.

        Args:
            text: the whole document. If the format is an archive (docx, odt, pptx, odp, epub), it
                is bytes, and so is the result.
            format: a name in documents.formats.FORMATS; in "text", each line is a paragraph.
            language: the language of the text, such as "en", which determines where sentences end;
                by default that of `to`, or of the model's data, or English.
            case: "auto" translates sentences in capitals, and titles, as if they were written in
                sentence case; "keep" passes the text to the model as written.
            terminology: source phrase -> how to translate it; see `translate`.
            columns: the columns of a table (tsv, csv, jsonl) to translate, as strings: their names,
                or their numbers, counting from 1: ["text", "3"].
            progress: whether to show a progress bar on stderr.
            to: the target language, for a model with several; see `with_codes`.
            review_below: the confidence below which the document marks a translation as doubtful,
                such as 0.5, if its format has marks; 0 to mark none.

        Raises:
            InputError: if the format is unknown, its packages are not installed, the text is
                invalid in this format, or a language is missing or unknown.
        """
        if review_below:
            self.require_calibration("review_below", review_below)
        translator = self.document_translator(
            language, case, terminology, to=to, review_below=review_below or None
        )
        document = read_document(
            text,
            format,
            translator.language,
            columns,
            translator.target,
            is_reviewed=review_below > 0,
        )
        parts = translator.translate(document.parts)
        bar = progress_bar(parts, total=len(document.parts), unit=" parts", disable=not progress)
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
        review_below: float | None = None,
    ) -> DocumentTranslator:
        """Returns the DocumentTranslator that `translate_document` uses.

        The answers are added to `counts`, if given. They are judged unless `review_below` is None.
        """
        (documents,) = self.document_translators(
            1, language, case, terminology, to, counts, review_below
        )
        return documents

    def document_translators(
        self,
        count: int,
        language: str | None = None,
        case: str = "auto",
        terminology: dict[str, str] | None = None,
        to: str | None = None,
        counts: AnswerCounts | None = None,
        review_below: float | None = None,
    ) -> list[DocumentTranslator]:
        """Returns translators for the best `count` translations of a document, the best first.

        The first uses the best translation of each sentence, the second its second best, and so on,
        or its last one if it has no more. Together they search once per sentence and keep the
        results, so they are for documents that fit into memory.

        Args:
            count: at most `beam_size`.
            language, case, terminology, to: as for `translate_document`.
            counts: statistics to which the answers are added, or None.
            review_below: the confidence below which documents mark a translation; None if the
                answers are not judged.
        """
        rule = f"must be from 1 to the beam size, {self.config.beam_size}"
        require(1 <= count <= self.config.beam_size, "count", rule, count)
        self.check_terms(terminology)
        check_language(language)
        direction = self.language_prefix.direction(to)  # rejects an unsupported language at once
        # By expected utility, any translation that the search finds can be the best.
        guaranteed = count if self.config.mbr is None else self.config.guaranteed

        def search(texts: Sequence[str], aligned: Sequence[bool]) -> list[list[Translation]]:
            request = SearchRequest(
                self.with_codes(texts, to),
                guaranteed,
                aligned=aligned,
                terminology=terminology or {},
                scores=False,
                confidence=review_below is not None,
            )
            return self.search(request)

        terms_of = term_finder(terminology)

        def knows(text: str) -> bool:
            if not any(map(len, self.memories)):
                return False
            (coded,) = self.with_codes([text], to)
            phrases = phrases_of(terms_of(text))
            return recall(self.memories, coded, phrases) is not None

        sentences = SentenceSearch(search, keeps_answers=count > 1, counts=counts)
        # EOS and codes are subwords.
        limit = self.encoder.source_limit - 1 - self.language_prefix.count
        models = [
            Model(
                functools.partial(sentences.translate, rank),
                self.count_subwords,
                limit,
                knows,
            )
            for rank in range(count)
        ]
        known = self.card.description.languages or ["en"]
        target = self._only_target
        if direction is not None:
            known, target = [direction.source, *known], direction.target
        language = short_code(language or next(filter(None, known)))
        target = None if target is None else short_code(target)
        return [
            DocumentTranslator(model, language, case, target, review_below or 0.0)
            for model in models
        ]

    @functools.cached_property
    def _only_target(self) -> str | None:
        """Returns the only target language, or None if there are several or it is unknown."""
        known = self.card.languages
        return known.targets[0] if known and len(known.targets) == 1 else None

    def parse(self, texts: Iterable[str], progress: bool = False) -> list:
        """Raises an InputError: only the Parser of a parsing model returns trees."""
        received = "a translation model, which has translate, score and attention"
        raise InputError("parse", "must only be used with a parsing model", received)
