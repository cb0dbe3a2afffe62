"""Parses sentences with a translator of words to brackets (section 6.3)."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, NamedTuple, Protocol

from keras_transformer.parsing.linearisation import Linearisation, Repairs
from keras_transformer.parsing.trees import Tree, escape

_WORD = re.compile(r"\S+", re.ASCII)  # as in tree files, other spaces are characters of a word


class Answer(Protocol):
    """A translation: brackets, and how good they are."""

    text: str
    score: float


class SentenceTranslator(Protocol):
    """A Translator whose model was trained on linearised trees."""

    model: Any
    config: Any
    truncated: int

    def translate(self, sentences: Sequence[str], progress: bool = False) -> list[list[Answer]]:
        """Returns the translations of each sentence, best first."""


class Parse(NamedTuple):
    """One answer to a sentence; it stands where a Translation does."""

    tree: Tree | None  # None for a sentence without words
    score: float  # log-probability / length penalty of the brackets as the model said them
    repairs: Repairs  # what those needed to become the tree

    @property
    def text(self) -> str:
        """The tree on one line; empty without words."""
        return "" if self.tree is None else str(self.tree)


class Parser:
    """Gives each sentence trees over exactly its words, whatever the model says.

    A sentence's words have white space between them; brackets in words may be spelled -LRB- and
    -RRB- or as they are.

    Args:
        translator: of words to brackets.
        linearisation: that of the trees it was trained on.

    Attributes:
        repaired: number of sentences so far whose best tree needed repair.
        repairs: what these trees needed, by kind.
    """

    def __init__(self, translator: SentenceTranslator, linearisation: Linearisation):
        self.translator, self.linearisation = translator, linearisation
        self.model, self.config = translator.model, translator.config
        self.repaired = 0
        self.repairs = Counter(asdict(Repairs()))

    @property
    def truncated(self) -> int:
        """Number of sentences so far of which the model saw the beginning only."""
        return self.translator.truncated

    def translate(self, sentences: Sequence[str], progress: bool = False) -> list[list[Parse]]:
        """Returns the different trees of each sentence, in the order of the sentences.

        Those that needed no repair come first, then the others, each by score.
        """
        words = [[escape(word) for word in _WORD.findall(sentence)] for sentence in sentences]
        lines = [" ".join(line) for line in words]
        answers = self.translator.translate(lines, progress=progress)
        parses = list(map(self._parses, words, answers))
        for best, *_ in parses:
            self.repaired += best.repairs.total > 0
            self.repairs.update(asdict(best.repairs))
        return parses

    def counts(self) -> dict[str, Any]:
        """Returns {"repaired", "repairs"} as of the attributes."""
        return {"repaired": self.repaired, "repairs": dict(self.repairs)}

    def _parses(self, words: list[str], answers: list[Answer]) -> list[Parse]:
        if not words:
            return [Parse(None, answers[0].score, Repairs())]
        parses = []
        for answer in answers:
            tree, repairs = self.linearisation.tree(_WORD.findall(answer.text), words)
            parses.append(Parse(tree, answer.score, repairs))
        different: dict[str, Parse] = {}
        for parse in sorted(parses, key=lambda parse: parse.repairs.total > 0):
            different.setdefault(parse.text, parse)
        return list(different.values())
