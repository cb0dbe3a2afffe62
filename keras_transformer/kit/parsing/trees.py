"""Constituency trees: reading and writing Penn Treebank brackets, and the usual cleaning.

Nothing here is recursive, as the tree of a 400-word sentence can be deeper than Python's stack.
"""

import itertools
import re
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from keras_transformer.support.errors import InputError, reason
from keras_transformer.support.files.reading import opened, require_text, text_lines

TOP = "TOP"  # the label of a root that has none in the treebank
TOP_LABELS = ("", "TOP", "ROOT", "S1")  # of wrappers around sentences in various treebanks
TRACE_TAG = "-NONE-"
JOINT = "+"  # joins the labels of a collapsed unary chain, S+VP; no Penn label contains it
UNARIES = ("keep", "collapse")

# Words end at ASCII white space. A no-break or thin space is part of a word.
_TOKEN = re.compile(r"[()]|[^\s()]+", re.ASCII)
# A label without function tags and indices; -LRB-, -RRB- and -NONE- are whole labels.
_BARE_LABEL = re.compile(r"-[^-]+-|[^-=|]+|.*")
T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """A constituent with its children, or a preterminal: a part-of-speech tag over a word."""

    label: str  # of a constituent, or the tag of a preterminal
    children: tuple["Tree", ...] = ()
    word: str | None = None  # of a preterminal only

    def walk(self) -> Iterator["Tree"]:
        """Yields this node and all nodes below it, parents before children, left to right."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children))

    def fold(self, combine: Callable[["Tree", list[T]], T]) -> T:
        """Computes combine(node, results of its children) for each node; returns the root's result.

        Children are visited before their parents, left to right.
        """
        order = []
        stack = [self]
        while stack:
            node = stack.pop()
            order.append(node)
            stack.extend(node.children)
        results: list[T] = []
        for node in reversed(order):
            first = len(results) - len(node.children)
            children = results[first:]
            del results[first:]
            results.append(combine(node, children))
        return results[0]

    def leaves(self) -> list[tuple[str, str]]:
        """Returns the (tag, word) pairs in order."""
        return [(node.label, node.word) for node in self.walk() if node.word is not None]

    def words(self) -> list[str]:
        """Returns the words, in order."""
        return [word for _, word in self.leaves()]

    def _shape(self) -> list[tuple[str, str | None, int]]:
        return [(node.label, node.word, len(node.children)) for node in self.walk()]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tree) and self._shape() == other._shape()

    def __hash__(self) -> int:
        return hash(tuple(self._shape()))

    def __str__(self) -> str:
        """Returns the brackets on one line; brackets in words become -LRB- and -RRB-."""

        def brackets(node: Tree, children: list[str]) -> str:
            inside = " ".join(children) if node.word is None else escape(node.word)
            return f"({node.label} {inside})"

        return self.fold(brackets)

    def indented(self, marked: Collection[int] = ()) -> str:
        """Returns one line per node, indented below its parent; a word is on the line of its tag.

        Args:
            marked: the numbers of the nodes that get a * after their label, in the order of `fold`:
                `wrong` or `missed` of a `parseval.SentenceScore`.
        """
        numbers = itertools.count()

        def lines(node: Tree, children: list[list[str]]) -> list[str]:
            star = "*" if next(numbers) in marked else ""
            first = f"{node.label or TOP}{star} {node.word or ''}".rstrip()
            return [first, *(f"  {line}" for child in children for line in child)]

        return "\n".join(self.fold(lines))


def escape(word: str) -> str:
    """Writes brackets in a word as treebanks do, to distinguish them from those of the tree."""
    return word.replace("(", "-LRB-").replace(")", "-RRB-")


def read_trees(path: str) -> Iterator[Tree]:
    """Yields the trees of a file (plain, .gz or .zst) in Penn Treebank brackets, unchanged.

    A tree may span several lines, and a line may contain several trees. The top label may be empty.

    Raises:
        InputError: if the file cannot be read; or, naming file and line, for unmatched brackets,
            brackets that contain neither one word nor brackets, and trees without words.
    """
    try:
        with opened(path) as file:
            yield from parse_trees(text_lines(file, str(path)), str(path))
    except (OSError, EOFError, zlib.error) as error:
        rule = "must be a readable UTF-8 file of trees, plain, .gz or .zst"
        raise InputError(None, rule, reason(error), path) from None


class _OpenBracket(NamedTuple):
    """A bracket that has not been closed yet."""

    place: str  # file and line
    texts: list[str]  # its label and, for a preterminal, its word
    children: list[Tree]


def parse_trees(lines: Iterable[str], name: str) -> Iterator[Tree]:
    """Yields the trees in lines of text, as `read_trees` does.

    Args:
        lines: the text.
        name: the file's name, for error messages.

    Raises:
        InputError: naming file and line; see `read_trees`.
    """
    stack: list[_OpenBracket] = []
    for number, line in enumerate(lines, start=1):
        require_text(line, name, number)
        for token in _TOKEN.findall(line):
            if token == "(":
                stack.append(_OpenBracket(f"{name}:{number}", [], []))
            elif not stack:
                raise InputError("tree", "must begin with '('", repr(token), f"{name}:{number}")
            elif token != ")":
                stack[-1].texts.append(token)
            else:
                bracket = stack.pop()
                node = _closed(bracket, is_tree=not stack)
                if stack:
                    stack[-1].children.append(node)
                else:
                    yield node
    if stack:
        received = f"{len(stack)} open at the file's end"
        raise InputError("brackets", "must all be closed", received, stack[0].place)


def _closed(bracket: _OpenBracket, is_tree: bool) -> Tree:
    """Makes a node from a closed bracket; `is_tree` tells whether it is a whole tree."""
    label, *words = bracket.texts or [""]
    holds_a_word = len(words) == 1 and not bracket.children
    holds_brackets = len(words) == 0 and len(bracket.children) > 0
    has_label = label != "" or is_tree
    if not has_label or not (holds_a_word or holds_brackets):
        parts = [f"({label}", *words]
        if bracket.children:
            parts.append("(...)")
        received = " ".join(parts).strip() + ")"
        rule = "must hold a label and either one word or brackets"
        raise InputError("bracket", rule, repr(received), bracket.place)
    node = Tree(label, tuple(bracket.children), words[0] if words else None)
    if is_tree and all(tag == TRACE_TAG for tag, _ in node.leaves()):
        raise InputError("tree", "must hold a word", repr(str(node)[:60]), bracket.place)
    return node


def clean(tree: Tree) -> Tree:
    """Returns the tree in the form on which parsers are trained and scored.

    Traces are removed, as are constituents that contain nothing else. Labels lose function tags and
    indices (NP-SBJ-1 becomes NP, ADVP|PRT becomes ADVP). A constituent is merged with its only
    child if both have the same label. A wrapper around one constituent (an empty label, TOP, ROOT
    or S1) is removed. A wrapper around anything else is named TOP, so that the root is always a
    constituent. The tree must contain a word, as all trees from `read_trees` do.
    """
    cleaned = tree.fold(_clean_node)
    while cleaned.label in TOP_LABELS and len(cleaned.children) == 1:
        cleaned = cleaned.children[0]
    if cleaned.label in TOP_LABELS or cleaned.word is not None:
        return Tree(TOP, cleaned.children or (cleaned,))
    return cleaned


def _clean_node(node: Tree, children: list[Tree | None]) -> Tree | None:
    if node.word is not None:
        return None if node.label == TRACE_TAG else Tree(bare_label(node.label), (), node.word)
    kept = tuple(child for child in children if child is not None)
    label = bare_label(node.label)
    if len(kept) == 1 and kept[0].word is None and kept[0].label == label:
        return kept[0]
    return Tree(label, kept) if kept else None


def bare_label(label: str) -> str:
    """Strips function tags, indices and second choices: NP-SBJ=2 becomes NP, -LRB- stays."""
    return _BARE_LABEL.match(label)[0]


def collapse_unaries(tree: Tree) -> Tree:
    """Merges each unary chain into one constituent: (S (VP ...)) becomes (S+VP ...).

    The labels are sufficient to undo this; see `linearisation.Linearisation`.
    """

    def collapse(node: Tree, children: list[Tree]) -> Tree:
        if len(children) == 1 and children[0].word is None:
            return Tree(node.label + JOINT + children[0].label, children[0].children)
        return Tree(node.label, tuple(children), node.word)

    return tree.fold(collapse)
