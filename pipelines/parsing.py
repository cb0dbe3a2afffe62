"""Parsing data directories: the gold trees of their splits."""

import os

from keras_transformer.errors import InputError
from keras_transformer.parsing.trees import Tree, read_trees
from pipelines.records import read_metadata, text_file


def gold_trees(data_dir: str | os.PathLike, split: str) -> list[Tree]:
    """The cleaned trees of a split, every one of it; their words are the split's sentences.

    Raises:
        InputError: if the folder is no parsing data set, or keeps no trees of that split.
    """
    task = read_metadata(data_dir).task
    if task != "parsing":
        rule = "--data_dir must be prepared with --dataset=treebank"
        raise InputError(f"{rule}. Received: {data_dir}, for {task}")
    path = text_file(data_dir, split, "trees")
    if not path.is_file():
        raise InputError(f"--split must be one whose trees are kept. Received: {split}")
    return list(read_trees(str(path)))
