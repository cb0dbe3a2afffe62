"""Writes pairs into shards in random order, in two passes that can be interrupted at any time.

The first pass writes pairs into blocks in the order of the corpus. Within a block they are grouped
by shard, and the shard of each pair is drawn at random. In the second pass each shard gathers its
groups from all blocks, which fit in memory, and is written in random order. So every order of the
split is equally likely, and any sequence of records is a fair sample of a corpus in any order.

All random numbers depend only on the seed and the number of the block or shard, so the shards do
not depend on the order of the work, the number of workers or interruptions. A file that exists is
complete, and is not written again.
"""

import dataclasses
import errno
import itertools
import random
import struct
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from keras_transformer.errors import InputError, reason
from keras_transformer.fields import Count
from keras_transformer.files import read_json, replacing, write_file, write_json
from pipelines.records import FRAME_BYTES, WORK_FOLDER, SplitInfo

BLOCK_PAIRS = 32_768
# Shards are permuted in memory, one at a time.
_PAIRS_PER_SHARD = 100_000

# What is kept of a block beside its records: bounds are first bytes of groups, and the end.
_BLOCK = {"info": SplitInfo, "bounds": list[Count]}

EncodedPair = tuple[list[int], list[int]]  # source and target ids, each ending in EOS
Span = tuple[int, int]  # first byte, and the byte after the last


class Sharding:
    """The shards of one split, and the blocks that they are made from.

    Args:
        data_dir: the folder to write them to.
        split: first part of the shards' names.
        expected: approximate number of pairs, which determines the number of shards.
        seed: determines the order.
    """

    def __init__(self, data_dir: Path, split: str, expected: int, seed: int):
        self._split, self._seed = split, f"{seed} {split}"
        count = max(1, round(expected / _PAIRS_PER_SHARD))
        names = [f"{split}-{number:05d}-of-{count:05d}.tfrecord" for number in range(count)]
        self._shards = [data_dir / name for name in names]
        self._work = data_dir / WORK_FOLDER
        self._finished = self._work / f"{split}.json"
        self._work.mkdir(exist_ok=True)

    def has_block(self, number: int) -> bool:
        """Whether a block was written, and has not been damaged since."""
        block, data = read_or_none(_BLOCK, self._index(number)), self._data(number)
        whole = block is not None and len(block["bounds"]) == len(self._shards) + 1
        return whole and data.exists() and data.stat().st_size == block["bounds"][-1]

    def write_block(
        self, number: int, pairs: Iterable[EncodedPair], dropped: dict[str, int]
    ) -> None:
        """Writes a block in groups; `dropped` counts the pairs that were left out of it."""
        lengths, records = [], []
        for source, target in pairs:
            lengths.append((len(source), len(target)))
            records.append(example(source, target))
        shards = self._generator("block", number).integers(len(self._shards), size=len(records))
        self._write_data(number, (records[index] for index in np.argsort(shards, kind="stable")))
        sizes = [len(record) + FRAME_BYTES for record in records]
        groups = np.bincount(shards, sizes, len(self._shards)).astype(int)
        info = dataclasses.asdict(SplitInfo.of(lengths, dropped))
        index = {"info": info, "bounds": [0, *np.cumsum(groups).tolist()]}
        write_json(self._index(number), index)

    def _write_data(self, number: int, records: Iterable[bytes]) -> None:
        import tensorflow as tf

        try:
            # Several workers may write one block at the same time.
            with (
                replacing(self._data(number)) as file,
                tf.io.TFRecordWriter(file.name) as writer,
            ):
                for record in records:
                    writer.write(record)
        except tf.errors.ResourceExhaustedError as error:
            raise OSError(errno.ENOSPC, reason(error)) from None

    def groups(self, block: int) -> list[Span]:
        """Where the group of each shard is in a block."""
        return list(itertools.pairwise(read_json(self._index(block), _BLOCK)["bounds"]))

    def finish(self) -> SplitInfo:
        """Writes the shards that do not exist from the blocks, then deletes the blocks."""
        blocks = sum(1 for _ in self._work.glob(f"{self._split}-block-*.json"))
        written = [read_json(self._index(number), _BLOCK) for number in range(blocks)]
        bounds = [block["bounds"] for block in written]
        numbers = range(len(self._shards))
        for number in tqdm(numbers, "writing", unit=" shards", disable=len(numbers) < 2):
            self.write_shard(number, [ends[number : number + 2] for ends in bounds])
        info = SplitInfo.total([SplitInfo(**block["info"]) for block in written], self._shards)
        write_json(self._finished, dataclasses.asdict(info))
        self._remove_blocks()
        return info

    def finished(self) -> SplitInfo | None:
        """What `finish` returned, if it was completed and the shards still exist."""
        info = read_or_none(SplitInfo, self._finished)
        if info is None or not all(path.exists() for path in self._shards):
            return None
        self._remove_blocks()
        return info

    def write_shard(self, number: int, groups: Sequence[Span]) -> None:
        """Permutes the records of a shard's group in each block; a shard that exists is kept."""
        if self._shards[number].exists():
            return
        parts = []
        for block, (begin, end) in enumerate(groups):
            with self._data(block).open("rb") as file:
                file.seek(begin)
                parts.append(file.read(end - begin))
        content = b"".join(parts)
        records = frames(content)
        order = self._generator("shard", number).permutation(len(records))
        shuffled = b"".join([content[slice(*records[index])] for index in order])
        write_file(self._shards[number], shuffled)

    def _generator(self, *place) -> np.random.Generator:
        return np.random.default_rng(random.Random(f"{self._seed} {place}").getrandbits(64))

    def _data(self, block: int) -> Path:
        return self._work / f"{self._split}-block-{block:05d}.tfrecord"

    def _index(self, block: int) -> Path:
        return self._work / f"{self._split}-block-{block:05d}.json"

    def _remove_blocks(self) -> None:
        for path in self._work.glob(f"{self._split}-block-*"):
            path.unlink()


def read_or_none(kind: Any, path: Path) -> Any:
    """What a file of this work holds, or None where it is missing or damaged: it is made again."""
    try:
        return read_json(path, kind)
    except InputError:
        return None


def example(source: Sequence[int], target: Sequence[int]) -> bytes:
    """Serializes a tf.train.Example with int64 lists "source" and "target", neither empty.

    The bytes are the same as protobuf's, which takes several times as long.
    """
    return _field(b"\x0a", _entry(b"source", source) + _entry(b"target", target))


def _entry(name: bytes, ids: Sequence[int]) -> bytes:
    """An entry of the map Features.feature: a key, and a Feature with an Int64List."""
    values = _field(b"\x0a", b"".join([_varint(value) for value in ids]))
    return _field(b"\x0a", _field(b"\x0a", name) + _field(b"\x12", _field(b"\x1a", values)))


def _field(tag: bytes, content: bytes) -> bytes:
    return tag + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    """Encodes a number in groups of 7 bits, lowest first; the top bit marks all but the last."""
    return _VARINTS[value] if value < len(_VARINTS) else _make_varint(value)


def _make_varint(value: int) -> bytes:
    groups = []
    while value > 127:
        groups.append(value & 127 | 128)
        value >>= 7
    return bytes([*groups, value])


_VARINTS = [_make_varint(value) for value in range(1 << 16)]


def frames(content: bytes) -> list[Span]:
    """Where the records of an undamaged TFRecord file begin and end."""
    spans, begin = [], 0
    while begin < len(content):
        end = begin + FRAME_BYTES + struct.unpack_from("<Q", content, begin)[0]
        spans.append((begin, end))
        begin = end
    return spans
