"""Counts of the answers for one call, file or document, for its report."""

from collections.abc import Iterable
from typing import Any

from keras_transformer.use.translate.answers import Translation


class AnswerCounts:
    """Counts of the best answers to some texts.

    Args:
        review_below: the confidence below which an answer counts as doubtful.

    Attributes:
        sentences: number of answers.
        truncated: number of texts that exceeded the model's limit.
        unfinished: number of answers that reached their length limit.
        from_memory: number of answers from a translation memory.
        without_terms: number of answers that lack a term.
        doubtful: number of answers with too little confidence.
    """

    def __init__(self, review_below: float = 0.0):
        self.review_below = review_below
        self.sentences = 0
        self.truncated = 0
        self.unfinished = 0
        self.from_memory = 0
        self.without_terms = 0
        self.doubtful = 0

    def add(self, answers: Iterable[Translation]) -> None:
        """Adds the best answers to further texts."""
        for answer in answers:
            self.sentences += 1
            self.truncated += answer.truncated
            self.unfinished += answer.unfinished
            self.from_memory += answer.from_memory
            self.without_terms += bool(answer.without_terms)
            confidence = answer.confidence
            self.doubtful += confidence is not None and confidence < self.review_below

    def of_trees(self) -> dict[str, Any]:
        """Further counts if the answers are trees; here, they are not."""
        return {}
