"""A Translator for sentences and whole documents, as returned by `keras_transformer.load`."""

import copy
import functools
from collections.abc import Iterable, Mapping, Sequence

from keras_transformer.documents.formats import read_document
from keras_transformer.documents.memory import TranslationMemory
from keras_transformer.documents.sentence_search import SentenceSearch
from keras_transformer.documents.sentences import check_language
from keras_transformer.documents.translation import DocumentTranslator, Model
from keras_transformer.errors import InputError, require
from keras_transformer.progress import progress_bar
from keras_transformer.search.length_penalty import penalized
from keras_transformer.translate.answer_counts import AnswerCounts
from keras_transformer.translate.answers import AlignedTranslation, Translation
from keras_transformer.translate.terminology import check_terminology, required_phrases_of
from keras_transformer.translate.texts import as_text_lists, encoded
from keras_transformer.translate.translator import Translator, require_one_each


class TextTranslator(Translator):
    """Translates sentences, as a Translator does, and documents in any supported format.

    Attributes:
        memory: the translation memory; see `with_memory`.
    """

    memory = TranslationMemory({})

    def with_memory(self, translations: Mapping[str, str]) -> "TextTranslator":
        """Returns the same model with a translation memory.

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
        changed = copy.copy(self)
        changed.memory = TranslationMemory(dict(zip(sources, translations.values(), strict=True)))
        return changed

    def translate_coded(
        self,
        texts: Sequence[str],
        progress: bool = False,
        target_prefixes: Iterable[str] | None = None,
        aligned: Sequence[bool] = (),
        required_phrases: Iterable[Iterable[str]] | None = None,
        scores: bool = True,
        exact: int | None = None,
    ) -> list[list[Translation | AlignedTranslation]]:
        """Translates as `Translator.translate_coded` does, but uses the memory where it can."""
        search = functools.partial(
            super().translate_coded,
            progress=progress,
            target_prefixes=target_prefixes,
            scores=scores,
            exact=exact,
        )
        if len(self.memory) == 0 or target_prefixes is not None:
            return search(texts, aligned=aligned, required_phrases=required_phrases)
        aligned = aligned or [False] * len(texts)
        phrases: Sequence[Sequence[str]] = [()] * len(texts)
        if required_phrases is not None:
            phrases = as_text_lists(required_phrases, "required_phrases")
            require_one_each(texts, phrases, "required_phrases")
        found = [self.memory.find(text, row) for text, row in zip(texts, phrases, strict=True)]
        known = [place for place, target in enumerate(found) if target is not None]
        rest = [place for place, target in enumerate(found) if target is None]
        remembered = self._remembered(
            [texts[place] for place in known],
            [found[place] for place in known],
            [aligned[place] for place in known],
            scores,
        )
        rest_phrases = None if required_phrases is None else [phrases[place] for place in rest]
        searched = search(
            [texts[place] for place in rest],
            aligned=[aligned[place] for place in rest],
            required_phrases=rest_phrases,
        )
        answers = dict(zip([*known, *rest], [*remembered, *searched], strict=True))
        return [answers[place] for place in range(len(texts))]

    def _remembered(
        self,
        texts: Sequence[str],
        targets: Sequence[str],
        aligned: Sequence[bool],
        scores: bool,
    ) -> list[list[Translation | AlignedTranslation]]:
        """Makes answers from translations in the memory; the model scores and aligns them."""
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
        rows: list[list[Translation | AlignedTranslation]] = [[answer] for answer in answers]
        places = [place for place, is_aligned in enumerate(aligned) if is_aligned]
        pairs = self.align([texts[i] for i in places], [targets[i] for i in places])
        for place, pair in zip(places, pairs, strict=True):
            rows[place] = [AlignedTranslation(*answers[place], pair)]
        return rows

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
        """Returns a document with its sentences translated and everything else unchanged.

        Args:
            text: the whole document. If the format is an archive (docx, odt, pptx, odp, epub), it
                is bytes, and so is the result.
            format: a name in documents.formats.FORMATS; in "text", each line is a paragraph.
            language: the language of the text, such as "en", which determines where sentences end;
                by default that of the model's data, or English.
            case: "auto" translates sentences in capitals, and titles, as if they were written in
                sentence case; "keep" passes the text to the model as written.
            terminology: source phrase -> phrase that translations of sentences with it must
                contain.
            columns: the columns of a table (tsv, csv, jsonl) to translate, as strings: their names,
                or their numbers, counting from 1: ["text", "3"].
            progress: whether to show a progress bar on stderr.
            to: the target language, for a model with several; see `with_codes`.

        Raises:
            InputError: if the format is unknown, its packages are not installed, the text is
                invalid in this format, or a language is missing or unknown.
        """
        translator = self.document_translator(language, case, terminology, to=to)
        document = read_document(text, format, translator.language, columns, translator.target)
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
    ) -> DocumentTranslator:
        """Returns the DocumentTranslator that `translate_document` uses.

        The answers are added to `counts`, if given.
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
        """Returns translators for the best `count` translations of a document, the best first.

        The first uses the best translation of each sentence, the second its second best, and so on,
        or its last one if it has no more. Together they search once per sentence and keep the
        results, so they are for documents that fit into memory.

        Args:
            count: at most `beam_size`.
            language, case, terminology, to: as for `translate_document`.
            counts: statistics to which the answers are added, or None.
        """
        rule = f"must be from 1 to the beam size, {self.config.beam_size}"
        require(1 <= count <= self.config.beam_size, "count", rule, count)
        check_terminology(terminology)
        check_language(language)
        self.with_codes([], to)  # rejects an unsupported language at once
        # By expected utility, any translation that the search finds can be the best.
        exact = count if self.config.mbr is None else self.config.exact

        def search(texts: Sequence[str], aligned: Sequence[bool]) -> list[list]:
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
        languages = self.card.description.languages or ["en"]
        limit = self.source_limit - 1 - self._has_codes  # the subwords include EOS and a code
        models = [
            Model(
                functools.partial(sentences.translate, rank),
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
        """Returns the only target language, or None if there are several or it is unknown."""
        known = self.card.languages
        return known.targets[0] if known and len(known.targets) == 1 else None

    def parse(self, texts: Iterable[str], progress: bool = False) -> list:
        """Raises an InputError: only the Parser of a parsing model returns trees."""
        received = "a translation model, which has translate, score and attention"
        raise InputError("parse", "must only be used with a parsing model", received)
