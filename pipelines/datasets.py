"""Data directories as tf.data datasets of batches, and the text and trees of their splits."""

import contextlib
import os
from collections.abc import Iterator

import tensorflow as tf

from keras_transformer.errors import require
from keras_transformer.files.paths import to_path
from keras_transformer.language_codes import directions_of
from keras_transformer.parsing.trees import Tree, read_trees
from pipelines.batching import epochs, one_pass, prefetch
from pipelines.damage import damaged_files, require_unchanged
from pipelines.data_files import text_file
from pipelines.metadata import read_metadata
from pipelines.records import Metadata, SplitInfo


def training_batches(
    data_dir: str | os.PathLike, tokens_per_batch: int, seed: int
) -> tf.data.Dataset:
    """Infinite batches of the training split; an iterator over them can be saved and restored.

    Args:
        data_dir: a prepared data directory.
        tokens_per_batch: largest rows x padded length of a batch, on either side.
        seed: determines all orders; equal seeds give equal batches.

    Returns:
        Dataset of (source int32 [rows, S], target int32 [rows, T]), padded with 0; every row ends
        in EOS before its padding.

    Raises:
        InputError: if the folder is not a data set, or a sentence does not fit into a batch.
    """
    info = _split(data_dir, read_metadata(data_dir), "train")
    require(
        tokens_per_batch >= info.longest,
        "tokens_per_batch",
        f"must be at least {info.longest}, the longest training sentence in {data_dir}",
        tokens_per_batch,
    )
    files = _files(data_dir, info)
    dataset = epochs(files, info.pairs, info.longest, tokens_per_batch, seed)
    return dataset.apply(prefetch())


def evaluation_batches(
    data_dir: str | os.PathLike, split: str, tokens_per_batch: int
) -> tf.data.Dataset:
    """Batches of one pass over a split, with each usable pair once; elements as in training.

    A sentence longer than `tokens_per_batch` gets a batch of its own size, for which a pass without
    gradients has enough memory.

    Args:
        data_dir: a prepared data directory.
        split: one of its splits, e.g. "validation".
        tokens_per_batch: largest rows x padded length of a batch, on either side.

    Returns:
        Dataset of (source int32 [rows, S], target int32 [rows, T]), padded with 0; every row ends
        in EOS before its padding.

    Raises:
        InputError: if the folder is not a data set or has no such split.
    """
    info = _split(data_dir, read_metadata(data_dir), split)
    largest_batch = max(tokens_per_batch, info.longest)
    longest = max(1, info.longest)
    dataset = one_pass(_files(data_dir, info), info.pairs, longest, largest_batch)
    return dataset.apply(prefetch())


@contextlib.contextmanager
def damage_named(data_dir: str | os.PathLike) -> Iterator[None]:
    """Turns TensorFlow's error at a damaged or missing shard of `data_dir` into one that names it.

    Raises:
        InputError: naming the shard, and the byte where its damage begins.
    """
    try:
        yield
    except (tf.errors.DataLossError, tf.errors.NotFoundError):
        metadata = read_metadata(data_dir)  # names a missing file without reading the others
        for damage in damaged_files(data_dir, metadata, read_records=True):
            raise damage.error from None
        raise


def split_text(data_dir: str | os.PathLike, split: str) -> tuple[list[str], list[str]]:
    """The unchanged text of a split, with all of its pairs: (source sentences, target sentences).

    Raises:
        InputError: if the folder is not a data set, has no such split, or has no text of it, as for
            the training split; and if the text is missing or has been changed.
    """
    info = _split(data_dir, read_metadata(data_dir), split)
    require(len(info.texts) > 0, "split", "must be one whose text is kept", split)
    return _lines(data_dir, split, "source", info), _lines(data_dir, split, "target", info)


def split_directions(data_dir: str | os.PathLike, split: str) -> list[str] | None:
    """The direction of each pair of `split_text`, as "en-de"; None if the data set has but one.

    Raises:
        InputError: as `split_text` does.
    """
    metadata = read_metadata(data_dir)
    if not directions_of(metadata.task_options):
        return None
    return _lines(data_dir, split, "directions", _split(data_dir, metadata, split))


def _lines(data_dir: str | os.PathLike, split: str, side: str, info: SplitInfo) -> list[str]:
    """The lines of a text file: one for each pair of the split, usable or not."""
    path = text_file(data_dir, split, side)
    require_unchanged(path, info)
    return path.read_bytes().decode("utf-8").split("\n")[:-1]


def gold_trees(data_dir: str | os.PathLike, split: str) -> list[Tree]:
    """The cleaned trees of a split, with all of its sentences; their words are its source text.

    Raises:
        InputError: if the folder is not a parsing data set, or has no trees of that split; and if
            the trees are missing or have been changed.
    """
    metadata = read_metadata(data_dir)
    rule = "must be prepared from a treebank"
    require(metadata.task == "parsing", "data_dir", rule, f"{data_dir}, for {metadata.task}")
    info = _split(data_dir, metadata, split)
    path = text_file(data_dir, split, "trees")
    require(path.name in info.texts, "split", "must be one whose trees are kept", split)
    require_unchanged(path, info)
    return list(read_trees(str(path)))


def _split(data_dir: str | os.PathLike, metadata: Metadata, split: str) -> SplitInfo:
    rule = f"must be one of {', '.join(metadata.splits)} in {data_dir}"
    require(split in metadata.splits, "split", rule, split)
    return metadata.splits[split]


def _files(data_dir: str | os.PathLike, info: SplitInfo) -> list[str]:
    return [str(to_path(data_dir) / name) for name in info.shards]
