"""Prepares a data directory: source -> vocabulary -> record shards -> metadata.

The text is read at most three times: to survey and select the pairs; to add pairs and learn the
vocabulary; to encode the pairs.

Preparing the same data again resumes an interrupted preparation: it keeps the vocabulary, blocks
and shards that are complete (see `sharding`). It also repairs a data set: only damaged or missing
files are rewritten, byte for byte.
"""

import errno
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from absl import logging

from keras_transformer.errors import InputError, require, with_file_name
from keras_transformer.files.locks import locked
from keras_transformer.files.paths import require_name, resolved, to_path
from keras_transformer.files.replacing import remove_abandoned
from pipelines import data_files, unfinished
from pipelines.damage import damaged_files
from pipelines.data_writer import Preparation, TrainingWriter, repair_data_set, write_data_set
from pipelines.metadata import Metadata, read_metadata
from pipelines.preparation_config import PreparationConfig
from pipelines.sources import Source
from pipelines.text_files import DIGEST

# Exists during a preparation. After a killed one it has no effect, and is removed.
_LOCK_FILE = "prepare.lock"


def prepare(
    source: Source,
    data_dir: str | os.PathLike,
    config: PreparationConfig | None = None,
    write_training: TrainingWriter | None = None,
) -> dict[str, Any]:
    """Prepares a data set from `source` in `data_dir`, or repairs it if it is already there.

    Args:
        source: the sentence pairs: a `sources.FileSource`, a `sources.GrammarSource`, a
            `tfds_source.TfdsSource` or a `treebank.TreebankSource`.
        data_dir: the folder of the data set: new, empty, of an interrupted preparation, or of this
            data set.
        config: how the pairs are prepared; None for the paper's way.
        write_training: what writes the training shards in place of the threads of this process:
            see `beam.training_writer`.

    Returns:
        "data_dir"; "up_to_date", whether there was nothing to do; "tokenizer"; "vocab_size" and
        "source_vocab_size", None where the sides share a vocabulary; "pairs", split -> usable
        pairs; "added", kind -> training pairs that were added; "dropped", split -> reason -> pairs
        that were left out; and "seconds".

    Raises:
        InputError: for bad input, and for a folder that holds another data set or other files.
        OSError: where a file cannot be written.

    Example:
        source = FileSource({"train": (["train.en"], ["train.de"])})
        prepare(source, "data/en-de", PreparationConfig(vocab_size=8000))
    """
    begin = time.monotonic()
    require_name(data_dir, "data_dir")
    data_dir = to_path(data_dir)
    config = config or PreparationConfig()
    _require_files_elsewhere([*source.files(), *config.vocabulary], data_dir)
    preparation = Preparation(source, data_dir, config, write_training)
    up_to_date = _is_up_to_date(preparation)
    if not up_to_date:
        with _claimed(data_dir):
            up_to_date = _write_or_repair(preparation)
            _remove_work(data_dir)
    if up_to_date:
        logging.info("%s is up to date", data_dir)
    return _result(data_dir, up_to_date, time.monotonic() - begin)


def _require_files_elsewhere(files: list[str], data_dir: Path) -> None:
    """Rejects input files in the folder that is written to."""
    for file in files:
        is_within = resolved(file).is_relative_to(resolved(data_dir))
        rule = "must not be the folder of its input files"
        require(not is_within, "data_dir", rule, f"{data_dir}, which contains {file}")


def _is_up_to_date(preparation: Preparation) -> bool:
    """Whether there is nothing to do: no file to write or remove."""
    metadata = _existing_metadata(preparation)
    data_dir = preparation.data_dir
    left_behind = [data_dir / _LOCK_FILE, unfinished.work_folder(data_dir)]
    if metadata is None or any(path.exists() for path in left_behind):
        return False
    return not _damaged_files(data_dir, metadata)


def _write_or_repair(preparation: Preparation) -> bool:
    """Writes missing files; returns whether none were missing, written by another process."""
    metadata = _existing_metadata(preparation)
    with _full_disk_named(preparation.data_dir):
        if metadata is None:
            _require_own_files(preparation.data_dir)
            write_data_set(preparation)
            return False
        damaged = _damaged_files(preparation.data_dir, metadata)
        if damaged:
            repair_data_set(preparation, metadata, damaged)
        return not damaged


def _existing_metadata(preparation: Preparation) -> Metadata | None:
    """Returns the metadata of the data set in the folder, if there is one.

    Raises:
        InputError: if it was prepared with other settings.
    """
    data_dir = preparation.data_dir
    if not (data_dir / data_files.METADATA_FILE).exists():
        return None
    metadata = read_metadata(data_dir)
    wanted, present = preparation.settings, metadata.settings
    for name in {**wanted, **present}:
        rule = (
            f"must not contain a data set with another {name.removeprefix('--')}: choose a new "
            f"folder "
            "or delete this one"
        )
        difference = _shown_difference(wanted.get(name), present.get(name))
        same = present.get(name) == wanted.get(name)
        require(same, "data_dir", rule, f"{data_dir} ({difference})")
    return metadata


def _shown_difference(wanted: Any, present: Any) -> str:
    """Formats a differing setting for an error; digests of text are not shown."""
    if DIGEST in f"{wanted} {present}":
        return "other content"
    return f"{wanted}, there: {present}"


def _damaged_files(data_dir: Path, metadata: Metadata) -> list[Path]:
    return [to_path(error.place) for error in damaged_files(data_dir, metadata, read_records=True)]


def _require_own_files(data_dir: Path) -> None:
    """Rejects a folder with data set files that no preparation there has written.

    Raises:
        InputError: naming one of them.
    """
    record = unfinished.read_record(data_dir)
    foreign = data_files.named_as_data(data_dir)
    if record is None:
        foreign += unfinished.files_without_record(data_dir)
    else:
        foreign = [name for name in foreign if name not in record.files]
    for name in foreign:
        rule = "must be empty, new, or a finished or unfinished data set"
        received = (
            f"{data_dir}, which contains {name}, but no record of a preparation that writes it"
        )
        raise InputError("data_dir", rule, received)


@contextmanager
def _claimed(data_dir: Path) -> Iterator[None]:
    """Creates and locks `data_dir`."""
    lock = data_dir / _LOCK_FILE
    with locked(lock, "data_dir"):
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)


def _remove_work(data_dir: Path) -> None:
    """Removes the work files of a completed data set, and what killed programs left there."""
    metadata = read_metadata(data_dir)
    for name in [*metadata.files(), data_files.METADATA_FILE]:
        remove_abandoned(data_dir / name)
    unfinished.remove_work(data_dir, metadata.splits)


@contextmanager
def _full_disk_named(data_dir: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        error = with_file_name(error, data_dir)
        error.add_note("preparing a data set needs about twice its size")
        error.add_note("prepare the data again to resume")
        raise error from None


def _result(data_dir: Path, up_to_date: bool, seconds: float) -> dict[str, Any]:
    metadata = read_metadata(data_dir)
    return {
        "data_dir": str(data_dir),
        "up_to_date": up_to_date,
        "tokenizer": metadata.tokenizer,
        "vocab_size": metadata.vocab_size,
        "source_vocab_size": metadata.source_vocab_size,
        "pairs": {split: info.pairs for split, info in metadata.splits.items()},
        "added": metadata.splits["train"].added,
        "dropped": {split: info.dropped for split, info in metadata.splits.items()},
        "seconds": round(seconds, 1),
    }
