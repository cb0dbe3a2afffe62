"""Writes pairs into shards in random order, in two passes.

The first pass writes pairs into blocks in corpus order. Within a block they are grouped by shard,
and the shard of each pair is drawn at random. In the second pass each shard gathers its groups from
all blocks, which fit in memory, and is written in random order. So every order of the split is
equally likely, and any sequence of records is a fair sample of a corpus in any order.

All random numbers depend only on the seed and the number of the block or shard, so the shards do
not depend on the order of the work or the number of workers. A file that exists is complete.

Text is encoded in threads of one process: one that imports TensorFlow holds 0.6 GB, and
SentencePiece releases Python's global lock. Shards are equal byte for byte for any number of
threads.
"""

import dataclasses
import errno
import itertools
import os
import random
import struct
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from keras_transformer.support.fields import Count
from keras_transformer.support.files.json_files import read_json, write_json
from keras_transformer.support.files.replacing import replacing, write_file
from keras_transformer.support.progress import progress_bar
from pipelines.prepare.metadata import SplitInfo

BLOCK_PAIRS = 32_768
# Shards are permuted in memory, one at a time.
_PAIRS_PER_SHARD = 100_000
# Bytes in a TFRecord besides its content: the length, and a checksum of each.
_FRAME_BYTES = 16

EncodedPair = tuple[list[int], list[int]]  # source and target ids, each ending in EOS


class Span(NamedTuple):
    """A part of a file."""

    begin: int  # its first byte
    end: int  # the byte after its last one


@dataclasses.dataclass(frozen=True)
class _BlockIndex:
    """The index of a block, besides its records."""

    info: SplitInfo
    bounds: list[Count]  # first bytes of the groups, and the end of the file

    def groups(self) -> list[Span]:
        """Returns the position of each shard's group."""
        return [Span(begin, end) for begin, end in itertools.pairwise(self.bounds)]


class Sharding:
    """The shards of one split, and the blocks that they are made from.

    Args:
        folder: the folder to write them to, which is empty at first.
        split: prefix of the files' names.
        expected: approximate number of pairs, which determines the number of shards.
        seed: determines the order.
    """

    def __init__(self, folder: Path, split: str, expected: int, seed: int):
        self._folder = folder
        self._split = split
        self._seed = f"{seed} {split}"
        count = max(1, round(expected / _PAIRS_PER_SHARD))
        names = [f"{split}-{number:05d}-of-{count:05d}.tfrecord" for number in range(count)]
        self._shards = [folder / name for name in names]

    def write_block(
        self, number: int, pairs: Iterable[EncodedPair], dropped: dict[str, int]
    ) -> None:
        """Writes a block, grouped by shard.

        Args:
            number: the block's number in the split, from 0.
            pairs: encoded pairs, in text order.
            dropped: reason -> number of pairs missing from `pairs`; read after all `pairs` were
                consumed.
        """
        lengths = []
        records = []
        for source, target in pairs:
            lengths.append((len(source), len(target)))
            records.append(serialized_example(source, target))
        shard_count = len(self._shards)
        shards = self._generator("block", number).integers(shard_count, size=len(records))
        order = np.argsort(shards, kind="stable")
        self._write_data(number, [records[index] for index in order])
        record_bytes = [len(record) + _FRAME_BYTES for record in records]
        group_bytes = np.bincount(shards, record_bytes, shard_count).astype(int)
        index = _BlockIndex(
            info=SplitInfo.from_lengths(lengths, dropped),
            bounds=[0, *np.cumsum(group_bytes).tolist()],
        )
        write_json(self._index_file(number), dataclasses.asdict(index))

    def _write_data(self, number: int, records: Iterable[bytes]) -> None:
        import tensorflow as tf

        try:
            # Several workers may write the same block at the same time.
            with (
                replacing(self._data_file(number)) as file,
                tf.io.TFRecordWriter(file.name) as writer,
            ):
                for record in records:
                    writer.write(record)
        except (tf.errors.ResourceExhaustedError, tf.errors.OutOfRangeError) as error:
            is_full = isinstance(error, tf.errors.ResourceExhaustedError)
            code = errno.ENOSPC if is_full else errno.EFBIG
            raise OSError(code, os.strerror(code), str(self._data_file(number))) from None

    def groups(self, block: int) -> list[Span]:
        """Returns the position of each shard's group in a block."""
        return self._read_index(block).groups()

    def finish(self, texts: Sequence[Path] = ()) -> SplitInfo:
        """Writes the shards that workers have not written yet, and deletes the blocks.

        Args:
            texts: the files with the split's text.
        """
        block_count = sum(1 for _ in self._folder.glob(f"{self._split}-block-*.json"))
        indices = [self._read_index(block) for block in range(block_count)]
        groups_of_blocks = [index.groups() for index in indices]
        numbers = range(len(self._shards))
        for number in progress_bar(
            numbers, desc="writing", unit=" shards", disable=len(numbers) < 2
        ):
            if not self._shards[number].exists():
                self.write_shard(number, [groups[number] for groups in groups_of_blocks])
        for path in self._folder.glob(f"{self._split}-block-*"):
            path.unlink()
        return SplitInfo.total([index.info for index in indices], self._shards, texts)

    def write_shard(self, number: int, groups: Sequence[Span]) -> None:
        """Writes a shard's records in random order.

        Args:
            number: the shard's number, from 0.
            groups: the positions of its records in each block.
        """
        parts = []
        for block, group in enumerate(groups):
            with self._data_file(block).open("rb") as file:
                file.seek(group.begin)
                parts.append(file.read(group.end - group.begin))
        content = b"".join(parts)
        records = [content[span.begin : span.end] for span in frames(content)]
        order = self._generator("shard", number).permutation(len(records))
        write_file(self._shards[number], b"".join([records[index] for index in order]))

    def _generator(self, *purpose) -> np.random.Generator:
        """Returns a random generator unique to a block or shard, in any order of the work."""
        return np.random.default_rng(random.Random(f"{self._seed} {purpose}").getrandbits(64))

    def _data_file(self, block: int) -> Path:
        return self._folder / f"{self._split}-block-{block:05d}.tfrecord"

    def _index_file(self, block: int) -> Path:
        return self._folder / f"{self._split}-block-{block:05d}.json"

    def _read_index(self, block: int) -> _BlockIndex:
        return read_json(self._index_file(block), _BlockIndex)


def serialized_example(source: Sequence[int], target: Sequence[int]) -> bytes:
    """Serializes a tf.train.Example with the int64 lists "source" and "target".

    Deterministic: protobuf may write map entries in any order unless told to sort them, and equal
    pairs must give equal bytes.
    """
    import tensorflow as tf

    message = tf.train.Example()
    message.features.feature["source"].int64_list.value.extend(source)
    message.features.feature["target"].int64_list.value.extend(target)
    return message.SerializeToString(deterministic=True)


def frames(content: bytes) -> list[Span]:
    """Returns where the records in an undamaged TFRecord file begin and end.

    A record is its length in 8 bytes, a checksum of the length, the content, and its checksum.
    """
    spans = []
    begin = 0
    while begin < len(content):
        (length,) = struct.unpack_from("<Q", content, begin)
        end = begin + length + _FRAME_BYTES
        spans.append(Span(begin, end))
        begin = end
    return spans
