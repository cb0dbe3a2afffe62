"""Counts of the answers of one call, file or document, for its report."""

from collections.abc import Iterable
from typing import Any

from keras_transformer.translate.answers import Translation


class AnswerCounts:
    """Counts of the best answers to some texts.

    Attributes:
        truncated: how many of the texts were longer than the model reads.
        unfinished: how many of the answers reached their length limit.
        from_memory: how many of the answers a translation memory had.
    """

    def __init__(self):
        self.truncated = 0
        self.unfinished = 0
        self.from_memory = 0

    def add(self, answers: Iterable[Translation]) -> None:
        """Counts the best answer to each of further texts."""
        for answer in answers:
            self.truncated += answer.truncated
            self.unfinished += answer.unfinished
            self.from_memory += answer.from_memory

    def of_trees(self) -> dict[str, Any]:
        """Further counts where the answers are trees; here, they are not."""
        return {}
