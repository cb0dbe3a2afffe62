"""Treebanks as sources of pairs: sentences, and their trees as tokens (section 6.3)."""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from keras_transformer.kit.parsing.linearisation import WORDS, Linearisation
from keras_transformer.kit.parsing.trees import UNARIES, Tree, clean, read_trees
from keras_transformer.support.errors import InputError, require
from keras_transformer.support.fields import one_of, option
from pipelines.sources.source import SPLITS, Pair, Source, Survey, Visitor
from pipelines.sources.text_files import Paths, TextDigest, check_files, matching_files


class TreebankSource(Source):
    """Trees from local files in Penn Treebank brackets, plain, .gz or .zst, cleaned and linearised.

    A pair's source is the words separated by spaces, with brackets written as -LRB- and -RRB-; its
    target is the tree's tokens, each with its own id in the vocabulary. Trees are streamed from the
    files each time, so a treebank may be larger than memory. Errors name the files of a split as
    "train_trees" or "test_trees".

    Args:
        files: split -> files. "train" is required.
        linearisation: how trees become tokens.

    Raises:
        InputError: for a missing or empty list or file.
    """

    languages = ("words", "brackets")
    task = "parsing"
    kept_texts = ("source", "target", "trees")

    def __init__(self, files: dict[str, list[str]], linearisation: Linearisation):
        self._files = files
        self._linearisation = linearisation
        for split, paths in files.items():
            check_files(f"{split}_trees", paths)

    def files(self) -> list[str]:
        return [path for paths in self._files.values() for path in paths]

    def survey(self, visit: Visitor | None = None) -> Survey:
        """Reads every file once.

        Raises:
            InputError: naming file and line, if a tree is invalid.
        """
        counts = {}
        part_sizes = []
        symbols: set[str] = set()
        settings: dict[str, Any] = {"dataset": "treebank"}
        for name, value in self.task_options().items():
            settings[f"tree_{name}"] = value
        for split, paths in self._files.items():
            is_train = split == "train"
            counts[split] = 0
            settings[f"{split}_trees"] = []
            for path in paths:
                digest = TextDigest()
                size = 0
                for tree in self._trees(path):
                    size += 1
                    digest.add([str(tree)])
                    if is_train:
                        symbols.update(self._linearisation.symbols(tree))
                    if is_train and visit is not None:
                        visit(self._pair(tree), self.languages)
                counts[split] += size
                settings[f"{split}_trees"].append(digest.value())
                if is_train:
                    part_sizes.append(size)
        return Survey(counts, part_sizes, settings, sorted(symbols))

    def pairs(self, split: str) -> Iterator[Pair]:
        for path in self._files[split]:
            for tree in self._trees(path):
                yield self._pair(tree)

    def rows(self, split: str) -> Iterator[Sequence[str]]:
        """Yields the pairs with the cleaned trees, against which parses are scored."""
        for path in self._files[split]:
            for tree in self._trees(path):
                yield (*self._pair(tree), str(tree))

    def parts(self, split: str) -> list[Source]:
        files = self._files[split]
        return [TreebankSource({split: [path]}, self._linearisation) for path in files]

    def task_options(self) -> dict[str, Any]:
        return dataclasses.asdict(self._linearisation)

    def _pair(self, tree: Tree) -> Pair:
        return " ".join(tree.words()), " ".join(self._linearisation.tokens(tree))

    def _trees(self, path: str) -> Iterator[Tree]:
        return map(clean, read_trees(path))


@dataclasses.dataclass(frozen=True, kw_only=True)
class TreebankOptions:
    """The files of a treebank, and how its trees become tokens.

    Files are one path or several, possibly with patterns such as "*.mrg".
    """

    train_trees: Paths = option((), "Files of Penn Treebank trees to train on: paths or patterns.")
    validation_trees: Paths = option((), "Files of trees to measure progress on.")
    test_trees: Paths = option((), "Files of trees to score the trained model on.")
    tree_words: Annotated[str, one_of(*WORDS)] = option(
        Linearisation.words,
        "How target trees represent words: xx (as XX), tags (by their tags), or keep.",
    )
    tree_unaries: Annotated[str, one_of(*UNARIES)] = option(
        Linearisation.unaries,
        "Keep chains of unary brackets, (S (VP, or collapse them into one, (S+VP.",
    )

    def source(self) -> TreebankSource:
        files = {}
        for split in SPLITS:
            argument = f"{split}_trees"
            paths = matching_files(argument, getattr(self, argument))
            if paths:
                files[split] = paths
        require("train" in files, "train_trees", "must be given with dataset=treebank", "none")
        try:
            linearisation = Linearisation(self.tree_words, self.tree_unaries)
        except InputError as error:
            raise error.replaced(argument=f"tree_{error.argument}") from None
        return TreebankSource(files, linearisation)
