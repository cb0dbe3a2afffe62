"""Prepares a data directory: source -> vocabulary -> record shards -> metadata.

The text is read at most three times: to survey and select the pairs; to add pairs and learn the
vocabulary; to encode the pairs. To add pairs with terms, it is read once more.

All files are written into a work folder, and moved to the data directory when they are complete,
metadata.json last. So a data directory is whole or not there, and an interrupted preparation leaves
only its work folder, which the next one removes.

Files are written into a folder inside the data directory, on the same disk or in the same bucket,
where Beam's workers reach it. An interrupted preparation begins again: 4.5 million pairs take three
minutes, and resuming was a fifth of the code.
"""

import errno
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from absl import logging

from keras_transformer.support.errors import InputError, require, with_file_name
from keras_transformer.support.files.locks import locked
from keras_transformer.support.files.paths import remove_folder, require_name, resolved, to_path
from pipelines.batches.data_set import DataSet
from pipelines.prepare.data_files import METADATA_FILE, named_as_data
from pipelines.prepare.data_writer import Preparation, TrainingWriter, write_data_set
from pipelines.prepare.metadata import read_metadata
from pipelines.prepare.preparation_config import PreparationConfig
from pipelines.sources.source import Source
from pipelines.sources.text_files import DIGEST

# Both exist during a preparation. If it is killed, they stay, and the next one removes them.
_LOCK_FILE = "prepare.lock"
_WORK_FOLDER = "prepare.tmp"


def prepare(
    source: Source,
    data_dir: str | os.PathLike,
    config: PreparationConfig | None = None,
    write_training: TrainingWriter | None = None,
) -> dict[str, Any]:
    """Prepares a data set from `source` in `data_dir`, or checks it if it is already there.

    Args:
        source: the sentence pairs: a `sources.FileSource`, a `tfds_source.TfdsSource` or a
            `treebank.TreebankSource`.
        data_dir: the folder of the data set: new, without one, or of this data set.
        config: how the pairs are prepared; None for the paper's way.
        write_training: what writes the training shards in place of the threads of this process:
            see `beam.training_writer`.

    Returns:
        "data_dir"; "up_to_date", whether it was already there; "tokenizer"; "vocab_size" and
        "source_vocab_size", None where the sides share a vocabulary; "pairs", split -> usable
        pairs; "added", kind -> training pairs that were added; "dropped", split -> reason -> pairs
        that were left out; and "seconds".

    Raises:
        InputError: for bad input, and for a folder that holds another data set, a damaged one, or
            files named like those of a data set.
        OSError: where a file cannot be written.

    Example:
        source = FileSource({"train": (["train.en"], ["train.de"])})
        prepare(source, "data/en-de", PreparationConfig(vocab_size=8000))
    """
    begin = time.monotonic()
    require_name(data_dir, "data_dir")
    data_dir = to_path(data_dir)
    config = config or PreparationConfig()
    if source.task == "parsing":
        config.require_whole_trees()
    _require_files_elsewhere([*source.files(), *config.vocabulary], data_dir)
    preparation = Preparation(source, config, write_training)
    up_to_date = _is_prepared(preparation, data_dir)
    if not up_to_date:
        with _claimed(data_dir):
            up_to_date = _write_unless_prepared(preparation, data_dir)
    if up_to_date:
        logging.info("%s is already prepared", data_dir)
    return _result(data_dir, up_to_date, time.monotonic() - begin)


def _require_files_elsewhere(files: list[str], data_dir: Path) -> None:
    """Rejects input files in the folder that is written to."""
    for file in files:
        is_within = resolved(file).is_relative_to(resolved(data_dir))
        rule = "must not be the folder of its input files"
        require(not is_within, "data_dir", rule, f"{data_dir}, which contains {file}")


def _is_prepared(preparation: Preparation, data_dir: Path) -> bool:
    """Whether the folder already holds this data set.

    Raises:
        InputError: if it was prepared with other settings, or is damaged.
    """
    if not (data_dir / METADATA_FILE).exists():
        return False
    data = DataSet.open(data_dir)
    wanted, present = preparation.settings, data.metadata.settings
    for name in {**wanted, **present}:
        rule = (
            f"must not contain a data set with another {name.removeprefix('--')}: choose a new "
            "folder or delete this one"
        )
        difference = _shown_difference(wanted.get(name), present.get(name))
        same = present.get(name) == wanted.get(name)
        require(same, "data_dir", rule, f"{data_dir} ({difference})")
    data.check()
    return True


def _shown_difference(wanted: Any, present: Any) -> str:
    """Formats a differing setting for an error; digests of text are not shown."""
    if DIGEST in f"{wanted} {present}":
        return "other content"
    return f"{wanted}, there: {present}"


def _write_unless_prepared(preparation: Preparation, data_dir: Path) -> bool:
    """Writes the data set; returns whether another process had already done so."""
    work = data_dir / _WORK_FOLDER
    if (work / METADATA_FILE).exists():  # killed while it moved its files
        _move_files(work, data_dir)
    if _is_prepared(preparation, data_dir):
        return True
    _require_no_data(data_dir)
    remove_folder(work)
    work.mkdir()
    try:
        with _full_disk_named(data_dir):
            write_data_set(preparation, work)
    except BaseException:
        remove_folder(work)
        raise
    _move_files(work, data_dir)
    return False


def _require_no_data(data_dir: Path) -> None:
    """Rejects a folder with files named like those of a data set.

    Raises:
        InputError: naming one of them.
    """
    for name in named_as_data(data_dir):
        rule = "must be empty, new, or a prepared data directory"
        received = f"{data_dir}, which contains {name}, but no {METADATA_FILE}"
        raise InputError("data_dir", rule, received)


def _move_files(work: Path, data_dir: Path) -> None:
    """Moves a complete data set, metadata.json last, and removes the work folder."""
    for name in [*read_metadata(work).files(), METADATA_FILE]:
        if (work / name).exists():  # if not, a killed process has moved it
            (work / name).replace(data_dir / name)
    remove_folder(work)


@contextmanager
def _claimed(data_dir: Path) -> Iterator[None]:
    """Creates and locks `data_dir`."""
    lock = data_dir / _LOCK_FILE
    with locked(lock, "data_dir"):
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)


@contextmanager
def _full_disk_named(data_dir: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        error = with_file_name(error, data_dir)
        error.add_note("preparing a data set needs about twice its size")
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
