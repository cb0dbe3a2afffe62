"""Finds translations of any rank for a document's sentences, with one search per sentence."""

from collections.abc import Callable, Sequence

from keras_transformer.documents.translation import AlignedText
from keras_transformer.translate.answer_counts import AnswerCounts
from keras_transformer.translate.answers import AlignedTranslation, Translation

# Sentences, and whether they are aligned -> the translations of each, best first.
Search = Callable[[Sequence[str], bool], list[list[Translation]] | list[list[AlignedTranslation]]]


class SentenceSearch:
    """Translates sentences for a DocumentTranslator.

    Args:
        search: finds the translations of sentences.
        keeps_answers: whether to keep results, so that one search serves several ranks.
        counts: statistics to which the answers are added, or None.
    """

    def __init__(self, search: Search, keeps_answers: bool, counts: AnswerCounts | None = None):
        self._search = search
        self._keeps_answers = keeps_answers
        self._counts = counts
        self._found: dict[tuple[str, bool], list] = {}

    def translate(self, rank: int, texts: Sequence[str]) -> list[str]:
        """Returns the translation of each text with this rank, from 0, or its last one."""
        return [answer.text for answer in self._answers(rank, texts, aligned=False)]

    def align(self, rank: int, texts: Sequence[str]) -> list[AlignedText]:
        """Returns the same translations with their alignments."""
        answers = self._answers(rank, texts, aligned=True)
        return [
            AlignedText(answer.text, answer.pair.links(text, answer.text))
            for text, answer in zip(texts, answers, strict=True)
        ]

    def _answers(self, rank: int, texts: Sequence[str], aligned: bool) -> list:
        find = self._search_once if self._keeps_answers else self._search
        answers = [row[min(rank, len(row) - 1)] for row in find(texts, aligned)]
        if self._counts is not None:
            self._counts.add(answers)
        return answers

    def _search_once(self, texts: Sequence[str], aligned: bool) -> list[list]:
        missing = [text for text in dict.fromkeys(texts) if (text, aligned) not in self._found]
        if missing:
            rows = self._search(missing, aligned)
            self._found |= {(text, aligned): row for text, row in zip(missing, rows, strict=True)}
        return [self._found[text, aligned] for text in texts]
