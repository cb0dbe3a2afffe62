"""metadata.json, which describes the records of a data directory.

A record is a tf.train.Example with two int64 lists, "source" and "target": subword ids, each ending
in EOS, without BOS. Records are in TFRecord shards.

metadata.json is written last and atomically: a folder without it is not a data set. Its checksum
replaces rules about its fields.
"""

import dataclasses
import hashlib
import json
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from keras_transformer.core.config import SUFFIXES, Task
from keras_transformer.support.errors import require
from keras_transformer.support.fields import FileName, from_json, one_of
from keras_transformer.support.files.json_files import read_json, write_json
from keras_transformer.support.files.paths import to_path
from keras_transformer.support.files.reading import file_digest
from pipelines.prepare.data_files import METADATA_FILE, PREPARE_AGAIN

FORMAT_VERSION = 3
_CHECKSUM = "checksum"  # the checksum's field

# Ids per bar in the length histogram.
_HISTOGRAM_STEP = 8
Tokenizer = Annotated[str, one_of(*SUFFIXES)]


@dataclasses.dataclass(frozen=True)
class SplitInfo:
    """The contents of a split's records. Lengths and counts are in ids, including EOS."""

    pairs: int  # records, all usable
    dropped: dict[str, int]  # reason -> pairs in the text without a record
    source_tokens: int
    target_tokens: int
    longest_source: int
    longest_target: int
    length_histogram: dict[str, int]  # "16": pairs whose longer side has 9 to 16 ids
    shards: dict[FileName, int] = dataclasses.field(default_factory=dict)  # file name -> bytes
    texts: dict[FileName, str] = dataclasses.field(
        default_factory=dict
    )  # kept text: name -> SHA-256
    examples: dict[str, list[list[str]]] = dataclasses.field(default_factory=dict)  # of `dropped`
    added: dict[str, int] = dataclasses.field(default_factory=dict)  # kind -> pairs by `augment`

    @property
    def longest(self) -> int:
        return max(self.longest_source, self.longest_target)

    @staticmethod
    def from_lengths(lengths: Sequence[tuple[int, int]], dropped: dict[str, int]) -> "SplitInfo":
        """Describes pairs from their (source, target) lengths, without shards."""
        sides = np.array(lengths, np.int64).reshape(-1, 2)
        source_tokens, target_tokens = sides.sum(axis=0).tolist()
        longest_source, longest_target = sides.max(axis=0, initial=0).tolist()
        bars = -(-sides.max(axis=1) // _HISTOGRAM_STEP)  # rounded up
        counts = Counter((bars * _HISTOGRAM_STEP).tolist())
        histogram = {str(bound): counts[bound] for bound in sorted(counts)}
        return SplitInfo(
            pairs=len(sides),
            dropped=dict(dropped),
            source_tokens=source_tokens,
            target_tokens=target_tokens,
            longest_source=longest_source,
            longest_target=longest_target,
            length_histogram=histogram,
        )

    @staticmethod
    def total(
        parts: Sequence["SplitInfo"], shards: Sequence[Path], texts: Sequence[Path] = ()
    ) -> "SplitInfo":
        """Describes all parts of a split together.

        Args:
            parts: the descriptions of the parts.
            shards: the files with their records.
            texts: the files with the split's text.
        """
        dropped, histogram = Counter(), Counter()
        for part in parts:
            dropped.update(part.dropped)
            histogram.update(part.length_histogram)
        return SplitInfo(
            pairs=sum(part.pairs for part in parts),
            dropped=dict(dropped),
            source_tokens=sum(part.source_tokens for part in parts),
            target_tokens=sum(part.target_tokens for part in parts),
            longest_source=max((part.longest_source for part in parts), default=0),
            longest_target=max((part.longest_target for part in parts), default=0),
            length_histogram={bound: histogram[bound] for bound in sorted(histogram, key=int)},
            shards={shard.name: shard.stat().st_size for shard in shards},
            texts={text.name: file_digest(text) for text in texts},
        )


@dataclasses.dataclass(frozen=True)
class Metadata:
    """Everything that training and evaluation need to know about a data directory."""

    task: Task
    tokenizer: Tokenizer
    vocabulary: FileName  # the target's, if the source has a separate one
    vocab_size: int
    fingerprint: str  # SHA-256 of that file
    max_length: int  # of either side in ids, including EOS
    # Of source and target; all, if task_options has several directions.
    languages: list[str]
    settings: dict[str, Any]  # the arguments and inputs of the preparation, to recognize them
    splits: dict[FileName, SplitInfo]
    # For parsing, or for several directions (keras_transformer/core/vocabulary/language_codes.py).
    task_options: dict[str, Any] = dataclasses.field(default_factory=dict)
    source_vocabulary: FileName | None = (
        None  # these three for a separate source vocabulary, or None
    )
    source_vocab_size: int | None = None
    source_fingerprint: str | None = None
    format_version: int = FORMAT_VERSION

    def files(self) -> list[str]:
        """The names of all files that metadata.json describes."""
        names = [self.vocabulary]
        if self.source_vocabulary is not None:
            names.append(self.source_vocabulary)
        for info in self.splits.values():
            names += [*info.shards, *info.texts]
        return names


def write_metadata(data_dir: str | os.PathLike, metadata: Metadata) -> None:
    """Completes a data directory: only then is it a data set."""
    content = dataclasses.asdict(metadata)
    write_json(to_path(data_dir) / METADATA_FILE, {**content, _CHECKSUM: _checksum(content)})


def read_metadata(data_dir: str | os.PathLike) -> Metadata:
    """Reads the metadata of a complete data directory, and none of its other files.

    Raises:
        InputError: if the folder is not a data set, is incomplete, has another version, or its
            metadata.json was changed.
    """
    path = to_path(data_dir) / METADATA_FILE
    rule = "must be a prepared data directory"
    require(path.exists(), "data_dir", rule, f"{data_dir}, which has no {METADATA_FILE}")
    content = read_json(path)
    version = content.get("format_version")
    rule = f"must have format_version {FORMAT_VERSION}: prepare the data again"
    require(version == FORMAT_VERSION, None, rule, version, path)
    is_unchanged = content.pop(_CHECKSUM, None) == _checksum(content)
    require(is_unchanged, None, f"must be unchanged: {PREPARE_AGAIN}", "a changed file", path)
    return from_json(Metadata, content, path)


def _checksum(content: dict[str, Any]) -> str:
    text = json.dumps([METADATA_FILE, content], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
