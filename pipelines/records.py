"""The files of a data directory: TFRecord shards of encoded pairs, and metadata.json about them.

A record is a tf.train.Example with two int64 lists, "source" and "target": subword ids, each ending
in EOS, without BOS. metadata.json is written last and as a whole: a folder without it is not a data
set. It has the size of every shard and a digest of its beginning, so that a shard that was cut off,
or that comes from another data set, is noticed without reading all of it.
"""

import dataclasses
import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from keras_transformer.config import SUFFIXES, Task, VocabularySize
from keras_transformer.errors import InputError, require
from keras_transformer.fields import Count, FileName, Rule, Size, from_json, one_of
from keras_transformer.files import read_json, remove_folder, replacing, to_path, write_json

METADATA_FILE = "metadata.json"
FORMAT_VERSION = 1

# What an interrupted preparation has written; it resumes from there.
WORK_FOLDER = "unfinished"
# Bytes of a TFRecord beside its content: the length, and a checksum of each.
FRAME_BYTES = 16
_RECORDS_AT_ONCE = 4096
# The part of a shard that its digest covers.
_BEGINNING_BYTES = 1 << 16
# Ids per bar of the length histogram.
_HISTOGRAM_STEP = 8
_DATA_FILE = (
    r"\w+-\d{5}-of-\d{5}\.tfrecord|\w+\.(source|target|trees)\.txt"
    rf"|\w*vocabulary({'|'.join(map(re.escape, SUFFIXES.values()))})"
)
Tokenizer = Annotated[str, one_of(*SUFFIXES)]
_Number = Annotated[str, Rule("be a number", str.isdecimal)]
_TEMPORARY_FILE = rf"\.({_DATA_FILE}|metadata\.json)\.\w+\.tmp"


@dataclasses.dataclass(frozen=True)
class SplitInfo:
    """The contents of one split's records. Lengths and counts are in ids and include EOS."""

    pairs: Count  # records, all usable
    dropped: dict[str, Count]  # reason -> pairs of the text that became no record
    source_tokens: Count
    target_tokens: Count
    longest_source: Count
    longest_target: Count
    length_histogram: dict[_Number, Count]  # "16": pairs whose longer side has 9 to 16 ids
    shards: dict[FileName, Count] = dataclasses.field(default_factory=dict)  # file name -> bytes
    beginnings: dict[FileName, str] = dataclasses.field(default_factory=dict)  # name -> digest
    examples: dict[str, list[list[str]]] = dataclasses.field(default_factory=dict)  # of `dropped`

    def __post_init__(self):
        pairs = sum(self.length_histogram.values())
        require(self.pairs == pairs, f"pairs must be {pairs}, as in length_histogram", self.pairs)

    @property
    def longest(self) -> int:
        return max(self.longest_source, self.longest_target)

    @staticmethod
    def of(lengths: Sequence[tuple[int, int]], dropped: dict[str, int]) -> "SplitInfo":
        """Describes pairs by their (source, target) lengths, without shards."""
        sides = np.array(lengths, np.int64).reshape(-1, 2)
        source, target = sides.sum(axis=0).tolist()
        longest_source, longest_target = sides.max(axis=0, initial=0).tolist()
        bounds = -(-sides.max(axis=1) // _HISTOGRAM_STEP) * _HISTOGRAM_STEP
        histogram = {str(bound): n for bound, n in sorted(Counter(bounds.tolist()).items())}
        return SplitInfo(
            pairs=len(sides),
            dropped=dict(dropped),
            source_tokens=source,
            target_tokens=target,
            longest_source=longest_source,
            longest_target=longest_target,
            length_histogram=histogram,
        )

    @staticmethod
    def total(parts: Sequence["SplitInfo"], shards: Sequence[Path]) -> "SplitInfo":
        """Describes all parts of a split together, and the shards that hold them."""
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
            beginnings={shard.name: _digest_of_beginning(shard) for shard in shards},
        )


@dataclasses.dataclass(frozen=True)
class Metadata:
    """metadata.json: all that training and evaluation need to know about a data directory."""

    task: Task
    tokenizer: Tokenizer
    vocabulary: FileName  # of the target's, where the source has its own
    vocab_size: VocabularySize
    fingerprint: str  # SHA-256 of that file
    max_length: Size  # of either side in ids, including EOS
    languages: Annotated[list[str], Rule("be two names", lambda names: len(names) == 2)]
    settings: dict[str, Any]  # the flags and inputs of the preparation, to recognise a rerun
    splits: Annotated[
        dict[FileName, SplitInfo], Rule("have train", lambda splits: "train" in splits)
    ]
    task_options: dict[str, Any] = dataclasses.field(default_factory=dict)  # for parsing only
    source_vocabulary: FileName | None = None  # these three of the source's own, or None
    source_vocab_size: VocabularySize | None = None
    source_fingerprint: str | None = None
    format_version: int = FORMAT_VERSION


def write_metadata(data_dir: str | os.PathLike, metadata: Metadata) -> None:
    """Completes a data directory: only after this call is it a data set."""
    write_json(to_path(data_dir) / METADATA_FILE, dataclasses.asdict(metadata))


def read_metadata(data_dir: str | os.PathLike, check_files: bool = True) -> Metadata:
    """Reads the metadata of a complete data directory.

    Args:
        data_dir: the folder.
        check_files: check that every file exists, has its size and begins as it did when it was
            written. This does not read whole shards, as `damaged_files` can.

    Raises:
        InputError: if the folder is not a data set, is incomplete, is of another version, or has
            files that are missing, cut off or of another data set.
    """
    path = to_path(data_dir) / METADATA_FILE
    rule = "--data_dir must be a folder completed by prepare_data.py"
    require(path.exists(), rule, f"{data_dir}, which has no {METADATA_FILE}")
    content = read_json(path)
    version = content.get("format_version")
    rule = f"{path} must be of format_version {FORMAT_VERSION}: prepare the data again"
    require(version == FORMAT_VERSION, rule, version)
    metadata = from_json(Metadata, content, path)
    if check_files:
        for _, error in damaged_files(data_dir, metadata):
            raise error
    return metadata


def damaged_files(
    data_dir: str | os.PathLike, metadata: Metadata, read_records: bool = False
) -> Iterator[tuple[Path, InputError]]:
    """Finds files that are missing, damaged or of another data set.

    Args:
        data_dir: the folder.
        metadata: of that folder.
        read_records: also read every shard to its end, and look for the text of each split.

    Yields:
        A file, and the error that names it and says what to do.
    """
    fingerprints = {metadata.source_vocabulary: metadata.source_fingerprint}
    fingerprints[metadata.vocabulary] = metadata.fingerprint
    for name in filter(None, fingerprints):
        vocabulary = to_path(data_dir) / name
        if not vocabulary.is_file():
            yield vocabulary, _damage(vocabulary, "exist", "no such file")
        elif hashlib.sha256(vocabulary.read_bytes()).hexdigest() != fingerprints[name]:
            yield vocabulary, _damage(vocabulary, "be as it was prepared", "a changed file")
    for split, info in metadata.splits.items():
        sides = ["source", "target"] if read_records and split != "train" else []
        sides += ["trees"] if sides and metadata.task == "parsing" else []
        for path in (text_file(data_dir, split, side) for side in sides):
            try:
                read_text(path, info)
            except InputError as error:
                yield path, error
        for name, size in info.shards.items():
            shard = to_path(data_dir) / name
            if error := _shard_damage(shard, size, info.beginnings.get(name), read_records):
                yield shard, error


def read_text(path: Path, info: SplitInfo) -> list[str]:
    """Reads a side of a split that has such records; InputError where the text is not whole."""
    if not path.is_file():
        raise _damage(path, "exist", "no such file")
    try:
        lines = path.read_bytes().decode("utf-8").split("\n")[:-1]
    except UnicodeDecodeError as error:
        raise _damage(path, "be UTF-8", error) from None
    count = info.pairs + sum(info.dropped.values())
    if len(lines) != count:
        raise _damage(path, f"have {count} lines", len(lines))
    return lines


def _shard_damage(
    shard: Path, size: int, digest: str | None, read_records: bool
) -> InputError | None:
    if not shard.is_file():
        return _damage(shard, f"have {size} bytes", "no such file")
    if shard.stat().st_size != size:
        return _damage(shard, f"have {size} bytes", f"{shard.stat().st_size} bytes")
    foreign = digest not in (None, _digest_of_beginning(shard))
    byte = damaged_byte(shard) if foreign or read_records else None
    if byte is not None:
        return _damage(shard, "hold sound records", f"damage at byte {byte}")
    if foreign:
        return _damage(shard, "be the shard that was prepared", "a shard of another data set")
    return None


def _damage(path: Path, rule: str, received: str) -> InputError:
    return InputError(
        f"{path} must {rule}: run prepare_data.py again with the same flags, which rewrites "
        f"damaged and missing files. Received: {received}"
    )


def damaged_byte(shard: str | os.PathLike) -> int | None:
    """Where the first damaged or cut-off record of a shard begins; None where all are sound.

    TensorFlow verifies the checksums, but its error names neither the file nor the place.
    """
    import tensorflow as tf

    records = end = 0
    for at_once in (_RECORDS_AT_ONCE, 1):  # then one at a time, up to the damaged record
        try:
            for batch in tf.data.TFRecordDataset(str(shard)).skip(records).batch(at_once):
                records += len(batch)
                end += int(tf.reduce_sum(tf.strings.length(batch))) + FRAME_BYTES * len(batch)
            break
        except tf.errors.DataLossError:
            continue
    # TensorFlow raises no error where a file ends within the first 12 bytes of a record.
    return end if end < to_path(shard).stat().st_size else None


def _digest_of_beginning(shard: Path) -> str:
    with shard.open("rb") as file:
        return hashlib.sha256(file.read(_BEGINNING_BYTES)).hexdigest()[:16]


def leftovers(data_dir: Path) -> list[Path]:
    """Files in a folder that have the names of data files, temporary files or unfinished work."""
    name = re.compile(f"{_DATA_FILE}|{_TEMPORARY_FILE}|{WORK_FOLDER}")
    return [path for path in data_dir.glob("*") if name.fullmatch(path.name)]


def remove_leftovers(data_dir: Path, keep_data: bool) -> None:
    """Deletes unfinished work and temporary files, and the data files unless they are kept."""
    remove_folder(data_dir / WORK_FOLDER)
    for path in leftovers(data_dir):
        if path.is_file() and not (keep_data and re.fullmatch(_DATA_FILE, path.name)):
            path.unlink()


def text_file(data_dir: str | os.PathLike, split: str, side: str) -> Path:
    """Path of a split's text; `side` is "source", "target", or "trees" for parsing's gold trees."""
    return to_path(data_dir) / f"{split}.{side}.txt"


def split_of(path: Path) -> str:
    """The split that a shard or text file belongs to."""
    return re.split(r"[-.]", path.name)[0]


def keep_text(
    data_dir: Path, split: str, pairs: Iterable[tuple[str, str]]
) -> Iterator[tuple[str, str]]:
    """Yields text pairs, and writes them to the text files of a split once all were taken."""
    source_file, target_file = (text_file(data_dir, split, side) for side in ("source", "target"))
    with replacing(source_file) as sources, replacing(target_file) as targets:
        for source, target in pairs:
            sources.write(source.encode("utf-8") + b"\n")
            targets.write(target.encode("utf-8") + b"\n")
            yield source, target
