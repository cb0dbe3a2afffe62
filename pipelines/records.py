"""What a data directory holds: TFRecord shards of encoded pairs, and metadata.json about them.

A record is a tf.train.Example with two int64 lists, "source" and "target": subword ids, each ending
in EOS, without BOS. metadata.json is written last and in one piece, so that a directory without it
is not a data set, and one with it is a whole one. It knows every shard's size and what it begins
with: a shard that was cut off, or that came from another data set, is noticed without reading on.
"""

import dataclasses
import hashlib
import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from keras_transformer.errors import InputError
from pipelines.tfrecords import damaged_byte

METADATA_FILE = "metadata.json"
FORMAT_VERSION = 1

# What an unfinished preparation goes on from.
WORK_FOLDER = "unfinished"
# How much of a shard its digest is of.
_BEGINNING_BYTES = 1 << 16
# Width of the bars of the length histogram, in ids.
_HISTOGRAM_STEP = 8
_OWN_FILES = re.compile(
    rf"{WORK_FOLDER}|(metadata\.json|\w+-\d{{5}}-of-\d{{5}}\.tfrecord)\.part"
    r"|\w+-\d{5}-of-\d{5}\.tfrecord|vocabulary\.(model|txt)|\w+\.(source|target|trees)\.txt"
)


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
    shards: dict[str, int] = dataclasses.field(default_factory=dict)  # file name -> bytes
    beginnings: dict[str, str] = dataclasses.field(default_factory=dict)  # file name -> digest

    @property
    def longest(self) -> int:
        return max(self.longest_source, self.longest_target)

    @staticmethod
    def of(lengths: Sequence[tuple[int, int]], dropped: dict[str, int]) -> "SplitInfo":
        """Describes pairs by their (source, target) lengths; leaves shards out."""
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
    def total(parts: Sequence["SplitInfo"], shards: Iterable[Path]) -> "SplitInfo":
        """Describes the parts of a split together, and the shards that hold them."""
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
        ).with_shards(shards)

    def with_shards(self, shards: Iterable[Path]) -> "SplitInfo":
        shards = list(shards)
        return dataclasses.replace(
            self,
            shards={shard.name: shard.stat().st_size for shard in shards},
            beginnings={shard.name: beginning(shard) for shard in shards},
        )


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
    text = json.dumps(dataclasses.asdict(metadata), ensure_ascii=False, indent=2)
    write_whole(Path(data_dir) / METADATA_FILE, f"{text}\n".encode())


def write_whole(path: Path, content: bytes) -> None:
    """Writes a file that is whole wherever it exists, killed processes and power cuts or not."""
    part = path.with_name(path.name + ".part")
    with open(part, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)


def beginning(shard: Path) -> str:
    """A digest of the first records of a shard, by which it is told from any other."""
    with open(shard, "rb") as file:
        return hashlib.sha256(file.read(_BEGINNING_BYTES)).hexdigest()[:16]


def read_metadata(data_dir: str | os.PathLike, check_files: bool = True) -> Metadata:
    """Reads what a complete data directory holds.

    Args:
        data_dir: the folder.
        check_files: check that every file is there, has its size and begins as it did when it was
            written. This does not read whole shards, as `damaged_files` can.

    Raises:
        InputError: if the folder is not a data set, is incomplete, is of another version, or has
            files that are missing, cut off or of another data set.
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
    if check_files:
        for _, error in damaged_files(data_dir, metadata):
            raise error
    return metadata


def damaged_files(
    data_dir: str | os.PathLike, metadata: Metadata, read_records: bool = False
) -> Iterator[tuple[Path, InputError]]:
    """Finds files that are missing, damaged or of another data set, and says how to repair them.

    Args:
        data_dir: the folder.
        metadata: of that folder.
        read_records: also read every shard to its end, and look for the text of each split.
    """
    vocabulary = Path(data_dir) / metadata.vocabulary
    if not vocabulary.is_file():
        yield vocabulary, _damage(vocabulary, "exist", "no such file")
    elif hashlib.sha256(vocabulary.read_bytes()).hexdigest() != metadata.fingerprint:
        yield vocabulary, _damage(vocabulary, "be as it was prepared", "a changed file")
    for split, info in metadata.splits.items():
        sides = ["source", "target"] if read_records and split != "train" else []
        sides += ["trees"] if sides and metadata.task == "parsing" else []
        for path in (text_file(data_dir, split, side) for side in sides):
            if not path.is_file():
                yield path, _damage(path, "exist", "no such file")
        for name, size in info.shards.items():
            shard = Path(data_dir) / name
            error = _shard_damage(shard, size, info.beginnings.get(name), read_records)
            if error:
                yield shard, error


def _shard_damage(
    shard: Path, size: int, digest: str | None, read_records: bool
) -> InputError | None:
    if not shard.is_file():
        return _damage(shard, f"have {size} bytes", "no such file")
    if shard.stat().st_size != size:
        return _damage(shard, f"have {size} bytes", f"{shard.stat().st_size} bytes")
    foreign = digest not in (None, beginning(shard))
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


def remove_leftovers(data_dir: Path) -> None:
    """Deletes what an interrupted preparation left: files of this module's names, no others."""
    shutil.rmtree(data_dir / WORK_FOLDER, ignore_errors=True)
    for path in data_dir.iterdir():
        if path.is_file() and _OWN_FILES.fullmatch(path.name):
            path.unlink()


def has_leftovers(data_dir: Path) -> bool:
    """Tells whether files of this module's names are there."""
    return any(_OWN_FILES.fullmatch(path.name) for path in data_dir.iterdir())


def text_file(data_dir: str | os.PathLike, split: str, side: str) -> Path:
    """Path of a split's verbatim text; side is "source", "target", or parsing's gold "trees"."""
    return Path(data_dir) / f"{split}.{side}.txt"


def split_of(path: Path) -> str:
    """The split that a shard or text file belongs to."""
    return re.split(r"[-.]", path.name)[0]


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
