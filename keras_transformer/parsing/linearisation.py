"""Trees as token sequences (Vinyals et al. 2014, "Grammar as a Foreign Language"), and back.

    (S (NP (DT The) (NN dog)) (VP (VBZ barks)))      a tree
    (S (NP XX XX )NP (VP XX )VP )S                   its tokens, words="xx": the paper's way
    (S (NP DT NN )NP (VP VBZ )VP )S                  words="tags"
    (S (NP The dog )NP (VP barks )VP )S              words="keep"

A model may emit any sequence; what is made of it is always a tree over exactly the sentence's
words, in their order. Which of them a token stands for is a matter of counting, unless words are
kept: then what the tokens say is aligned with the sentence, and a slip stays where it happened.
"""

import dataclasses
import difflib
import re
from collections.abc import Iterable, Sequence

from keras_transformer.errors import InputError
from keras_transformer.parsing.trees import JOINT, TOP, UNARIES, Tree, collapse_unaries, escape

WORDS = ("xx", "tags", "keep")
NO_TAG = "XX"  # stands for a word; as a tag, says that none was predicted

_OPENING = re.compile(r"\(([^\s()]+)", re.ASCII)
_CLOSING = re.compile(r"\)([^\s()]*)", re.ASCII)
_WORD = re.compile(r"[^\s()]+", re.ASCII)


@dataclasses.dataclass
class Repairs:
    """What had to be done to make a tree of a token sequence, by kind."""

    unmatched_closing: int = 0  # brackets that close nothing open: left out
    missing_closing: int = 0  # constituents that another bracket, or the end, had to close
    empty_constituents: int = 0  # brackets around nothing: left out
    repeated_unaries: int = 0  # constituents whose only child has their label: made one
    missing_words: int = 0  # words of the sentence for which there was no token: added
    extra_words: int = 0  # tokens beyond the sentence's words: left out
    other_words: int = 0  # kept words that are not the sentence's: replaced
    strange_tokens: int = 0  # no token of a linearised tree, such as "((": left out
    missing_root: int = 0  # 1 where not everything stood in one constituent: put into a TOP

    @property
    def total(self) -> int:
        return sum(dataclasses.astuple(self))


@dataclasses.dataclass(frozen=True)
class Linearisation:
    """How trees are written as tokens: a property of the data, and of a model trained on them."""

    words: str = "xx"  # each word as XX, as its tag ("tags") or as it is ("keep")
    unaries: str = "keep"  # or "collapse": one bracket S+VP for S over VP; undone in reading

    def __post_init__(self):
        for name, choices in (("words", WORDS), ("unaries", UNARIES)):
            value = getattr(self, name)
            if value not in choices:
                rule = f"--tree_{name} must be one of {', '.join(choices)}"
                raise InputError(f"{rule}. Received: {value!r}")

    def tokens(self, tree: Tree) -> list[str]:
        """Writes a cleaned tree."""
        if self.unaries == "collapse":
            tree = collapse_unaries(tree)
        tokens = []
        stack: list[Tree | str] = [tree]
        while stack:
            node = stack.pop()
            if isinstance(node, str):
                tokens.append(node)
            elif node.word is None:
                tokens.append(f"({node.label}")
                stack.append(f"){node.label}")
                stack.extend(reversed(node.children))
            else:
                choices = {"xx": NO_TAG, "tags": node.label, "keep": escape(node.word)}
                tokens.append(choices[self.words])
        return tokens

    def symbols(self, tree: Tree) -> set[str]:
        """The different tokens of a tree, but for kept words."""
        keep = self.words == "keep"
        return {token for token in self.tokens(tree) if not keep or token[0] in "()"}

    def tree(self, tokens: Iterable[str], words: Sequence[str]) -> tuple[Tree, Repairs]:
        """Reads tokens as a tree over `words`; see `tree_from_tokens`."""
        return tree_from_tokens(tokens, words, self)


def tree_from_tokens(
    tokens: Iterable[str], words: Sequence[str], linearisation: Linearisation | None = None
) -> tuple[Tree, Repairs]:
    """Makes a tree over exactly `words` of any token sequence.

    Of the tokens of a cleaned tree it is that tree. Otherwise: a closing bracket closes the
    innermost open constituent of its label, and what is open within it; without a label, as ")",
    the innermost. The other rules stand at the fields of `Repairs`.

    Args:
        tokens: whatever a model said.
        words: of the sentence, at least one.
        linearisation: what the tokens are; words="tags" makes tags of those that are no brackets,
            otherwise every tag is XX.

    Raises:
        InputError: where there are no words.
    """
    if not words:
        raise InputError("a sentence to parse must hold a word. Received: none")
    tokens, linearisation = list(tokens), linearisation or Linearisation()
    said = [token for token in tokens if _WORD.fullmatch(token)]
    kept = linearisation.words == "keep"
    builder = _Builder(words, shares(said, words) if kept else [1] * len(words), linearisation)
    for token in tokens:
        builder.read(token)
    return builder.finish(), builder.repairs


def shares(said: Sequence[str], words: Sequence[str]) -> list[int]:
    """Aligns the words that a model said with those of the sentence.

    Returns:
        For each word said, how many of the sentence's next words stand in its place: none where it
        is one too many; more where others are missing behind it. Words missing at the end are left.
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

    def __init__(
        self, words: Sequence[str], word_shares: Sequence[int], linearisation: Linearisation
    ):
        self.words, self.linearisation = words, linearisation
        self.shares = iter(word_shares)  # of each word token, and none of further ones
        self.repairs = Repairs()
        self.used = 0  # words that stand in the tree
        # Label and children of each open constituent, outermost first, within one never closed.
        self.open: list[tuple[str, list[Tree]]] = [("", [])]

    def read(self, token: str) -> None:
        if opening := _OPENING.fullmatch(token):
            self.open.append((opening[1], []))
        elif closing := _CLOSING.fullmatch(token):
            self._close(closing[1])
        elif not _WORD.fullmatch(token):
            self.repairs.strange_tokens += 1
        else:
            self._read_word(token, next(self.shares, 0))

    def finish(self) -> Tree:
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

    def _read_word(self, token: str, share: int) -> None:
        words = self.words[self.used : self.used + share]
        self.used += share
        self.repairs.extra_words += share == 0
        self.repairs.missing_words += max(0, share - 1)
        if self.linearisation.words == "keep":
            self.repairs.other_words += share > 0 and token not in words
        tags = [token if self.linearisation.words == "tags" else NO_TAG, *[NO_TAG] * share]
        self.open[-1][1].extend(Tree(tag, (), word) for tag, word in zip(tags, words, strict=False))

    def _close(self, label: str) -> None:
        depth = len(self.open) - 1
        while depth and label not in ("", self.open[depth][0]):
            depth -= 1
        if depth == 0:
            self.repairs.unmatched_closing += 1
            return
        self.repairs.missing_closing += len(self.open) - 1 - depth
        self._close_down_to(depth)

    def _close_down_to(self, depth: int) -> None:
        """Closes constituents until `depth` are open."""
        while len(self.open) > depth:
            label, children = self.open.pop()
            if not children:
                self.repairs.empty_constituents += 1
                continue
            collapsed = self.linearisation.unaries == "collapse"
            chain = filter(None, label.split(JOINT)) if collapsed else [label]  # no part of "(+S"
            for part in reversed(list(chain)):
                if len(children) == 1 and children[0].word is None and children[0].label == part:
                    self.repairs.repeated_unaries += 1
                else:
                    children = [Tree(part, tuple(children))]
            self.open[-1][1].extend(children)
