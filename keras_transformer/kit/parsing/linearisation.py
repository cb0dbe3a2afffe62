"""Trees as token sequences (Vinyals et al. 2014, "Grammar as a Foreign Language"), and back.

    (S (NP (DT The) (NN dog)) (VP (VBZ barks)))      a tree
    (S (NP XX XX )NP (VP XX )VP )S                   its tokens, words="xx", as in that paper
    (S (NP DT NN )NP (VP VBZ )VP )S                  words="tags"
    (S (NP The dog )NP (VP barks )VP )S              words="keep"

A model may emit any sequence. It is always read as a tree over exactly the sentence's words, in
order. The n-th word token stands for the n-th word, unless words are kept: then the tokens are
aligned with the sentence, so that one mistake does not shift all later words.

With words in the target, an error has only local effects; with tags or XX, one missing word shifts
all that follow (docs/diary.md).
"""

import dataclasses
import difflib
import re
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Annotated, NamedTuple

from keras_transformer.kit.parsing.trees import JOINT, TOP, UNARIES, Tree, collapse_unaries, escape
from keras_transformer.support.fields import check_fields, one_of

WORDS = ("xx", "tags", "keep")
NO_TAG = "XX"  # stands for a word; as a tag, it means that none was predicted

_TOKEN = re.compile(r"\((?P<opening>[^\s()]+)|\)(?P<closing>[^\s()]*)|(?P<word>[^\s()]+)", re.ASCII)


@dataclasses.dataclass
class Repairs:
    """The repairs that a token sequence needed to become a tree, counted by kind."""

    unmatched_closing: int = 0  # closing brackets without an opening one: dropped
    missing_closing: int = 0  # constituents closed by another bracket or by the end
    empty_constituents: int = 0  # brackets around nothing: dropped
    repeated_unaries: int = 0  # constituents whose only child has the same label: merged
    missing_words: int = 0  # words of the sentence without a token: added
    extra_words: int = 0  # word tokens without a word in the sentence: dropped
    other_words: int = 0  # kept words that differ from the sentence's: replaced
    strange_tokens: int = 0  # tokens that no linearised tree contains, such as "((": dropped
    missing_root: int = 0  # 1 if there were several outermost nodes: put under a TOP

    @property
    def total(self) -> int:
        return sum(dataclasses.astuple(self))


@dataclasses.dataclass(frozen=True)
class Linearisation:
    """How trees are written as tokens: a property of the data, and of a model trained on them.

    Args:
        words: how a word is written: "xx" for XX, "tags" for its tag, "keep" for the word itself.
        unaries: how a chain of constituents with one child is written: "keep" leaves it unchanged,
            "collapse" makes it one constituent, S+VP for S over VP.

    Raises:
        InputError: for any other value.

    Example:
        >>> from keras_transformer.kit.parsing.trees import parse_trees
        >>> (tree,) = parse_trees(["(S (NP (DT The) (NN dog)) (VP (VBZ barks)))"], "example")
        >>> Linearisation(words="tags").tokens(tree)
        ['(S', '(NP', 'DT', 'NN', ')NP', '(VP', 'VBZ', ')VP', ')S']
    """

    words: Annotated[str, one_of(*WORDS)] = "xx"
    unaries: Annotated[str, one_of(*UNARIES)] = "keep"

    def __post_init__(self):
        check_fields(self)

    def tokens(self, tree: Tree) -> list[str]:
        """Returns the tokens of a cleaned tree."""

        def write(node: Tree, children: list[list[str]]) -> list[str]:
            if node.word is None:
                return [f"({node.label}", *chain.from_iterable(children), f"){node.label}"]
            if self.words == "keep":
                return [escape(node.word)]
            return [node.label if self.words == "tags" else NO_TAG]

        if self.unaries == "collapse":
            tree = collapse_unaries(tree)
        return tree.fold(write)

    def symbols(self, tree: Tree) -> set[str]:
        """Returns the set of a tree's tokens, without kept words."""
        tokens = self.tokens(tree)
        if self.words == "keep":
            tokens = [token for token in tokens if token[0] in "()"]
        return set(tokens)

    def tree(self, tokens: Iterable[str], words: Sequence[str]) -> tuple[Tree, Repairs]:
        """Builds a tree over exactly `words` from any tokens.

        The tokens of a cleaned tree give that tree. In other sequences, a closing bracket closes
        the innermost open constituent with its label, and all constituents open within it; ")"
        without a label closes the innermost one. For the other rules, see the fields of `Repairs`.
        With words="tags", tokens that are not brackets become tags; otherwise every tag is XX.

        Args:
            tokens: the tokens that a model emitted.
            words: the words of the sentence, at least one.

        Returns:
            The tree, and the repairs that the tokens needed.
        """
        matches = [_TOKEN.fullmatch(token) for token in tokens]
        if self.words == "keep":
            predicted_words = [match["word"] for match in matches if match and match["word"]]
            word_shares = iter(shares(predicted_words, words))
        else:
            word_shares = iter([1] * len(words))
        builder = _Builder(words, self)
        for match in matches:
            if match is None:
                builder.repairs.strange_tokens += 1
            elif match.lastgroup == "opening":
                builder.open_constituent(match["opening"])
            elif match.lastgroup == "closing":
                builder.close_constituent(match["closing"])
            else:
                builder.read_word(match["word"], next(word_shares, 0))
        return builder.finish(), builder.repairs


def shares(predicted_words: Sequence[str], words: Sequence[str]) -> list[int]:
    """Returns how many of the sentence's next words each predicted word stands for.

    This is 0 for an extra word, and more than 1 if words after it are missing. Words missing at the
    end are not included.
    """
    result = [0] * len(predicted_words)
    matcher = difflib.SequenceMatcher(None, predicted_words, words, autojunk=False)
    for _, begin, end, words_begin, words_end in matcher.get_opcodes():
        # Predicted words begin ... end - 1 stand for the words words_begin ... words_end - 1.
        paired = min(end - begin, words_end - words_begin)
        for index in range(begin, begin + paired):
            result[index] += 1
        missing = words_end - words_begin - paired
        if predicted_words and end < len(predicted_words):
            result[max(end - 1, 0)] += missing
    return result


class _OpenConstituent(NamedTuple):
    """A constituent that has not been closed yet."""

    label: str
    children: list[Tree]


class _Builder:
    """A tree under construction.

    Args:
        words: the words of the sentence.
        linearisation: how the tokens were written.
    """

    def __init__(self, words: Sequence[str], linearisation: Linearisation):
        self.words = words
        self.linearisation = linearisation
        self.repairs = Repairs()
        self.used = 0  # number of words in the tree so far
        # Outermost first. The first has no label and is never closed.
        self.open = [_OpenConstituent("", [])]

    def open_constituent(self, label: str) -> None:
        """Begins a constituent within the innermost open one."""
        self.open.append(_OpenConstituent(label, []))

    def read_word(self, token: str, share: int) -> None:
        """Adds the next `share` words."""
        words = self.words[self.used : self.used + share]
        self.used += share
        if share == 0:
            self.repairs.extra_words += 1
        if share > 1:
            self.repairs.missing_words += share - 1
        if self.linearisation.words == "keep" and words and token not in words:
            self.repairs.other_words += 1
        tag = token if self.linearisation.words == "tags" else NO_TAG
        self.open[-1].children.extend(Tree(tag, (), word) for word in words)

    def close_constituent(self, label: str) -> None:
        """Closes the innermost constituent with this label, or with any if `label` is empty."""
        for depth in range(len(self.open) - 1, 0, -1):
            if label in ("", self.open[depth].label):
                self.repairs.missing_closing += len(self.open) - 1 - depth
                self._close_down_to(depth)
                return
        self.repairs.unmatched_closing += 1

    def finish(self) -> Tree:
        """Closes all open constituents, adds the remaining words, and returns the tree."""
        self.repairs.missing_closing += len(self.open) - 1
        self._close_down_to(1)
        top = self.open[0].children
        left_over = [Tree(NO_TAG, (), word) for word in self.words[self.used :]]
        self.repairs.missing_words += len(left_over)
        if left_over and top and top[-1].word is None:
            last = top.pop()
            top.append(Tree(last.label, (*last.children, *left_over)))
        else:
            top.extend(left_over)
        if len(top) == 1 and top[0].word is None:
            return top[0]
        self.repairs.missing_root = 1
        return Tree(TOP, tuple(top))

    def _close_down_to(self, depth: int) -> None:
        """Closes constituents until `depth` are open."""
        while len(self.open) > depth:
            closed = self.open.pop()
            self.open[-1].children.extend(self._nodes(closed))

    def _nodes(self, closed: _OpenConstituent) -> list[Tree]:
        """Returns the nodes of a constituent: one, one for each part of S+VP, or none."""
        children = closed.children
        if not children:
            self.repairs.empty_constituents += 1
            return []
        labels = [closed.label]
        if self.linearisation.unaries == "collapse":
            labels = closed.label.split(JOINT)
        for label in reversed(labels):
            if len(children) == 1 and children[0].word is None and children[0].label == label:
                self.repairs.repeated_unaries += 1
            elif label:  # "(+S" has an empty one
                children = [Tree(label, tuple(children))]
        return children
