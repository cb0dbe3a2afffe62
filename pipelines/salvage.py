"""What to do about damaged shards: name them, or go on without their bad records."""

import atexit
import contextlib
import dataclasses
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import tensorflow as tf
from absl import logging

from keras_transformer.errors import InputError
from pipelines.records import (
    METADATA_FILE,
    Metadata,
    SplitInfo,
    another_shard,
    bad_record,
    beginning,
    read_metadata,
    write_metadata,
    write_whole,
)
from pipelines.tfrecords import read_through, sound_records

# In SplitInfo.dropped: how many records were lost.
BAD_RECORD = "bad_record"
_NAMED_PLACES = 5


@contextlib.contextmanager
def damage_named(data_dir: str | os.PathLike) -> Iterator[None]:
    """Turns TensorFlow's error at a damaged or lost shard of `data_dir` into one that names it.

    Raises:
        InputError: naming the shard, and the byte where its damage begins.
    """
    try:
        yield
    except (tf.errors.DataLossError, tf.errors.NotFoundError):
        metadata = read_metadata(data_dir)  # names what has gone missing
        for info in metadata.splits.values():
            for name in info.shards:
                _, byte = read_through(Path(data_dir) / name)
                if byte is not None:
                    raise bad_record(Path(data_dir) / name, byte) from None
        raise


def without_bad_records(data_dir: str | os.PathLike) -> Path:
    """A data set of all the sound records of one, whatever happened to its shards.

    Reads all shards. Where nothing is wrong, that is `data_dir` itself. Else it is a temporary
    folder, with copies of damaged shards' sound records and links to all other files; its metadata
    count what was lost as `dropped`. A damaged record costs no other one; a cut-off or missing
    shard costs what it lacks.

    Raises:
        InputError: for a shard of another data set, and where no training pair is left.
    """
    data_dir = Path(data_dir).resolve()
    metadata = read_metadata(data_dir, check_files=False)
    folder = Path(tempfile.mkdtemp(prefix="sound-records-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    splits = {
        split: _without_bad_records(info, data_dir, folder)
        for split, info in metadata.splits.items()
    }
    if all(_same(splits[split], info) for split, info in metadata.splits.items()):
        return data_dir
    for split, info in splits.items():
        if lost := metadata.splits[split].pairs - info.pairs:
            logging.warning("%s: %d of %d pairs lost", split, lost, metadata.splits[split].pairs)
    if not splits["train"].pairs:
        raise InputError(f"{data_dir} must hold sound training records. Received: none")
    for path in {*data_dir.iterdir()} - {data_dir / name for name in _names(metadata)}:
        (folder / path.name).symlink_to(path)
    write_metadata(folder, dataclasses.replace(metadata, splits=splits))
    return folder


def records_lost(data_dir: str | os.PathLike, split: str = "train") -> int:
    """How many records of a split `without_bad_records` left out."""
    splits = read_metadata(data_dir, check_files=False).splits
    return splits[split].dropped.get(BAD_RECORD, 0)


def _same(found: SplitInfo, recorded: SplitInfo) -> bool:
    """Whether all shards are there that hold anything, and of the same size: so without loss."""
    return found.shards == {name: size for name, size in recorded.shards.items() if size}


def _names(metadata: Metadata) -> list[str]:
    """The files that are made anew."""
    return [METADATA_FILE, *(name for info in metadata.splits.values() for name in info.shards)]


def _without_bad_records(info: SplitInfo, data_dir: Path, folder: Path) -> SplitInfo:
    """Puts a split's sound records into `folder`, and describes it as far as it changes."""
    pairs = sum(
        _sound_copy(data_dir / name, folder / name, info.beginnings.get(name))
        for name in info.shards
    )
    copies = [folder / name for name in info.shards]
    shards = [copy for copy in copies if copy.exists() and copy.stat().st_size]
    dropped = info.dropped
    if pairs < info.pairs:
        dropped = {**dropped, BAD_RECORD: info.pairs - pairs}
    return dataclasses.replace(info, pairs=pairs, dropped=dropped).with_shards(shards)


def _sound_copy(shard: Path, copy: Path, digest: str | None) -> int:
    """Copies, or links to, the sound records of a shard; returns how many there are."""
    if not shard.is_file():
        logging.warning("%s is missing", shard)
        return 0
    records, byte = read_through(shard)
    if byte is None:
        if records and digest not in (None, beginning(shard)):
            raise another_shard(shard)
        copy.symlink_to(shard)
        return records
    content = shard.read_bytes()
    sound, damaged = sound_records(content)
    places = ", ".join(str(place) for place in damaged[:_NAMED_PLACES])
    logging.warning("%s: %d bad records, at bytes %s", shard, len(damaged), places)
    write_whole(copy, b"".join([content[begin:end] for begin, end in sound]))
    return len(sound)
