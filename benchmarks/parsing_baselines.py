"""Measures the F1 of simple parsers on a treebank, as baselines for the Transformer (Table 4).

    python benchmarks/parsing_baselines.py --train_trees=train.ptb.gz --test_trees=test.ptb.gz

right_branching: each word begins a constituent that ends where the sentence ends. The root gets the
most frequent root label, and all other constituents get the most frequent label of constituents at
the end of a sentence. A final full stop is a child of the root.

pcfg: the best tree, found by CKY, under an unsmoothed probabilistic grammar read off the training
trees. Unary chains are collapsed into one label, labels include the parent's (v = 2), and long
rules are binarized from the left, remembering two sisters (h = 2). A word may have the tags it had
in training; a rare word may also have those of other rare words of the same form. --tags=gold uses
the gold tags instead. Each span keeps the symbols within BEAM of its best. Sentences of more than
--max_length words, and those for which the grammar has no tree, get the right-branching tree; the
result counts them.

Both are scored with gold tags, which distinguish punctuation from words. Prints the scores on
stderr and one JSON line on stdout.
"""

import argparse
import json
import multiprocessing
import os
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

sys.path.insert(0, str(Path(__file__).resolve().parent))

from timing import log, run

from keras_transformer.parsing.parseval import DELETED, brackets_of, score_trees, with_gold_tags
from keras_transformer.parsing.trees import (
    JOINT,
    Tree,
    clean,
    collapse_unaries,
    read_trees,
)
from keras_transformer.text_table import text_table

BEAM = 10.0  # natural logarithm of a probability that includes the symbol's prior
RARE = 1  # words seen at most this often define the tags of unknown words
KNOWN = 1.0  # a word's form weighs as much as this many occurrences


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--train_trees", required=True, help="Penn Treebank brackets")
    parser.add_argument("--test_trees", required=True, help="Penn Treebank brackets")
    parser.add_argument(
        "--max_length", type=int, default=100, help="longest sentence for the PCFG, in words"
    )
    parser.add_argument("--tags", choices=("words", "gold"), default="words")
    parser.add_argument("--sentences", type=int, help="number of test trees (default: all)")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    begun = time.time()
    train = [clean(tree) for tree in read_trees(arguments.train_trees)]
    gold = [clean(tree) for tree in islice(read_trees(arguments.test_trees), arguments.sentences)]
    branching = RightBranching(train)
    simple = [branching.parse(tree.leaves()) for tree in gold]
    result = {"right_branching": scores("right_branching", gold, simple)}

    parsed = parse_all(Pcfg(train, arguments.tags == "gold"), gold, arguments)
    too_long = sum(len(tree.words()) > arguments.max_length for tree in gold)
    found = [tree or other for tree, other in zip(parsed, simple, strict=True)]
    result["pcfg"] = {
        **scores("pcfg", gold, found),
        "too_long": too_long,
        "without_tree": parsed.count(None) - too_long,
        "tagging_accuracy": tagging_accuracy(parsed, gold),
        "tags": arguments.tags,
    }
    result["seconds"] = round(time.time() - begun, 1)
    print(json.dumps(result))


def tagging_accuracy(parsed: list[Tree | None], gold: list[Tree]) -> float:
    """Computes the percentage of correct tags, over sentences that have a tree."""
    words = correct = 0
    for tree, gold_tree in zip(parsed, gold, strict=True):
        if tree is not None:
            for leaf, gold_leaf in zip(tree.leaves(), gold_tree.leaves(), strict=True):
                words += 1
                correct += leaf == gold_leaf
    return round(100 * correct / max(1, words), 2)


def scores(name, gold, predicted):
    """Computes labelled bracket scores, for all sentences and for those of up to 40 words."""
    tagged = [with_gold_tags(tree, other) for tree, other in zip(predicted, gold, strict=True)]
    numbers = score_trees(gold, tagged)
    keys = ("f1", "precision", "recall", "complete_match", "sentences")
    summary = {
        "all": {key: numbers[key] for key in keys},
        "up_to_40_words": {key: numbers["up_to_40_words"][key] for key in keys},
    }
    for rows in (summary, numbers["by_length"], numbers["by_label"]):
        header = (name, *next(iter(rows.values()), ()))
        log(text_table(header, [(part, *values.values()) for part, values in rows.items()]))
    return summary


class RightBranching:
    """The right-branching parser, which uses two labels."""

    def __init__(self, trees: list[Tree]):
        roots = Counter(tree.label for tree in trees)
        labels: Counter[str] = Counter()
        for tree in trees:
            found = brackets_of(tree)
            last = [part for part in found.brackets.values() if part.end == len(found.words)]
            labels.update(part.label for part in last if 0 < part.start < part.end - 1)
        self.root = most_common(roots)
        self.label = most_common(labels or roots)

    def parse(self, leaves: list[tuple[str, str]]) -> Tree:
        words = [Tree(tag, (), word) for tag, word in leaves]
        stop = words[-1:] if len(words) > 1 and words[-1].label in DELETED else []
        first, *others = words[: len(words) - len(stop)]
        below = others[-1:]
        for word in reversed(others[:-1]):
            below = [Tree(self.label, (word, *below))]
        return Tree(self.root, (first, *below, *stop))


def most_common(labels: Counter[str]) -> str:
    [(label, _)] = labels.most_common(1)
    return label


class Lexicon:
    """P(word | tag) up to a factor per word: P(tag | word) / P(tag), by Bayes' rule."""

    def __init__(self, trees: list[Tree]):
        self.words: dict[str, Counter[str]] = defaultdict(Counter)
        self.forms: dict[str, Counter[str]] = defaultdict(Counter)
        self.tags: Counter[str] = Counter()
        for tree in trees:
            for tag, word in tree.leaves():
                self.words[word][tag] += 1
                self.tags[tag] += 1
        for word, tags in self.words.items():
            if tags.total() <= RARE:
                self.forms[form(word)].update(tags)
                self.forms[""].update(tags)  # for words whose form no rare word had

    def log_scores(self, word: str) -> dict[str, float]:
        """Returns the score of each tag that a word may have."""
        seen = self.words.get(word, Counter())
        guesses = self.forms.get(form(word), self.forms[""])
        total = self.tags.total()
        weight = KNOWN / guesses.total()
        return {
            tag: np.log((seen[tag] + weight * guesses[tag]) / (seen.total() + KNOWN))
            - np.log(self.tags[tag] / total)
            for tag in seen | guesses
        }


def form(word: str) -> str:
    """Describes a word's form: capitals, digits, other characters, and its ending."""
    found = ""
    if any(character.isupper() for character in word):
        found += "A"
    if any(character.islower() for character in word):
        found += "a"
    if any(character.isdigit() for character in word):
        found += "1"
    if any(not character.isalnum() for character in word):
        found += "-"
    if word[0].isupper():
        found += "^"
    if word[-1].isalpha():
        found += word[-3:].lower()
    return found


def binary_rules(tree: Tree) -> Iterator[tuple[tuple[str, ...], ...]]:
    """Yields the rules of a tree with collapsed unaries.

    They are (parent, left, right), or (parent, tag) above a word. Symbols are (tag,), (label,
    parent's label) or, for the rest of a long rule, (label, "", the one or two sisters before it).
    """
    stack = [(tree, "")]
    while stack:
        node, above = stack.pop()
        if node.word is not None:
            continue
        own = node.label.split(JOINT)[-1]
        stack.extend((child, own) for child in node.children)
        parts = [(child.label, own)[: 1 + (child.word is None)] for child in node.children]
        state = (node.label, above)
        for index in range(len(parts) - 2):
            sisters = (part[0] for part in parts[max(0, index - 1) : index + 1])
            rest = (node.label, "", *sisters)
            yield state, parts[index], rest
            state = rest
        yield (state, *parts[-2:])


class Span(NamedTuple):
    """The possible symbols of a span of words, ordered by number."""

    symbols: np.ndarray
    scores: np.ndarray  # log-probability of the best tree
    splits: np.ndarray  # where the tree's second part begins
    rules: np.ndarray  # its rule; above a single word, -1 for a tag, else the tag's number


class Pcfg:
    """A grammar with its lexicon, and CKY (rules in NumPy, spans in Python)."""

    def __init__(self, trees: list[Tree], gold_tags: bool):
        self.lexicon = None if gold_tags else Lexicon(trees)
        trees = [collapse_unaries(tree) for tree in trees]
        counts = Counter(rule for tree in trees for rule in binary_rules(tree))
        parents: Counter[tuple[str, ...]] = Counter()
        for rule, count in counts.items():
            parents[rule[0]] += count
            parents.update({part: count for part in rule[1:] if len(part) == 1})
        self.names = list(parents)
        self.numbers = {name: number for number, name in enumerate(self.names)}
        self.prior = np.log([parents[name] / parents.total() for name in self.names])
        roots = Counter(tree.label for tree in trees)
        self.roots = np.full(len(self.names), -np.inf)
        for label, count in roots.items():
            self.roots[self.numbers[label, ""]] = np.log(count / len(trees))

        def table(parts: int) -> tuple[np.ndarray, np.ndarray]:
            """Returns the rules with `parts` parts, sorted by the left part, and their log P."""
            rules = [rule for rule in counts if len(rule) == parts + 1]
            rules.sort(key=lambda rule: self.numbers[rule[1]])
            numbers = [[self.numbers[symbol] for symbol in rule] for rule in rules]
            scores = [np.log(counts[rule] / parents[rule[0]]) for rule in rules]
            return np.array(numbers, int).reshape(-1, parts + 1).T, np.array(scores)

        (self.over, self.tag), self.lexical_scores = table(1)
        (self.parent, self.left, self.right), self.scores = table(2)
        # The rules with left part b are first[b], ..., first[b] + many[b] - 1.
        self.first = np.searchsorted(self.left, np.arange(len(self.names)))
        self.many = np.bincount(self.left, minlength=len(self.names))

    def parse(self, leaves: list[tuple[str, str]]) -> Tree | None:
        """Returns the most probable tree, or None if the grammar has none within the beam."""
        count = len(leaves)
        chart = {(i, i + 1): self._word(*leaf) for i, leaf in enumerate(leaves)}
        # The same scores indexed by symbol number, to look up right parts.
        scores = np.full((count + 1, count + 1, len(self.names)), -np.inf, np.float32)
        for width in range(1, count + 1):
            for start in range(count + 1 - width):
                place = start, start + width
                if width > 1:
                    chart[place] = self._span(chart, scores, *place)
                scores[place][chart[place].symbols] = chart[place].scores
        whole = scores[0, count] + self.roots
        if whole.max() == -np.inf:
            return None
        [tree] = self._trees(chart, leaves, 0, count, int(whole.argmax()))
        return tree

    def _word(self, tag: str, word: str) -> Span:
        tags = {tag: 0.0} if self.lexicon is None else self.lexicon.log_scores(word)
        known = [
            (self.numbers[tag,], score) for tag, score in tags.items() if (tag,) in self.numbers
        ]
        scores = np.full(len(self.names), -np.inf)
        for number, score in known:
            scores[number] = score
        over = scores[self.tag] + self.lexical_scores
        possible = np.flatnonzero(over > -np.inf)
        numbers = np.array([number for number, _ in known], int)
        return self._best(
            np.concatenate([numbers, self.over[possible]]),
            np.concatenate([scores[numbers], over[possible]]),
            np.full(len(numbers) + len(possible), -1),
            np.concatenate([np.full(len(numbers), -1), self.tag[possible]]),
        )

    def _span(self, chart: dict, scores: np.ndarray, start: int, end: int) -> Span:
        """Tries every rule whose left part is in the chart, at all splits at once."""
        parts = [chart[start, split] for split in range(start + 1, end)]
        left = np.concatenate([part.symbols for part in parts])
        left_scores = np.concatenate([part.scores for part in parts])
        splits = np.repeat(np.arange(start + 1, end), [len(part.symbols) for part in parts])
        many = self.many[left]
        source = np.repeat(np.arange(len(left)), many)
        rules = np.arange(len(source)) + np.repeat(self.first[left] - np.cumsum(many) + many, many)
        right_scores = scores[splits[source], end, self.right[rules]]
        found = np.flatnonzero(right_scores > -np.inf)
        source, rules = source[found], rules[found]
        total = left_scores[source] + right_scores[found] + self.scores[rules]
        return self._best(self.parent[rules], total, splits[source], rules)

    def _best(self, symbols, scores, splits, rules) -> Span:
        """Keeps the best derivation of each symbol, and only symbols within the beam."""
        if len(symbols):
            merit = scores + self.prior[symbols]
            kept = np.flatnonzero(merit > merit.max() - BEAM)
            kept = kept[np.argsort(-scores[kept], kind="stable")]
            kept = kept[np.unique(symbols[kept], return_index=True)[1]]  # the first is the best
            symbols, scores, splits, rules = (a[kept] for a in (symbols, scores, splits, rules))
        return Span(symbols, scores, splits, rules)

    def _trees(self, chart, leaves, start: int, end: int, symbol: int) -> list[Tree]:
        """Returns the tree of a label, or the children that the rest of a rule stands for."""
        span = chart[start, end]
        index = np.searchsorted(span.symbols, symbol)
        rule, split, name = span.rules[index], span.splits[index], self.names[symbol]
        if len(name) == 1:
            return [Tree(name[0], (), leaves[start][1])]
        if end - start == 1:
            children = self._trees(chart, leaves, start, end, rule)
        else:
            children = self._trees(chart, leaves, start, split, self.left[rule])
            children += self._trees(chart, leaves, split, end, self.right[rule])
        for label in reversed(name[0].split(JOINT) if len(name) == 2 else []):
            children = [Tree(label, tuple(children))]
        return children


def parse_all(parser: Pcfg, gold: list[Tree], arguments) -> list[Tree | None]:
    """Parses the sentences that are not too long, in several processes."""
    short = [tree.leaves() for tree in gold if len(tree.words()) <= arguments.max_length]
    with multiprocessing.Pool(arguments.processes, _take, [parser]) as pool:
        parsed = iter(list(tqdm(pool.imap(_parse, short, 16), total=len(short), unit=" sentences")))
    return [next(parsed) if len(tree.words()) <= arguments.max_length else None for tree in gold]


def _take(parser: Pcfg) -> None:
    global PARSER  # one per process, so that it is not sent with every sentence
    PARSER = parser


def _parse(leaves: list[tuple[str, str]]) -> Tree | None:
    return PARSER.parse(leaves)


if __name__ == "__main__":
    run(main)
