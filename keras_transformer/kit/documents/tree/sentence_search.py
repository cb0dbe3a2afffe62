"""Finds translations of any rank for a document's sentences, with one search per sentence."""

from collections.abc import Callable, Sequence

from keras_transformer.kit.documents.tree.translation import AlignedText
from keras_transformer.use.translate.answer_counts import AnswerCounts
from keras_transformer.use.translate.answers import Translation

# Sentences, and whether each is aligned -> the translations of each, best first.
Search = Callable[[Sequence[str], Sequence[bool]], list[list[Translation]]]


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

    def translate(
        self, rank: int, texts: Sequence[str], aligned: Sequence[bool]
    ) -> list[AlignedText]:
        """Returns the translation of each text with this rank, from 0, or its last one.

        Args:
            rank: the rank.
            texts: the texts.
            aligned: whether each is aligned with its translation.
        """
        find = self._search_once if self._keeps_answers else self._search
        answers = [row[min(rank, len(row) - 1)] for row in find(texts, aligned)]
        if self._counts is not None:
            self._counts.add(answers)
        return [
            AlignedText(
                answer.text,
                answer.pair.links(text, answer.text) if is_aligned else (),
                answer.confidence,
                answer.without_terms,
            )
            for text, is_aligned, answer in zip(texts, aligned, answers, strict=True)
        ]

    def _search_once(self, texts: Sequence[str], aligned: Sequence[bool]) -> list[list]:
        asked = list(zip(texts, aligned, strict=True))
        missing = [pair for pair in dict.fromkeys(asked) if pair not in self._found]
        if missing:
            rows = self._search(*zip(*missing, strict=True))
            self._found |= dict(zip(missing, rows, strict=True))
        return [self._found[pair] for pair in asked]
