"""Labelled bracket scores, counted as EVALB counts them with COLLINS.prm (Table 4's F1).

EVALB is the program of Sekine and Collins (1997) behind every F1 on the Penn Treebank. The
constants below are those of its parameter file. In short: punctuation and traces are removed
together with their words, constituents without words are removed too, function tags are cut off,
and every other bracket (label, first word, last word) counts, the outermost included. Preterminals
do not count.

One addition: a bracket without a label, which treebank files have around each tree, is left out
like TOP. EVALB counts it, and its manual tells users to name it TOP.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, NamedTuple

from keras_transformer.errors import InputError, require
from keras_transformer.parsing.trees import Tree

DELETED = frozenset(("TOP", "-NONE-", ",", ":", "``", "''", ".", ""))  # DELETE_LABEL
NO_LENGTH = "-NONE-"  # DELETE_LABEL_FOR_LENGTH: traces do not count as words
EQUAL = {"PRT": "ADVP"}  # EQ_LABEL
CUTOFF_LENGTH = 40  # CUTOFF_LEN, in words, punctuation included
MAX_ERRORS = 10  # MAX_ERROR
LENGTHS = (10, 20, 30, 40, 60)  # longest sentences of each row by length; the last row is open


class Bracket(NamedTuple):
    """A constituent: its label without function tags, and its words from start up to end."""

    label: str
    start: int
    end: int
    node: int  # its number in the tree, in preorder, preterminals counted; the root is 0


@dataclass(frozen=True)
class Brackets:
    """The parts of a tree that are compared."""

    words: list[str]  # without deleted ones
    tags: list[str]  # of these words
    brackets: list[Bracket]  # in preorder
    length: int  # number of words with punctuation, without traces


def brackets_of(tree: Tree) -> Brackets:
    """Finds the words, tags and brackets of a tree that EVALB compares."""
    words, tags, constituents, length = [], [], [], 0
    # A number on the stack ends the constituent of that number. There is no recursion, as a parser
    # may produce a chain of hundreds of brackets.
    stack: list[Tree | int] = [tree]
    node = 0
    while stack:
        item = stack.pop()
        if isinstance(item, int):
            label, start, number = constituents[item]
            constituents[item] = Bracket(label, start, len(words), number)
            continue
        if item.word is not None:
            length += item.label != NO_LENGTH
            if item.label not in DELETED:
                words.append(item.word)
                tags.append(EQUAL.get(item.label, item.label))
        else:
            stack.append(len(constituents))
            stack.extend(reversed(item.children))
            constituents.append((item.label, len(words), node))
        node += 1
    counted = []
    for bracket in constituents:
        label = bracket.label.partition("-")[0].partition("=")[0]
        if bracket.start < bracket.end and label not in DELETED:
            counted.append(bracket._replace(label=EQUAL.get(label, label)))
    return Brackets(words, tags, counted, length)


@dataclass(frozen=True)
class SentenceScore:
    """The counts of one sentence. All but `length` are zero if it is skipped or an error."""

    length: int  # words of the gold tree with punctuation, without traces
    skipped: bool = False  # the predicted tree has no words
    error: str = ""  # how its words differ from those of the gold tree
    gold: Counter[str] = field(default_factory=Counter)  # brackets, by label
    predicted: Counter[str] = field(default_factory=Counter)
    matched: Counter[str] = field(default_factory=Counter)
    crossing: int = 0  # predicted brackets that cross one or more gold brackets
    words: int = 0  # punctuation left out
    correct_tags: int = 0  # of these words


def score_sentence(gold: Tree, predicted: Tree) -> SentenceScore:
    """Compares two trees of a sentence.

    A predicted tree without words is skipped. One whose words differ from the gold tree's (without
    punctuation) is an error. Neither counts in recall, precision or any other average. As tags
    decide what punctuation is, a wrong tag can also cause an error.
    """
    ours, theirs = brackets_of(gold), brackets_of(predicted)
    if not theirs.words:
        return SentenceScore(ours.length, skipped=True)
    if len(ours.words) != len(theirs.words):
        error = f"{len(theirs.words)} words but punctuation, of {len(ours.words)} in the gold tree"
        return SentenceScore(ours.length, error=error)
    for number, (word, other) in enumerate(zip(ours.words, theirs.words, strict=True), 1):
        if word != other:
            error = f"word {number} but punctuation is {other!r}, and {word!r} in the gold tree"
            return SentenceScore(ours.length, error=error)
    matched = _keys(ours) & _keys(theirs)
    labels: Counter[str] = Counter()
    for (label, _, _), count in matched.items():
        labels[label] += count
    return SentenceScore(
        ours.length,
        gold=Counter(bracket.label for bracket in ours.brackets),
        predicted=Counter(bracket.label for bracket in theirs.brackets),
        matched=labels,
        crossing=_crossing(ours.brackets, theirs.brackets),
        words=len(ours.words),
        correct_tags=sum(a == b for a, b in zip(ours.tags, theirs.tags, strict=True)),
    )


def unmatched_nodes(gold: Tree, predicted: Tree) -> tuple[set[int], set[int]]:
    """Finds the brackets that only one of two trees has.

    Returns:
        The numbers (`Bracket.node`) of those in gold alone, and of those in predicted alone. Both
        are empty if the words of the trees differ.
    """
    ours, theirs = brackets_of(gold), brackets_of(predicted)
    if ours.words != theirs.words:
        return set(), set()
    return _without(ours, _keys(theirs)), _without(theirs, _keys(ours))


def with_gold_tags(predicted: Tree, gold: Tree) -> Tree:
    """Gives the words of a predicted tree the tags of the gold tree.

    This is for parsers that predict no tags: without tags a comma would be scored as a word. A tree
    with more or fewer words than the gold tree (without traces) is returned as it is.
    """
    tags = [tag for tag, _ in gold.leaves() if tag != NO_LENGTH]
    if len(predicted.leaves()) != len(tags):
        return predicted
    following = iter(tags)

    def tagged(node: Tree, children: list[Tree]) -> Tree:
        label = node.label if node.word is None else next(following)
        return Tree(label, tuple(children), node.word)

    return predicted.fold(tagged)


def _keys(tree: Brackets) -> Counter[tuple[str, int, int]]:
    """The brackets as a multiset: each of two equal brackets needs a partner of its own."""
    return Counter(bracket[:3] for bracket in tree.brackets)


def _without(tree: Brackets, partners: Counter[tuple[str, int, int]]) -> set[int]:
    alone = set()
    for bracket in tree.brackets:
        partners[bracket[:3]] -= 1
        if partners[bracket[:3]] < 0:
            alone.add(bracket.node)
    return alone


def _crossing(gold: list[Bracket], predicted: list[Bracket]) -> int:
    """Counts each predicted bracket once, however many gold brackets it crosses."""
    spans = {(bracket.start, bracket.end) for bracket in gold}
    return sum(
        any(a < start < b < end or start < a < end < b for a, b in spans)
        for _, start, end, _ in predicted
    )


def percent(part: float, whole: float) -> float:
    """100 part / whole, rounded to two decimals; 0 if `whole` is 0."""
    return round(100 * part / whole, 2) if whole else 0.0


@dataclass
class BracketCounts:
    """Numbers of brackets, of one label or of all."""

    gold: int = 0
    predicted: int = 0
    matched: int = 0

    def add(self, gold: int, predicted: int, matched: int) -> None:
        self.gold += gold
        self.predicted += predicted
        self.matched += matched

    def to_dict(self) -> dict[str, float]:
        """F1, precision and recall in percent. F1 is 2PR / (P + R) = 2M / (G + P's)."""
        return {
            "f1": percent(2 * self.matched, self.gold + self.predicted),
            "precision": percent(self.matched, self.predicted),
            "recall": percent(self.matched, self.gold),
        }


@dataclass
class Totals:
    """Sums over sentences. All but the first three leave out skipped ones and errors."""

    sentences: int = 0
    errors: int = 0
    skipped: int = 0
    brackets: BracketCounts = field(default_factory=BracketCounts)
    complete: int = 0  # sentences with all brackets right; tags do not matter
    crossing: int = 0
    no_crossing: int = 0
    two_or_less_crossing: int = 0
    words: int = 0
    correct_tags: int = 0

    def add(self, score: SentenceScore) -> None:
        self.sentences += 1
        self.errors += bool(score.error)
        self.skipped += score.skipped
        if score.error or score.skipped:
            return
        counts = (score.gold.total(), score.predicted.total(), score.matched.total())
        self.brackets.add(*counts)
        self.complete += len(set(counts)) == 1
        self.crossing += score.crossing
        self.no_crossing += score.crossing == 0
        self.two_or_less_crossing += score.crossing <= 2
        self.words += score.words
        self.correct_tags += score.correct_tags

    def to_dict(self) -> dict[str, float]:
        """EVALB's summary: percentages, numbers of sentences, crossing brackets per sentence."""
        valid = self.sentences - self.errors - self.skipped
        return {
            **self.brackets.to_dict(),
            "complete_match": percent(self.complete, valid),
            "average_crossing": round(self.crossing / valid, 2) if valid else 0.0,
            "no_crossing": percent(self.no_crossing, valid),
            "two_or_less_crossing": percent(self.two_or_less_crossing, valid),
            "tagging_accuracy": percent(self.correct_tags, self.words),
            "sentences": self.sentences,
            "skipped": self.skipped,
            "errors": self.errors,
        }


@dataclass
class ParsevalScores:
    """The scores of a treebank."""

    all: Totals = field(default_factory=Totals)
    short: Totals = field(default_factory=Totals)  # of sentences up to CUTOFF_LENGTH
    lengths: dict[str, Totals] = field(default_factory=dict)  # by range of lengths: "11-20"
    labels: dict[str, BracketCounts] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)  # a line for each sentence with an error

    def add(self, score: SentenceScore) -> None:
        """Counts one more sentence."""
        self.all.add(score)
        if score.length <= CUTOFF_LENGTH:
            self.short.add(score)
        self.lengths.setdefault(length_range(score.length), Totals()).add(score)
        for label in score.gold | score.predicted:
            counts = (score.gold[label], score.predicted[label], score.matched[label])
            self.labels.setdefault(label, BracketCounts()).add(*counts)
        if score.error:
            self.problems.append(f"tree {self.all.sentences}: {score.error}")

    def to_dict(self) -> dict[str, Any]:
        """The summary of all sentences, and those of short ones, by length and by label."""
        by_length = sorted(self.lengths.items(), key=lambda item: int(item[0].split("-")[0]))
        by_label = sorted(self.labels.items(), key=lambda item: (-item[1].gold, item[0]))
        return {
            **self.all.to_dict(),
            f"up_to_{CUTOFF_LENGTH}_words": self.short.to_dict(),
            "by_length": {
                name: {**part.brackets.to_dict(), "sentences": part.sentences}
                for name, part in by_length
            },
            "by_label": {
                label: {**counts.to_dict(), "gold": counts.gold, "predicted": counts.predicted}
                for label, counts in by_label
            },
        }


def length_range(length: int) -> str:
    """The range that a sentence belongs to in `by_length`: "1-10", ..., "61-"."""
    start = 1
    for end in LENGTHS:
        if length <= end:
            return f"{start}-{end}"
        start = end + 1
    return f"{start}-"


def score_trees(
    gold: Iterable[Tree], predicted: Iterable[Tree], max_errors: int = MAX_ERRORS
) -> ParsevalScores:
    """Scores predicted trees against gold trees, in pairs.

    Args:
        gold: the treebank's trees, with or without traces and function tags.
        predicted: as many trees; sentences that were not parsed have trees without words.
        max_errors: EVALB's limit of predicted trees whose words differ from the gold tree's. EVALB
            accepts one more than its limit, and stops at the next.

    Raises:
        InputError: if there are no trees, unequal numbers of them, or too many errors.
    """
    scores = ParsevalScores()
    for number, (ours, theirs) in enumerate(zip_longest(gold, predicted), 1):
        if ours is None or theirs is None:
            ended, other = ("gold", "predicted") if ours is None else ("predicted", "gold")
            rule = "there must be as many predicted trees as gold trees"
            raise InputError(f"{rule}. Received: {number - 1} {ended} trees, and more {other} ones")
        scores.add(score_sentence(ours, theirs))
        if scores.all.errors > max_errors + 1:
            rule = (
                f"at most {max_errors + 1} predicted trees may differ from the gold ones in words"
            )
            raise InputError(f"{rule}. Received: more; the first is {scores.problems[0]}")
    require(scores.all.sentences > 0, "scores need at least one tree", "none")
    return scores
