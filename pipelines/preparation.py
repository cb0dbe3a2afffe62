"""Prepares a data directory: source -> vocabulary -> record shards -> metadata.

The same command resumes an interrupted preparation: it keeps the vocabulary, blocks and shards that
are complete (see `sharding`). It also repairs a data set: files that were damaged or lost are
written again, byte for byte the same, and no others. Text is encoded by one thread for each core,
in one process: the encoders are C++ and release Python's lock.
"""

import dataclasses
import errno
import fcntl
import itertools
import json
import os
import shutil
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from absl import logging
from tqdm import tqdm

from keras_transformer.errors import InputError, reason
from pipelines import records, sharding
from pipelines.encoding import Encode, encoded, encoder
from pipelines.records import Metadata, SplitInfo, read_metadata
from pipelines.sharding import Sharding
from pipelines.sources import Pair, Source

if TYPE_CHECKING:
    from keras_transformer.vocabulary.subwords import Subwords

# There from the first to the last moment of a preparation, and after one that was interrupted.
_LOCK_FILE = "prepare.lock"
_STATE_FILE = "preparation.json"
# More wait for one another: a seventh of the work is Python's own. Each holds a block in memory.
_MAX_THREADS = 8
_BAR = {"unit": " pairs", "mininterval": 1}


@dataclasses.dataclass(frozen=True)
class PreparationConfig:
    """What is made of the text, whatever its source."""

    tokenizer: str = "bpe"  # or "wordpiece"
    vocab_size: int = 37000  # section 5.1
    max_length: int = 256  # of either side in ids, EOS included; longer pairs are left out
    seed: int = 1  # decides the order of pairs and the sample vocabularies are learned from

    def __post_init__(self):
        if self.tokenizer not in ("bpe", "wordpiece"):
            raise InputError(
                f"--tokenizer must be one of bpe, wordpiece. Received: {self.tokenizer}"
            )
        if self.vocab_size < 5:
            raise InputError(
                f"--vocab_size must exceed the 4 special ids. Received: {self.vocab_size}"
            )
        if self.max_length < 2:
            raise InputError(
                f"--max_length must be at least 2, for a subword and EOS. "
                f"Received: {self.max_length}"
            )


def prepare(
    source: Source, data_dir: str | os.PathLike, config: PreparationConfig
) -> dict[str, Any]:
    """Makes `data_dir` a data set of `source`, or repairs it where it is that data set already.

    Returns:
        The program's result: sizes, what was dropped, and whether there was nothing to do.

    Raises:
        InputError: for bad input, and for a folder that holds another data set or foreign files.
    """
    begin = time.monotonic()
    data_dir = Path(data_dir)
    settings = {**source.settings(), **_flags(config)}
    metadata, damaged = _inspect(data_dir, settings)
    if metadata is None or damaged or (data_dir / _LOCK_FILE).exists():
        with _claimed(data_dir):
            metadata, damaged = _inspect(data_dir, settings)  # another process may have written it
            if metadata is None or damaged:
                with _full_disk_named(data_dir):
                    _write(source, data_dir, config, settings, metadata, damaged)
    up_to_date = metadata is not None and not damaged
    if up_to_date:
        logging.info("%s is up to date", data_dir)
    return _result(data_dir, up_to_date, time.monotonic() - begin)


def _flags(config: PreparationConfig) -> dict[str, Any]:
    return {f"--{name}": value for name, value in dataclasses.asdict(config).items()}


def _inspect(data_dir: Path, settings: dict[str, Any]) -> tuple[Metadata | None, list[Path]]:
    """Metadata of the data set in `data_dir`, if there is one, and its damaged or missing files.

    Raises:
        InputError: if it was prepared with other settings.
    """
    if not (data_dir / records.METADATA_FILE).exists():
        return None, []
    metadata = read_metadata(data_dir, check_files=False)
    there = metadata.settings
    for name in {**settings, **there}:
        if there.get(name) != settings.get(name):
            raise InputError(
                f"--data_dir={data_dir} holds a data set of another {name}: choose a new folder "
                f"or delete this one. Received: {settings.get(name)}, there: {there.get(name)}"
            )
    damaged = records.damaged_files(data_dir, metadata, read_records=True)
    return metadata, [path for path, _ in damaged]


@contextmanager
def _claimed(data_dir: Path) -> Iterator[None]:
    """Makes `data_dir`, keeps others out, and clears up when all is done."""
    lock, metadata = data_dir / _LOCK_FILE, data_dir / records.METADATA_FILE
    while True:
        try:
            data_dir.mkdir(parents=True, exist_ok=True)
            # In this order, as another that is at work unlinks its lock after it wrote metadata.
            if records.has_leftovers(data_dir) and not lock.exists() and not metadata.exists():
                raise InputError(
                    f"--data_dir must be empty, new, or a data set. Received: {data_dir}, which "
                    "holds files of other origin that would be overwritten"
                )
            file = open(lock, "w")  # noqa: SIM115 (held open as long as the lock)
        except OSError as error:
            raise InputError(
                f"--data_dir must be a writable folder. Received: {data_dir} ({error.strerror})"
            ) from None
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise InputError(
                    f"--data_dir must not be in use by another prepare_data. Received: {data_dir}"
                ) from None
            if not _is_at(file, lock):  # another has unlinked it in between: a lock on nothing
                continue
            yield
            shutil.rmtree(data_dir / records.WORK_FOLDER, ignore_errors=True)
            lock.unlink()
            return


def _is_at(file: IO, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


@contextmanager
def _full_disk_named(data_dir: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise InputError(
            "--data_dir must have room for about twice the size of the data set: run the same "
            f"command again to resume. Received: {data_dir} ({reason(error)})"
        ) from None


def _write(
    source: Source,
    data_dir: Path,
    config: PreparationConfig,
    settings: dict[str, Any],
    metadata: Metadata | None,
    damaged: list[Path],
) -> None:
    """Writes a new data set, or only the damaged files of the one that `metadata` describes."""
    from keras_transformer.vocabulary.subwords import Subwords  # imports TensorFlow

    for path in damaged:
        logging.warning("%s is missing or damaged, and is written again", path)
        path.unlink(missing_ok=True)
    counts = _resumed_counts(data_dir, settings, config.tokenizer)
    if counts is None:
        counts = _begin(source, data_dir, config, settings, new=metadata is None)
    vocabulary = Subwords.load(data_dir)
    splits = {
        split: _write_split(source, data_dir, split, counts, vocabulary, config)
        for split in counts
        if metadata is None or any(records.split_of(path) == split for path in damaged)
    }
    if metadata is not None:
        for path, _ in records.damaged_files(data_dir, metadata, read_records=True):
            raise InputError(
                f"{path} must be the same when it is written again: prepare the data in a new "
                "folder. Received: another file, as of another version of the programs"
            )
        return
    metadata = Metadata(
        task=source.task,
        task_options=source.task_options(),
        tokenizer=vocabulary.kind,
        vocabulary=vocabulary.file.name,
        vocab_size=vocabulary.vocab_size,
        fingerprint=vocabulary.fingerprint,
        max_length=config.max_length,
        languages=list(source.languages),
        settings=settings,
        splits=splits,
    )
    records.write_metadata(data_dir, metadata)


def _resumed_counts(
    data_dir: Path, settings: dict[str, Any], tokenizer: str
) -> dict[str, int] | None:
    """The source's counts, of an interrupted preparation that can be resumed."""
    from keras_transformer.vocabulary.subwords import VOCABULARY_FILES

    try:
        state = json.loads((data_dir / records.WORK_FOLDER / _STATE_FILE).read_bytes())
    except (OSError, ValueError):
        return None
    if state["settings"] != settings or state["block_pairs"] != sharding.BLOCK_PAIRS:
        logging.info("%s: starting again, because settings have changed", data_dir)
        return None
    if not (data_dir / VOCABULARY_FILES[tokenizer]).exists():
        return None
    logging.info("%s: resuming an interrupted preparation", data_dir)
    return state["counts"]


def _begin(
    source: Source, data_dir: Path, config: PreparationConfig, settings: dict[str, Any], new: bool
) -> dict[str, int]:
    """Learns the vocabulary if it is not there; after this call a preparation can be resumed."""
    from keras_transformer.vocabulary.subwords import VOCABULARY_FILES
    from pipelines.vocabulary import learn_subwords

    work = data_dir / records.WORK_FOLDER
    if new:
        records.remove_leftovers(data_dir)
    else:
        shutil.rmtree(work, ignore_errors=True)
    counts = source.counts()
    if not (data_dir / VOCABULARY_FILES[config.tokenizer]).exists():
        logging.info("learning %s on %d pairs", config.tokenizer, counts["train"])
        pairs = tqdm(source.pairs("train"), "reading train", counts["train"], **_BAR)
        text = itertools.chain.from_iterable(pairs)
        learn_subwords(
            text, config.tokenizer, config.vocab_size, data_dir, config.seed, source.symbols()
        )
    state = {"settings": settings, "block_pairs": sharding.BLOCK_PAIRS, "counts": counts}
    work.mkdir()
    records.write_whole(work / _STATE_FILE, json.dumps(state).encode("utf-8"))
    return counts


def _write_split(
    source: Source,
    data_dir: Path,
    split: str,
    counts: dict[str, int],
    vocabulary: "Subwords",
    config: PreparationConfig,
) -> SplitInfo:
    shards = Sharding(data_dir, split, counts[split], config.seed)
    info = shards.finished()
    if info is None:
        pairs = source.pairs(split)
        if split != "train":
            pairs = records.keep_text(data_dir, split, pairs)
            source.keep(data_dir, split)
        with tqdm(desc=f"encoding {split}", total=counts[split], **_BAR) as bar:
            blocks = _write_blocks(shards, pairs, encoder(vocabulary), config.max_length, bar)
        info = shards.finish(blocks)
    if split == "train" and not info.pairs:
        raise InputError(
            f"--max_length must leave at least one training pair. Received: {config.max_length}, "
            f"with {info.dropped['too_long']} pairs too long and {info.dropped['blank']} blank"
        )
    return info


def _write_blocks(
    shards: Sharding, pairs: Iterable[Pair], encode: Encode, max_length: int, bar: tqdm
) -> int:
    """Writes all blocks that are not there, each in a thread; returns how many there are."""

    def write(number: int, block: list[Pair]) -> int:
        if not shards.has_block(number):
            dropped = Counter(blank=0, too_long=0)
            shards.write_block(number, encoded(block, encode, max_length, dropped), dropped)
        return len(block)

    pairs, threads = iter(pairs), min(_MAX_THREADS, os.cpu_count() or 1)
    blocks = iter(lambda: list(itertools.islice(pairs, sharding.BLOCK_PAIRS)), [])
    with ThreadPoolExecutor(threads) as pool:
        number, writing = 0, deque()
        for number, block in enumerate(blocks, start=1):
            writing.append(pool.submit(write, number - 1, block))
            if len(writing) > threads:  # no more text in memory than is needed
                bar.update(writing.popleft().result())
        for written in writing:
            bar.update(written.result())
    return number


def _result(data_dir: Path, up_to_date: bool, seconds: float) -> dict[str, Any]:
    metadata = read_metadata(data_dir)
    return {
        "data_dir": str(data_dir),
        "up_to_date": up_to_date,
        "tokenizer": metadata.tokenizer,
        "vocab_size": metadata.vocab_size,
        "pairs": {split: info.pairs for split, info in metadata.splits.items()},
        "dropped": {split: info.dropped for split, info in metadata.splits.items()},
        "seconds": round(seconds, 1),
    }
