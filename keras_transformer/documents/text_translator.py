"""A Translator of sentences and of whole documents: what `keras_transformer.load` returns."""

import copy
import functools
from collections.abc import Iterable, Mapping, Sequence

from tqdm import tqdm

from keras_transformer.documents.formats import read_document
from keras_transformer.documents.memory import TranslationMemory
from keras_transformer.documents.sentence_search import SentenceSearch
from keras_transformer.documents.sentences import check_language
from keras_transformer.documents.translation import DocumentTranslator, Model
from keras_transformer.errors import InputError, require
from keras_transformer.languages import model_languages
from keras_transformer.search.engine import penalized
from keras_transformer.translate.answer_counts import AnswerCounts
from keras_transformer.translate.answers import AlignedTranslation, Translation
from keras_transformer.translate.terminology import check_terminology, required_phrases_of
from keras_transformer.translate.texts import as_text_lists, encoded
from keras_transformer.translate.translator import Translator, require_one_each


class TextTranslator(Translator):
    """Translates sentences, as a Translator does, and documents of any format.

    Attributes:
        memory: the translations that are known, of `with_memory`.
    """

    memory = TranslationMemory({})

    def with_memory(self, translations: Mapping[str, str]) -> "TextTranslator":
        """The same model with a translation memory.

        Sentences that it has, but for white space and placeholders, have one translation, which is
        `from_memory`. The memory is not asked where a translation has a given beginning, and does
        not know one that lacks a required phrase.

        Args:
            translations: sentence -> its translation, both one line. For a model of several target
                languages, each sentence begins with the code of one: ">>de<< A dog.".

        Raises:
            InputError: for a sentence without such a code; see `with_codes`.
        """
        sources = self.with_codes(translations)
        changed = copy.copy(self)
        changed.memory = TranslationMemory(dict(zip(sources, translations.values(), strict=True)))
        return changed

    def translate_coded(
        self,
        texts: Sequence[str],
        progress: bool = False,
        target_prefixes: Iterable[str] | None = None,
        aligned: bool = False,
        required_phrases: Iterable[Iterable[str]] | None = None,
        scores: bool = True,
        exact: int | None = None,
    ) -> list[list[Translation]] | list[list[AlignedTranslation]]:
        """Like that of a Translator; what the memory has is answered by it."""
        search = functools.partial(
            super().translate_coded,
            progress=progress,
            target_prefixes=target_prefixes,
            aligned=aligned,
            scores=scores,
            exact=exact,
        )
        if len(self.memory) == 0 or target_prefixes is not None:
            return search(texts, required_phrases=required_phrases)
        phrases: Sequence[Sequence[str]] = [()] * len(texts)
        if required_phrases is not None:
            phrases = as_text_lists(required_phrases, "required_phrases")
            require_one_each(texts, phrases, "required_phrases")
        found = [self.memory.find(text, row) for text, row in zip(texts, phrases, strict=True)]
        known = [place for place, target in enumerate(found) if target is not None]
        rest = [place for place, target in enumerate(found) if target is None]
        remembered = self._remembered(
            [texts[place] for place in known], [found[place] for place in known], aligned, scores
        )
        rest_phrases = None if required_phrases is None else [phrases[place] for place in rest]
        searched = search([texts[place] for place in rest], required_phrases=rest_phrases)
        answers = dict(zip([*known, *rest], [*remembered, *searched], strict=True))
        return [answers[place] for place in range(len(texts))]

    def _remembered(
        self, texts: Sequence[str], targets: Sequence[str], aligned: bool, scores: bool
    ) -> list[list[Translation]] | list[list[AlignedTranslation]]:
        """Makes answers of what the memory has; scores and alignments are the model's."""
        tokens = [len(ids) + 1 for ids in encoded(self.vocabularies.target, targets)]
        answers = [
            Translation(target, None, None, count, from_memory=True)
            for target, count in zip(targets, tokens, strict=True)
        ]
        if scores:
            answers = [
                answer._replace(
                    score=penalized(found.log_prob, found.tokens, self.config.alpha),
                    log_prob=found.log_prob,
                )
                for answer, found in zip(answers, self.score(texts, targets), strict=True)
            ]
        if not aligned:
            return [[answer] for answer in answers]
        pairs = self.align(texts, targets)
        return [[AlignedTranslation(*row, pair)] for row, pair in zip(answers, pairs, strict=True)]

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
        document = read_document(text, format, translator.language, columns, translator.target)
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
            return self.translate_coded(
                self.with_codes(texts, to),
                aligned=aligned,
                required_phrases=required_phrases_of(texts, terminology),
                scores=False,
                exact=exact,
            )

        def knows(text: str) -> bool:
            if len(self.memory) == 0:
                return False
            (coded,) = self.with_codes([text], to)
            (phrases,) = required_phrases_of([text], terminology) or [()]
            return self.memory.find(coded, phrases) is not None

        sentences = SentenceSearch(search, keeps_answers=count > 1, counts=counts)
        languages = (self.card.origin.data or {}).get("languages") or ["en"]
        limit = self.source_limit - 1 - self._has_codes  # EOS and a code are among its subwords
        models = [
            Model(
                functools.partial(sentences.translate, rank),
                functools.partial(sentences.align, rank),
                self.count_subwords,
                limit,
                knows,
            )
            for rank in range(count)
        ]
        target = self._only_target if to is None else to
        return [
            DocumentTranslator(model, language or languages[0], case, target) for model in models
        ]

    @functools.cached_property
    def _only_target(self) -> str | None:
        """The target language of a model that has one; None where it is not known."""
        known = model_languages(self.card.to_json())
        return known.targets[0] if known and len(known.targets) == 1 else None

    def parse(self, texts: Iterable[str], progress: bool = False) -> list:
        """Raises an InputError: a Parser, which a parsing model has, returns trees."""
        received = "a translation model, which has translate, score and attention"
        raise InputError("parse", "must be asked of a parsing model", received)
