"""A parser: a translator from words to brackets, whose answers become trees (section 6.3)."""

import dataclasses
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from keras_transformer.kit.parsing.linearisation import Linearisation, Repairs
from keras_transformer.kit.parsing.trees import Tree, escape, parse_trees
from keras_transformer.support.errors import InputError, require
from keras_transformer.support.fields import from_json
from keras_transformer.use.translate.answer_counts import AnswerCounts
from keras_transformer.use.translate.answers import PairAttention, TargetScore, Translation
from keras_transformer.use.translate.texts import as_text, as_texts
from keras_transformer.use.translate.translator import Translator, facts_of

_WORD = re.compile(r"\S+", re.ASCII)  # as in tree files, other spaces are part of a word


if TYPE_CHECKING:
    import keras


@dataclasses.dataclass(frozen=True, kw_only=True)
class Parse(Translation):
    """One answer to a sentence: the model's Translation, and the tree made from it.

    All but `text` and the tree are as before repairs. There is no translation memory for trees, and
    no alignment.
    """

    text: str  # the tree in brackets on one line; empty for a sentence without words
    tree: Tree | None  # None for a sentence without words
    repairs: Repairs  # made to turn the tokens into the tree


class ParseCounts(AnswerCounts):
    """Counts for the best trees of sentences, in addition to those of AnswerCounts.

    Attributes:
        repaired: number of trees that needed repair.
        repairs: number of repairs of each kind.
    """

    def __init__(self):
        super().__init__()
        self.repaired = 0
        self.repairs = Counter(dataclasses.asdict(Repairs()))

    def add(self, answers: Iterable[Parse]) -> None:
        answers = list(answers)
        super().add(answers)
        for answer in answers:
            self.repaired += answer.repairs.total > 0
            self.repairs.update(dataclasses.asdict(answer.repairs))

    def of_trees(self) -> dict[str, Any]:
        """Returns {"repaired", "repairs"}, the values of the attributes."""
        return {"repaired": self.repaired, "repairs": dict(self.repairs)}


class Parser:
    """Parses sentences into trees over exactly their words, whatever the model emits.

    The words of a sentence are separated by white space; brackets in words may be written as such,
    or as -LRB- and -RRB-. A target, for scoring or attention, is a tree in brackets, or the tokens
    of one.

    Args:
        translator: translates words to the tokens of trees. The task options in its card must be
            the fields of a Linearisation.

    Attributes:
        card, config, checkpoint: those of the translator.
    """

    def __init__(self, translator: Translator):
        self._translator = translator
        self.card = translator.card
        self.config = translator.config
        self.checkpoint = translator.checkpoint
        self.engine = translator.engine
        options = self.card.description.task_options
        self.linearisation = from_json(Linearisation, options, "task_options")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({facts_of(self.card, self.engine)})"

    @property
    def model(self) -> "keras.Model":
        """Returns the Transformer; see `Translator.model`."""
        return self._translator.model

    def with_alpha(self, alpha: float) -> "Parser":
        """Returns the same model with another length penalty (section 6.1)."""
        return Parser(self._translator.with_alpha(alpha))

    def translate(
        self,
        texts: Iterable[str],
        progress: bool = False,
        target_prefixes: Iterable[str] | None = None,
        scores: bool = True,
        **others: Any,
    ) -> list[list[Parse]]:
        """Returns the distinct trees of each sentence, the best first.

        Trees that needed no repair come before the others; both groups are sorted by score.

        Raises:
            InputError: for any other option of `Translator.translate`.
        """
        for name, value in others.items():
            require(
                not value, name, "must only be used with a translation model", "a parsing model"
            )
        words = [_words(text) for text in as_texts(texts, "texts")]
        sources = [" ".join(row) for row in words]
        answers = self._translator.translate(sources, progress, target_prefixes, scores=scores)
        return [self._parses(*pair) for pair in zip(words, answers, strict=True)]

    def parse(self, texts: Iterable[str], progress: bool = False) -> list[Tree | None]:
        """Returns the best tree of each sentence, or None for a sentence without words."""
        return [best.tree for best, *_ in self.translate(texts, progress, scores=False)]

    def score(
        self, sources: Iterable[str], targets: Iterable[str], progress: bool = False
    ) -> list[TargetScore]:
        """Scores each target as the tree of its source."""
        sources = [" ".join(_words(text)) for text in as_texts(sources, "sources")]
        targets = [self._target(text) for text in as_texts(targets, "targets")]
        return self._translator.score(sources, targets, progress)

    def score_ids(self, source: ArrayLike, target: ArrayLike) -> np.ndarray:
        """Scores one batch of pairs given as ids; see `Translator.score_ids`."""
        return self._translator.score_ids(source, target)

    def attention(self, source: str, target: str) -> PairAttention:
        """Returns the attention of all heads for a sentence and its tree."""
        source, target = as_text(source, "source"), as_text(target, "target")
        return self._translator.attention(" ".join(_words(source)), self._target(target))

    def with_codes(self, texts: Iterable[str], to: str | None = None) -> list[str]:
        """Returns the texts unchanged: a parser has no target languages to choose from."""
        return self._translator.with_codes(texts, to)

    def new_counts(self) -> ParseCounts:
        """Returns empty counts, to which this parser's answers can be added."""
        return ParseCounts()

    def _target(self, text: str) -> str:
        try:
            (tree,) = parse_trees([text], "target")
        except (InputError, ValueError):  # no tree, or several
            return text
        return " ".join(self.linearisation.tokens(tree))

    def _parses(self, words: Sequence[str], answers: Sequence[Translation]) -> list[Parse]:
        if not words:
            return [Parse(**vars(answers[0]), tree=None, repairs=Repairs())]
        parses = []
        for answer in answers:
            tree, repairs = self.linearisation.tree(_WORD.findall(answer.text), words)
            fields = {**vars(answer), "text": str(tree)}
            parses.append(Parse(**fields, tree=tree, repairs=repairs))
        different: dict[str, Parse] = {}
        for parse in sorted(parses, key=lambda parse: parse.repairs.total > 0):
            different.setdefault(parse.text, parse)
        return list(different.values())


def _words(text: str) -> list[str]:
    """Returns a sentence's words as in trees: brackets in them are written -LRB- and -RRB-."""
    return [escape(word) for word in _WORD.findall(text)]
