"""Pairs into shards in random order, in two passes that may be interrupted anywhere.

First the pairs are written down in blocks, as they come, each block's in groups: one for each
shard, which a pair is drawn for by chance. Then each shard gathers its groups from all blocks,
which fit in memory, and is written in random order. So every order of the split is equally likely,
and any run of records is a fair sample of it, however the corpus was sorted.

All chance comes from the seed and the place, so the shards are the same whatever came first, and
how often it had to. What is there under its name is whole, and is not made again.
"""

import dataclasses
import errno
import json
import os
import random
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from tqdm import tqdm

from keras_transformer.errors import reason
from pipelines.records import WORK_FOLDER, SplitInfo, write_whole
from pipelines.tfrecords import FRAME_BYTES, example, frames

BLOCK_PAIRS = 32_768
# Shards are permuted in memory, one at a time.
_PAIRS_PER_SHARD = 100_000

EncodedPair = tuple[list[int], list[int]]  # source and target ids, each ending in EOS


class Sharding:
    """One split on its way into shards.

    Args:
        data_dir: where to.
        split: first part of the shards' names.
        expected: about how many pairs there are; decides the number of shards.
        seed: decides the order.
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
        return self._index(number).exists()

    def write_block(
        self, number: int, pairs: Iterable[EncodedPair], dropped: dict[str, int]
    ) -> None:
        """Writes a block down in groups; `dropped` is what of its text became no pair."""
        lengths, records = [], []
        for source, target in pairs:
            lengths.append((len(source), len(target)))
            records.append(example(source, target))
        shards = self._chance("block", number).integers(len(self._shards), size=len(records))
        self._write_data(number, (records[index] for index in np.argsort(shards, kind="stable")))
        sizes = [len(record) + FRAME_BYTES for record in records]
        groups = np.bincount(shards, sizes, len(self._shards)).astype(int)
        index = {
            "info": dataclasses.asdict(SplitInfo.of(lengths, dropped)),
            "bounds": [0, *np.cumsum(groups).tolist()],  # of the groups, in bytes
        }
        write_whole(self._index(number), json.dumps(index).encode())

    def _write_data(self, number: int, records: Iterable[bytes]) -> None:
        import tensorflow as tf

        data = self._data(number)
        try:
            with tf.io.TFRecordWriter(str(data)) as writer:
                for record in records:
                    writer.write(record)
        except tf.errors.ResourceExhaustedError as error:
            raise OSError(errno.ENOSPC, reason(error)) from None
        with open(data, "rb") as file:
            os.fsync(file.fileno())

    def finish(self, blocks: int) -> SplitInfo:
        """Makes the shards of so many blocks, and deletes these."""
        indices = [json.loads(self._index(number).read_bytes()) for number in range(blocks)]
        bounds = [index["bounds"] for index in indices]
        numbers = range(len(self._shards))
        for number in tqdm(numbers, "writing", unit=" shards", disable=len(numbers) < 2):
            if not self._shards[number].exists():
                self._write_shard(number, [ends[number : number + 2] for ends in bounds])
        info = SplitInfo.total([SplitInfo(**index["info"]) for index in indices], self._shards)
        write_whole(self._finished, json.dumps(dataclasses.asdict(info)).encode())
        self._remove_blocks()
        return info

    def finished(self) -> SplitInfo | None:
        """What `finish` returned, if it has completed and the shards are still there."""
        if not all(path.exists() for path in [self._finished, *self._shards]):
            return None
        self._remove_blocks()
        return SplitInfo(**json.loads(self._finished.read_bytes()))

    def _write_shard(self, number: int, groups: list[list[int]]) -> None:
        """Gathers a group, [first byte, end], of each block, and permutes their records."""
        parts = []
        for block, (begin, end) in enumerate(groups):
            with open(self._data(block), "rb") as file:
                file.seek(begin)
                parts.append(file.read(end - begin))
        content = b"".join(parts)
        records = frames(content)
        order = self._chance("shard", number).permutation(len(records))
        shuffled = b"".join([content[slice(*records[index])] for index in order])
        write_whole(self._shards[number], shuffled)

    def _chance(self, *place) -> np.random.Generator:
        return np.random.default_rng(random.Random(f"{self._seed} {place}").getrandbits(64))

    def _data(self, block: int) -> Path:
        return self._work / f"{self._split}-block-{block:05d}.tfrecord"

    def _index(self, block: int) -> Path:
        return self._work / f"{self._split}-block-{block:05d}.json"

    def _remove_blocks(self) -> None:
        for path in self._work.glob(f"{self._split}-block-*"):
            path.unlink()
