"""Treebanks as sources of pairs: sentences, and their trees as tokens (section 6.3)."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from keras_transformer.files.replacing import replacing
from keras_transformer.parsing.linearisation import Linearisation
from keras_transformer.parsing.trees import Tree, clean, read_trees
from pipelines.data_files import text_file
from pipelines.sources import Pair, Source
from pipelines.text_files import check_files, content_digests


class TreebankSource(Source):
    """Trees of local files in Penn Treebank brackets, plain, .gz or .zst, cleaned and linearised.

    The source of a pair has the words separated by spaces, with brackets written as -LRB- and
    -RRB-; its target has the tokens of the tree, each of which gets its own id in the vocabulary.
    Trees are streamed from the files each time, so a treebank may be larger than memory. Errors
    name the files of a split as "train_trees" or "test_trees".

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
        self._symbols: list[str] = []
        for split, paths in files.items():
            check_files(f"{split}_trees", paths)

    def files(self) -> list[str]:
        return [path for paths in self._files.values() for path in paths]

    def settings(self) -> dict[str, Any]:
        settings: dict[str, Any] = {"dataset": "treebank"}
        for name, value in self.task_options().items():
            settings[f"tree_{name}"] = value
        for split, paths in self._files.items():
            settings[f"{split}_trees"] = content_digests(paths)
        return settings

    def counts(self) -> dict[str, int]:
        """Reads every file once, which also finds everything that is wrong with them.

        Raises:
            InputError: naming file and line, where a tree is invalid.
        """
        counts = dict.fromkeys(self._files, 0)
        symbols: set[str] = set()
        for split in self._files:
            for tree in self._trees(split):
                counts[split] += 1
                if split == "train":
                    symbols.update(self._linearisation.symbols(tree))
        self._symbols = sorted(symbols)
        return counts

    def pairs(self, split: str) -> Iterator[Pair]:
        for tree in self._trees(split):
            yield " ".join(tree.words()), " ".join(self._linearisation.tokens(tree))

    def parts(self, split: str) -> list[Source]:
        files = self._files[split]
        return [TreebankSource({split: [path]}, self._linearisation) for path in files]

    def symbols(self) -> list[str]:
        """Every bracket and tag of the training trees."""
        return self._symbols

    def task_options(self) -> dict[str, Any]:
        return dataclasses.asdict(self._linearisation)

    def keep(self, data_dir: Path, split: str) -> None:
        """Writes the cleaned trees, one per line, which parses are scored against."""
        with replacing(text_file(data_dir, split, "trees")) as file:
            for tree in self._trees(split):
                file.write(f"{tree}\n".encode())

    def _trees(self, split: str) -> Iterator[Tree]:
        for path in self._files[split]:
            yield from map(clean, read_trees(path))
