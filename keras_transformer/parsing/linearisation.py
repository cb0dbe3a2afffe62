"""Trees as token sequences (Vinyals et al. 2014, "Grammar as a Foreign Language"), and back.

    (S (NP (DT The) (NN dog)) (VP (VBZ barks)))      a tree
    (S (NP XX XX )NP (VP XX )VP )S                   its tokens, words="xx": the paper's way
    (S (NP DT NN )NP (VP VBZ )VP )S                  words="tags"
    (S (NP The dog )NP (VP barks )VP )S              words="keep"

A model may emit any sequence. It is always read as a tree over exactly the sentence's words, in
their order. The n-th word token stands for the n-th word, unless words are kept: then the tokens
are aligned with the sentence, so that one mistake does not shift all words after it.
"""

import dataclasses
import difflib
import re
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Annotated

from keras_transformer.fields import check_fields, one_of
from keras_transformer.parsing.trees import JOINT, TOP, UNARIES, Tree, collapse_unaries, escape

WORDS = ("xx", "tags", "keep")
NO_TAG = "XX"  # stands for a word; as a tag it means that no tag was predicted

_TOKEN = re.compile(r"\((?P<opening>[^\s()]+)|\)(?P<closing>[^\s()]*)|(?P<word>[^\s()]+)", re.ASCII)


@dataclasses.dataclass
class Repairs:
    """Numbers of repairs that a token sequence needed to become a tree, by kind."""

    unmatched_closing: int = 0  # closing brackets without an opening one: left out
    missing_closing: int = 0  # constituents closed by another bracket or by the end
    empty_constituents: int = 0  # brackets around nothing: left out
    repeated_unaries: int = 0  # constituents whose only child has the same label: merged
    missing_words: int = 0  # words of the sentence without a token: added
    extra_words: int = 0  # more word tokens than words: left out
    other_words: int = 0  # kept words that differ from the sentence's: replaced
    strange_tokens: int = 0  # tokens that no linearised tree has, such as "((": left out
    missing_root: int = 0  # 1 if there were several outermost nodes: put into a TOP

    @property
    def total(self) -> int:
        return sum(dataclasses.astuple(self))


@dataclasses.dataclass(frozen=True)
class Linearisation:
    """How trees are written as tokens: a property of the data, and of a model trained on them."""

    words: Annotated[str, one_of(*WORDS)] = (
        "xx"  # each word as XX, as its tag ("tags") or as it is ("keep")
    )
    unaries: Annotated[str, one_of(*UNARIES)] = "keep"  # or "collapse": S+VP for S over VP

    def __post_init__(self):
        check_fields(self)

    def tokens(self, tree: Tree) -> list[str]:
        """Writes a cleaned tree."""

        def write(node: Tree, children: list[list[str]]) -> list[str]:
            if node.word is None:
                return [f"({node.label}", *chain.from_iterable(children), f"){node.label}"]
            if self.words == "keep":
                return [escape(node.word)]
            return [node.label if self.words == "tags" else NO_TAG]

        return (collapse_unaries(tree) if self.unaries == "collapse" else tree).fold(write)

    def symbols(self, tree: Tree) -> set[str]:
        """The set of tokens of a tree, without kept words."""
        return {token for token in self.tokens(tree) if self.words != "keep" or token[0] in "()"}

    def tree(self, tokens: Iterable[str], words: Sequence[str]) -> tuple[Tree, Repairs]:
        """Makes a tree over exactly `words`, of which there is at least one, from any tokens.

        The tokens of a cleaned tree give that tree. In other sequences a closing bracket closes the
        innermost open constituent of its label, and all that is open within it; ")" without a label
        closes the innermost one. For the other rules see the fields of `Repairs`. With words="tags"
        tokens that are no brackets become tags; otherwise every tag is XX.
        """
        found = [_TOKEN.fullmatch(token) for token in tokens]
        said = [token["word"] for token in found if token and token["word"]]
        word_shares = iter(shares(said, words) if self.words == "keep" else [1] * len(words))
        builder = _Builder(words, self)
        for token in found:
            if token is None:
                builder.repairs.strange_tokens += 1
            elif token.lastgroup == "opening":
                builder.open.append((token["opening"], []))
            elif token.lastgroup == "closing":
                builder.close(token["closing"])
            else:
                builder.read_word(token["word"], next(word_shares, 0))
        return builder.finish(), builder.repairs


def shares(said: Sequence[str], words: Sequence[str]) -> list[int]:
    """For each word that a model predicted, how many of the sentence's next words it stands for.

    That is 0 for an extra word, and more than 1 where words after it are missing. Words missing at
    the end are left over.
    """
    result = [0] * len(said)
    matcher = difflib.SequenceMatcher(None, said, words, autojunk=False)
    for _, start, end, first, last in matcher.get_opcodes():
        for place in range(start, end):
            result[place] += first < last
            first += first < last
        if said and end < len(said):
            result[max(end - 1, 0)] += last - first
    return result


class _Builder:
    """A tree under construction."""

    def __init__(self, words: Sequence[str], linearisation: Linearisation):
        self.words, self.linearisation = words, linearisation
        self.repairs = Repairs()
        self.used = 0  # number of words in the tree so far
        # Label and children of each open constituent, outermost first. The first is never closed.
        self.open: list[tuple[str, list[Tree]]] = [("", [])]

    def read_word(self, token: str, share: int) -> None:
        """Adds the next `share` words."""
        words = self.words[self.used : self.used + share]
        self.used += share
        self.repairs.extra_words += share == 0
        self.repairs.missing_words += max(0, share - 1)
        self.repairs.other_words += (
            self.linearisation.words == "keep" and bool(words) and token not in words
        )
        tag = token if self.linearisation.words == "tags" else NO_TAG
        self.open[-1][1].extend(Tree(tag, (), word) for word in words)

    def close(self, label: str) -> None:
        """Closes the innermost constituent with this label, or any if the label is empty."""
        depths = range(len(self.open) - 1, 0, -1)
        depth = next((depth for depth in depths if label in ("", self.open[depth][0])), None)
        if depth is None:
            self.repairs.unmatched_closing += 1
        else:
            self.repairs.missing_closing += len(self.open) - 1 - depth
            self._close_down_to(depth)

    def finish(self) -> Tree:
        """Closes what is open, adds the words that are left, and returns the tree."""
        self.repairs.missing_closing += len(self.open) - 1
        self._close_down_to(1)
        [(_, top)] = self.open
        rest = [Tree(NO_TAG, (), word) for word in self.words[self.used :]]
        self.repairs.missing_words += len(rest)
        if rest and top and top[-1].word is None:  # the last constituent takes them
            rest = [Tree(top[-1].label, (*top.pop().children, *rest))]
        top += rest
        if len(top) == 1 and top[0].word is None:
            return top[0]
        self.repairs.missing_root = 1
        return Tree(TOP, tuple(top))

    def _close_down_to(self, depth: int) -> None:
        """Closes constituents until `depth` are open."""
        while len(self.open) > depth:
            label, children = self.open.pop()
            self.repairs.empty_constituents += not children
            collapsed = self.linearisation.unaries == "collapse"
            labels = label.split(JOINT) if collapsed else [label]
            for part in reversed(labels if children else []):
                if len(children) == 1 and children[0].word is None and children[0].label == part:
                    self.repairs.repeated_unaries += 1
                elif part:  # "(+S" has an empty one
                    children = [Tree(part, tuple(children))]
            self.open[-1][1].extend(children)
