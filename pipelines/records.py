"""What a data directory holds: TFRecord shards of encoded pairs, and metadata.json about them.

A record is a tf.train.Example with two int64 lists, "source" and "target": subword ids, each ending
in EOS, without BOS. metadata.json is written last and in one piece, so that a directory without it
is not a data set, and one with it is a whole one.
"""

import dataclasses
import json
import os
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from keras_transformer.errors import InputError

# TensorFlow is imported where records are read and written: looking at metadata need not wait.

METADATA_FILE = "metadata.json"
FORMAT_VERSION = 1

# Shards are permuted in memory, one at a time.
_PAIRS_PER_SHARD = 100_000
_READ_BATCH = 4096
# Width of the bars of the length histogram, in ids.
_HISTOGRAM_STEP = 8
_OWN_FILES = re.compile(
    r"metadata\.json\.tmp|vocabulary\.(model|txt)"
    r"|\w+-\d{5}-of-\d{5}\.tfrecord(\.part)?|\w+\.(source|target|trees)\.txt"
)

EncodedPair = tuple[list[int], list[int]]


@dataclasses.dataclass(frozen=True)
class SplitInfo:
    """What one split's records hold. Lengths and counts are in ids, EOS included."""

    pairs: int  # records, all usable
    dropped: dict[str, int]  # reason -> pairs of the text that became no record
    source_tokens: int
    target_tokens: int
    longest_source: int
    longest_target: int
    length_histogram: dict[str, int]  # "16": pairs whose longer side has 9 to 16 ids
    shards: dict[str, int]  # file name -> bytes

    @property
    def longest(self) -> int:
        return max(self.longest_source, self.longest_target)


@dataclasses.dataclass(frozen=True)
class Metadata:
    """metadata.json: all that training and evaluation need to know of a data directory."""

    task: str  # "translation" or "parsing"
    tokenizer: str  # "bpe" or "wordpiece"
    vocabulary: str  # file name
    vocab_size: int
    fingerprint: str  # SHA-256 of the vocabulary file
    max_length: int  # of either side in ids, EOS included
    languages: list[str]  # source, target; "" where unknown
    settings: dict[str, Any]  # what the data were made from, to tell whether a rerun is one
    splits: dict[str, SplitInfo]
    task_options: dict[str, Any] = dataclasses.field(default_factory=dict)  # parsing's alone
    format_version: int = FORMAT_VERSION


def write_metadata(data_dir: str | os.PathLike, metadata: Metadata) -> None:
    """Completes a data directory: after this call, and only then, it is one."""
    path = Path(data_dir) / METADATA_FILE
    temporary = path.with_name(METADATA_FILE + ".tmp")
    with open(temporary, "w", encoding="utf-8") as file:
        json.dump(dataclasses.asdict(metadata), file, ensure_ascii=False, indent=2)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def read_metadata(data_dir: str | os.PathLike) -> Metadata:
    """Reads what a complete data directory holds.

    Raises:
        InputError: if it is none, was left half-written, lacks a file, or is of another version.
    """
    path = Path(data_dir) / METADATA_FILE
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
    except OSError:
        raise InputError(
            f"--data_dir must be a folder completed by prepare_data.py. Received: {data_dir}, "
            f"which has no readable {METADATA_FILE}"
        ) from None
    except ValueError as error:
        raise InputError(f"{path} must be JSON. Received: {error}") from None
    version = fields.get("format_version") if isinstance(fields, dict) else None
    if version != FORMAT_VERSION:
        raise InputError(
            f"{path} must be of format_version {FORMAT_VERSION}: prepare the data again. "
            f"Received: {version!r}"
        )
    try:
        splits = {name: SplitInfo(**info) for name, info in fields["splits"].items()}
        metadata = Metadata(**{**fields, "splits": splits})
    except (TypeError, KeyError, AttributeError) as error:
        raise InputError(f"{path} must be written by prepare_data.py. Received: {error}") from None
    _check_files(Path(data_dir), metadata)
    return metadata


def _check_files(data_dir: Path, metadata: Metadata) -> None:
    sizes = {name: size for info in metadata.splits.values() for name, size in info.shards.items()}
    for name, size in {metadata.vocabulary: None, **sizes}.items():
        path = data_dir / name
        if not path.is_file() or size not in (None, path.stat().st_size):
            found = f"{path.stat().st_size} bytes" if path.is_file() else "no such file"
            wanted = "be there" if size is None else f"have {size} bytes"
            raise InputError(
                f"{path} must {wanted}: prepare the data again in an empty folder. "
                f"Received: {found}"
            )


def remove_leftovers(data_dir: Path) -> None:
    """Deletes what an interrupted preparation left: files of this module's names, no others."""
    for path in data_dir.iterdir():
        if path.is_file() and _OWN_FILES.fullmatch(path.name):
            path.unlink()


def has_leftovers(data_dir: Path) -> bool:
    """Tells whether files of this module's names are there."""
    return any(_OWN_FILES.fullmatch(path.name) for path in data_dir.iterdir())


def write_split(
    data_dir: Path, split: str, pairs: Iterable[EncodedPair], expected: int, seed: int
) -> SplitInfo:
    """Writes the records of one split, in random order, over as many shards as `expected` needs.

    Every order is equally likely: each pair goes to a random shard, whose pairs are then permuted.
    So any run of records is a fair sample of the split, however the corpus was sorted.

    Args:
        data_dir: where to.
        split: first part of the shards' names.
        pairs: (source ids, target ids), each ending in EOS.
        expected: about how many there are.
        seed: decides the order.

    Returns:
        What was written, with `dropped` left empty.
    """
    import tensorflow as tf

    count = max(1, round(expected / _PAIRS_PER_SHARD))
    shards = [data_dir / f"{split}-{i:05d}-of-{count:05d}.tfrecord" for i in range(count)]
    parts = [shard.with_name(shard.name + ".part") for shard in shards]
    statistics = _Statistics()
    choice = random.Random(f"{seed} {split}")
    writers = [tf.io.TFRecordWriter(str(part)) for part in parts]
    for source, target in pairs:
        statistics.add(len(source), len(target))
        writers[choice.randrange(count)].write(_example(source, target))
    for writer in writers:
        writer.close()
    for part, shard in zip(parts, shards, strict=True):
        _permute(part, shard, choice.getrandbits(64))
        part.unlink()
    return statistics.info({shard.name: shard.stat().st_size for shard in shards})


def _example(source: list[int], target: list[int]) -> bytes:
    import tensorflow as tf

    features = {
        name: tf.train.Feature(int64_list=tf.train.Int64List(value=ids))
        for name, ids in (("source", source), ("target", target))
    }
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()


def _permute(part: Path, shard: Path, seed: int) -> None:
    """Copies the records of one file into another in random order."""
    import tensorflow as tf

    batches = tf.data.TFRecordDataset(str(part)).batch(_READ_BATCH).as_numpy_iterator()
    records = [record for batch in batches for record in batch]
    with tf.io.TFRecordWriter(str(shard)) as writer:
        for index in np.random.default_rng(seed).permutation(len(records)):
            writer.write(records[index])


class _Statistics:
    """Running totals over the pairs of a split."""

    def __init__(self):
        self._pairs = self._source = self._target = 0
        self._longest_source = self._longest_target = 0
        self._histogram: Counter[int] = Counter()

    def add(self, source: int, target: int) -> None:
        self._pairs += 1
        self._source += source
        self._target += target
        self._longest_source = max(self._longest_source, source)
        self._longest_target = max(self._longest_target, target)
        self._histogram[-(-max(source, target) // _HISTOGRAM_STEP) * _HISTOGRAM_STEP] += 1

    def info(self, shards: dict[str, int]) -> SplitInfo:
        return SplitInfo(
            pairs=self._pairs,
            dropped={},
            source_tokens=self._source,
            target_tokens=self._target,
            longest_source=self._longest_source,
            longest_target=self._longest_target,
            length_histogram={str(bound): n for bound, n in sorted(self._histogram.items())},
            shards=shards,
        )


def text_file(data_dir: str | os.PathLike, split: str, side: str) -> Path:
    """Path of a split's verbatim text; side is "source", "target", or parsing's gold "trees"."""
    return Path(data_dir) / f"{split}.{side}.txt"


def keep_text(
    data_dir: Path, split: str, pairs: Iterable[tuple[str, str]]
) -> Iterator[tuple[str, str]]:
    """Passes text pairs on and writes them down, one a line."""
    with (
        open(text_file(data_dir, split, "source"), "w", encoding="utf-8", newline="") as sources,
        open(text_file(data_dir, split, "target"), "w", encoding="utf-8", newline="") as targets,
    ):
        for source, target in pairs:
            sources.write(source + "\n")
            targets.write(target + "\n")
            yield source, target
