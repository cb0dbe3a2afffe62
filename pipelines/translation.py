"""Translation data directories as datasets: the stages of `batching` put together."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import tensorflow as tf

from keras_transformer.errors import InputError
from pipelines import batching
from pipelines.records import Metadata, SplitInfo, damaged_files, read_metadata, text_file


def training_batches(
    data_dir: str | os.PathLike, tokens_per_batch: int, seed: int
) -> tf.data.Dataset:
    """Infinite batches of the training split; an iterator over them can be saved and restored.

    Args:
        data_dir: a folder completed by prepare_data.py.
        tokens_per_batch: bounds rows x padded length of a whole batch, on either side.
        seed: decides all orders; equal seeds give equal batches.

    Returns:
        Dataset of (source int32 [rows, S], target int32 [rows, T]), 0-padded, both ending in EOS.

    Raises:
        InputError: if the folder is no data set or a sentence is longer than a batch may be.
    """
    metadata = read_metadata(data_dir)
    info = _split(data_dir, metadata, "train")
    if tokens_per_batch < info.longest:
        raise InputError(
            f"--tokens_per_batch must be at least {info.longest}, the longest training sentence "
            f"in --data_dir={data_dir}. Received: {tokens_per_batch}"
        )
    dataset = batching.epochs(
        _files(data_dir, info), info.pairs, info.longest, tokens_per_batch, seed
    )
    return dataset.apply(batching.prefetch())


def evaluation_batches(
    data_dir: str | os.PathLike, split: str, tokens_per_batch: int
) -> tf.data.Dataset:
    """One pass over a split's usable pairs, each once; elements as in `training_batches`.

    A sentence longer than `tokens_per_batch` gets a batch of its own size: a pass without gradients
    has the memory for it.

    Raises:
        InputError: if the folder is no data set or has no such split.
    """
    metadata = read_metadata(data_dir)
    info = _split(data_dir, metadata, split)
    budget = max(tokens_per_batch, info.longest)
    dataset = batching.one_pass(_files(data_dir, info), info.pairs, max(1, info.longest), budget)
    return dataset.apply(batching.prefetch())


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
        for _, error in damaged_files(data_dir, metadata, read_records=True):
            raise error from None
        raise


def split_text(data_dir: str | os.PathLike, split: str) -> tuple[list[str], list[str]]:
    """The verbatim text of a split, every pair of it: (source sentences, target sentences).

    Raises:
        InputError: if the folder is no data set, has no such split, or keeps no text of it, as of
            the training split.
    """
    _split(data_dir, read_metadata(data_dir), split)
    paths = [text_file(data_dir, split, side) for side in ("source", "target")]
    for path in paths:
        if not path.is_file():
            raise InputError(f"--split must be one whose text is kept. Received: {split}")
    sources, targets = (_lines(path) for path in paths)
    return sources, targets


def _lines(path: Path) -> list[str]:
    return path.read_bytes().decode("utf-8").removesuffix("\n").split("\n")


def _split(data_dir: str | os.PathLike, metadata: Metadata, split: str) -> SplitInfo:
    if split not in metadata.splits:
        known = ", ".join(metadata.splits)
        raise InputError(f"--split must be one of {known} in {data_dir}. Received: {split}")
    return metadata.splits[split]


def _files(data_dir: str | os.PathLike, info: SplitInfo) -> list[str]:
    return [str(Path(data_dir) / name) for name in info.shards]
