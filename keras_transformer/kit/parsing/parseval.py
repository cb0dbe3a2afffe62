"""Labelled bracket scores, counted as EVALB does with COLLINS.prm (the F1 of Table 4).

EVALB is the program of Sekine and Collins (1997) behind every F1 on the Penn Treebank. The
constants below come from its parameter file. In short: punctuation and traces are removed together
with their words, and so are constituents without words. Function tags are stripped, and all
remaining brackets (label, first word, last word) count, including the outermost one. Preterminals
do not count. A label that begins with "-" becomes empty, but its bracket counts.

One difference: a bracket without a label, which treebank files have around each tree, is ignored
like TOP. EVALB counts it, and its manual tells users to name it TOP.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from keras_transformer.kit.parsing.linearisation import NO_TAG
from keras_transformer.kit.parsing.trees import Tree
from keras_transformer.support.errors import InputError, require

DELETED = frozenset(("TOP", "-NONE-", ",", ":", "``", "''", "."))  # DELETE_LABEL
NO_LENGTH = "-NONE-"  # DELETE_LABEL_FOR_LENGTH: traces do not count as words
EQUAL = {"PRT": "ADVP"}  # EQ_LABEL
CUTOFF_LENGTH = 40  # CUTOFF_LEN, in words, punctuation included
MAX_ERRORS = 11  # MAX_ERROR is 10; EVALB accepts one more, and stops at the next
# The rows of "by_length", and the maximum number of words in each.
LENGTHS = {"1-10": 10, "11-20": 20, "21-30": 30, "31-40": 40, "41-60": 60, "61-": math.inf}


class Bracket(NamedTuple):
    """A constituent: its label without function tags, and its words [start, end)."""

    label: str
    start: int
    end: int


class Brackets(NamedTuple):
    """The parts of a tree that are compared."""

    words: list[str]  # without deleted ones
    tags: list[str]  # of these words
    brackets: dict[int, Bracket]  # by node number in Tree.fold, parents before children
    length: int  # number of words, with punctuation but without traces


def brackets_of(tree: Tree) -> Brackets:
    """Returns the words, tags and brackets of a tree that EVALB compares."""
    words = []
    tags = []
    brackets = {}
    length = 0
    nodes = 0

    def visit(node: Tree, starts: list[int]) -> int:
        """Returns the number of words before a node."""
        nonlocal length, nodes
        start = starts[0] if starts else len(words)
        label = node.label
        if node.word is None:
            without_tags = label.partition("-")[0].partition("=")[0]
            if start < len(words) and label and without_tags not in DELETED:
                label = EQUAL.get(without_tags, without_tags)
                brackets[nodes] = Bracket(label, start, len(words))
        else:
            length += label != NO_LENGTH
            if label and label not in DELETED:
                words.append(node.word)
                tags.append(EQUAL.get(label, label))
        nodes += 1
        return start

    tree.fold(visit)
    return Brackets(words, tags, dict(reversed(brackets.items())), length)


@dataclass(frozen=True)
class SentenceScore:
    """The comparison of two trees, without brackets if the sentence is skipped or an error."""

    length: int  # words of the gold tree, with punctuation but without traces
    skipped: bool = False  # the predicted tree has no words
    error: str = ""  # how its words differ from those of the gold tree
    gold: Counter[str] = field(default_factory=Counter)  # number of brackets with each label
    predicted: Counter[str] = field(default_factory=Counter)
    matched: Counter[str] = field(default_factory=Counter)
    missed: frozenset[int] = frozenset()  # node numbers of brackets only in the gold tree
    wrong: frozenset[int] = frozenset()  # and of those only in the predicted tree
    crossing: int = 0  # predicted brackets that cross one or more gold brackets
    words: int = 0  # without punctuation
    correct_tags: int = 0  # of these words


def score_sentence(gold: Tree, predicted: Tree) -> SentenceScore:
    """Compares the two trees of a sentence.

    A predicted tree without words is skipped. One whose words, without punctuation, differ from the
    gold tree's is an error. Neither counts in recall, precision or any other average. As tags
    determine what is punctuation, a wrong tag can also cause an error.
    """
    in_gold = brackets_of(gold)
    in_predicted = brackets_of(predicted)
    if not in_predicted.words:
        return SentenceScore(in_gold.length, skipped=True)
    error = _difference_in_words(in_gold.words, in_predicted.words)
    if error:
        return SentenceScore(in_gold.length, error=error)
    missed = _without_partner(in_gold.brackets, in_predicted.brackets)
    gold_labels = Counter(bracket.label for bracket in in_gold.brackets.values())
    missed_labels = Counter(in_gold.brackets[node].label for node in missed)
    tag_pairs = zip(in_gold.tags, in_predicted.tags, strict=True)
    return SentenceScore(
        in_gold.length,
        gold=gold_labels,
        predicted=Counter(bracket.label for bracket in in_predicted.brackets.values()),
        matched=gold_labels - missed_labels,
        missed=missed,
        wrong=_without_partner(in_predicted.brackets, in_gold.brackets),
        crossing=_count_crossing(in_gold.brackets, in_predicted.brackets),
        words=len(in_gold.words),
        correct_tags=sum(gold_tag == predicted_tag for gold_tag, predicted_tag in tag_pairs),
    )


def _difference_in_words(gold: list[str], predicted: list[str]) -> str:
    """Describes how the words of two trees differ; empty if they do not."""
    if len(gold) != len(predicted):
        return f"{len(predicted)} words without punctuation, but {len(gold)} in the gold tree"
    for number, (word, other) in enumerate(zip(gold, predicted, strict=True), 1):
        if word != other:
            return f"word {number} without punctuation is {other!r}, but {word!r} in the gold tree"
    return ""


def _count_crossing(gold: dict[int, Bracket], predicted: dict[int, Bracket]) -> int:
    """Counts the predicted brackets that cross one or more gold brackets."""
    gold_spans = {(bracket.start, bracket.end) for bracket in gold.values()}
    count = 0
    for _, start, end in predicted.values():
        for gold_start, gold_end in gold_spans:
            if gold_start < start < gold_end < end or start < gold_start < end < gold_end:
                count += 1
                break
    return count


def _without_partner(brackets: dict[int, Bracket], others: dict[int, Bracket]) -> frozenset[int]:
    """Returns the brackets that `others` lacks; each of two equal ones needs its own partner."""
    partners = Counter(others.values())
    alone = []
    for node, bracket in brackets.items():
        partners[bracket] -= 1
        if partners[bracket] < 0:
            alone.append(node)
    return frozenset(alone)


def with_gold_tags(predicted: Tree, gold: Tree) -> Tree:
    """Gives a predicted tree the gold tree's tags, if it has as many words (without traces).

    This is for parsers that predict no tags: without tags, a comma would be scored as a word.
    """
    tags = [tag for tag, _ in gold.leaves() if tag != NO_LENGTH]
    if len(predicted.leaves()) != len(tags):
        return predicted
    following = iter(tags)

    def tagged(node: Tree, children: list[Tree]) -> Tree:
        label = node.label if node.word is None else next(following)
        return Tree(label, tuple(children), node.word)

    return predicted.fold(tagged)


def percent(part: float, whole: float) -> float:
    """Returns 100 part / whole, rounded to two decimals; 0 if `whole` is 0."""
    return round(100 * part / whole, 2) if whole else 0.0


def bracket_scores(gold: int, predicted: int, matched: int) -> dict[str, float]:
    """Returns F1, precision and recall in percent.

    F1 is 2PR / (P + R) = 2 matched / (gold + predicted).
    """
    return {
        "f1": percent(2 * matched, gold + predicted),
        "precision": percent(matched, predicted),
        "recall": percent(matched, gold),
    }


def summary(scores: Sequence[SentenceScore]) -> dict[str, float]:
    """Returns EVALB's summary: percentages, sentence counts, crossing brackets per sentence."""
    valid = [score for score in scores if not (score.skipped or score.error)]
    crossing = [score.crossing for score in valid]
    complete = sum(not (score.missed or score.wrong) for score in valid)
    correct_tags = sum(score.correct_tags for score in valid)
    return {
        **bracket_scores(
            sum(score.gold.total() for score in valid),
            sum(score.predicted.total() for score in valid),
            sum(score.matched.total() for score in valid),
        ),
        "complete_match": percent(complete, len(valid)),
        "average_crossing": round(sum(crossing) / len(valid), 2) if valid else 0.0,
        "no_crossing": percent(sum(count == 0 for count in crossing), len(valid)),
        "two_or_less_crossing": percent(sum(count <= 2 for count in crossing), len(valid)),
        "tagging_accuracy": percent(correct_tags, sum(score.words for score in valid)),
        "sentences": len(scores),
        "skipped": sum(score.skipped for score in scores),
        "errors": sum(bool(score.error) for score in scores),
    }


def score_trees(gold: Sequence[Tree], predicted: Sequence[Tree]) -> dict[str, Any]:
    """Scores predicted trees against as many gold trees, with or without traces and function tags.

    The predicted tree of a sentence that was not parsed has no words.

    Returns:
        The summary of all sentences, plus {"up_to_40_words": the summary of short ones,
        "by_length": {range of lengths: {"f1", "precision", "recall", "sentences"}}, "by_label":
        {label: {"f1", "precision", "recall", "gold", "predicted"}}}, the most frequent label first.

    Raises:
        InputError: if there are no trees, unequal numbers of them, or more than MAX_ERRORS errors.
    """
    rule = "must be as many trees as gold"
    received = f"{len(predicted)} predicted trees, and more gold ones"
    require(len(predicted) >= len(gold), "predicted", rule, received)
    received = f"{len(gold)} gold trees, and more predicted ones"
    require(len(gold) >= len(predicted), "predicted", rule, received)
    require(len(gold) > 0, "gold", "must have at least one tree", "none")
    scores = list(map(score_sentence, gold, predicted))
    errors = [f"tree {n}: {score.error}" for n, score in enumerate(scores, 1) if score.error]
    if len(errors) > MAX_ERRORS:
        rule = f"must have the words of the gold trees, but for at most {MAX_ERRORS} trees"
        raise InputError("predicted", rule, f"more; the first is {errors[0]}")
    short = [score for score in scores if score.length <= CUTOFF_LENGTH]
    return {
        **summary(scores),
        f"up_to_{CUTOFF_LENGTH}_words": summary(short),
        "by_length": _by_length(scores),
        "by_label": _by_label(scores),
    }


def _by_length(scores: list[SentenceScore]) -> dict[str, dict[str, float]]:
    parts: dict[str, list[SentenceScore]] = {name: [] for name in LENGTHS}
    for score in scores:
        parts[next(name for name, end in LENGTHS.items() if score.length <= end)].append(score)
    shown = ("f1", "precision", "recall", "sentences")
    totals = {name: summary(part) for name, part in parts.items() if part}
    return {name: {key: total[key] for key in shown} for name, total in totals.items()}


def _by_label(scores: list[SentenceScore]) -> dict[str, dict[str, float]]:
    gold = sum((score.gold for score in scores), Counter())
    predicted = sum((score.predicted for score in scores), Counter())
    matched = sum((score.matched for score in scores), Counter())
    return {
        label: {
            **bracket_scores(gold[label], predicted[label], matched[label]),
            "gold": gold[label],
            "predicted": predicted[label],
        }
        for label in sorted(gold | predicted, key=lambda label: (-gold[label], label))
    }


def parsing_scores(trees: Sequence[Tree], gold: Sequence[Tree]) -> dict[str, Any]:
    """Scores a parser's trees, one per sentence, with the gold tags determining punctuation.

    A wrong tag thus lowers the tagging accuracy, but never makes a sentence an error.

    Returns:
        The result of score_trees, with two changes: "tagging_accuracy" counts all words, including
        punctuation, and is None if no tags were predicted; "well_formed" is added, the percentage
        of trees over exactly the gold tree's words.
    """
    received = f"{len(trees)} trees of {len(gold)} sentences"
    require(len(trees) == len(gold), "trees", "must be one for each sentence", received)
    scores = score_trees(gold, list(map(with_gold_tags, trees, gold)))
    del scores["up_to_40_words"]["tagging_accuracy"]  # it would be that of the gold tags
    words = correct_tags = well_formed = 0
    has_tags = False
    for tree, gold_tree in zip(trees, gold, strict=True):
        well_formed += tree.words() == gold_tree.words()
        for (tag, _), (gold_tag, _) in zip(tree.leaves(), gold_tree.leaves(), strict=False):
            words += 1
            correct_tags += tag == gold_tag
            has_tags = has_tags or tag != NO_TAG
    scores["tagging_accuracy"] = percent(correct_tags, words) if has_tags else None
    scores["well_formed"] = percent(well_formed, len(gold))
    return scores
