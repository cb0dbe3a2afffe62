"""Prepares a data directory: source -> vocabulary -> record shards -> metadata.

The same command resumes an interrupted preparation: it keeps the vocabulary, blocks and shards that
are complete (see `sharding`). It also repairs a data set: files that were damaged or lost are
written again, byte for byte the same, and no others. Text is encoded by one thread for each core,
in one process: the encoders are C++ and release Python's lock.
"""

import dataclasses
import errno
import itertools
import os
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from absl import logging
from tqdm import tqdm

from keras_transformer.config import SUFFIXES, VocabularySize, vocabulary_kind
from keras_transformer.errors import InputError, reason, require
from keras_transformer.fields import Count, FileName, Seed, check_fields
from keras_transformer.files import locked, to_path, write_json
from pipelines import records, sharding
from pipelines.records import Metadata, SplitInfo, read_metadata
from pipelines.selection import SelectionConfig, select
from pipelines.sharding import Sharding
from pipelines.sources import Pair, Source, check_files, sha256

if TYPE_CHECKING:
    from pipelines.vocabulary import PairEncoder

# Exists during a preparation, and after one that was interrupted.
_LOCK_FILE = "prepare.lock"
_STATE_FILE = "preparation.json"
_STATE = {"settings": dict[str, Any], "block_pairs": int, "counts": dict[FileName, Count]}
# More threads wait for one another, as a seventh of the work holds Python's lock. Each thread has a
# block in memory.
_MAX_THREADS = 8
_BAR = {"unit": " pairs", "mininterval": 1}
TrainingWriter = Callable[[Source, Sharding, Path, int], None]  # of data directory, max_length


@dataclasses.dataclass(frozen=True)
class PreparationConfig(SelectionConfig):
    """How text is prepared, whatever its source is."""

    tokenizer: records.Tokenizer = "bpe"
    vocab_size: VocabularySize | None = None  # of a learned one; None for 37,000, section 5.1
    max_length: int = 256  # of either side in ids, including EOS; longer pairs are left out
    seed: Seed = 1  # determines the order of pairs, and the text that a vocabulary is learned from
    shared_vocabulary: bool = True  # one for both sides, or one for each
    vocabulary: Sequence[str] = ()  # files of existing ones, in place of learned ones

    def __post_init__(self):
        check_fields(self)
        given = self.tokenizer != "pieces" or len(self.vocabulary) > 0
        require(given, "--tokenizer=pieces needs --vocabulary, of an imported model", "none")
        if self.vocab_size is None and not self.vocabulary:
            object.__setattr__(self, "vocab_size", 37000)
        rule = "--vocabulary must be one file, or SOURCE,TARGET with --shared_vocabulary=false"
        fits = len(self.vocabulary) in (0, 1 if self.shared_vocabulary else 2)
        require(fits, rule, ",".join(self.vocabulary))
        for path in self.vocabulary:
            check_files("--vocabulary", [path])
            kind = vocabulary_kind(path)
            rule = f"--tokenizer must be {kind} with --vocabulary={path}"
            require(self.tokenizer == kind, rule, self.tokenizer)
        rule = "--max_length must be at least 2, for a subword and EOS"
        require(self.max_length >= 2, rule, self.max_length)


def prepare(
    source: Source,
    data_dir: str | os.PathLike,
    config: PreparationConfig,
    write_training: TrainingWriter | None = None,
) -> dict[str, Any]:
    """Makes `data_dir` a data set of `source`, or repairs it where it is that data set already.

    `write_training` writes the training shards in place of the threads of this process; see `beam`.

    Returns:
        The result of the program: sizes, counts of dropped pairs, and whether there was nothing to
        do.

    Raises:
        InputError: for bad input, and for a folder that holds another data set or other files.
    """
    begin = time.monotonic()
    data_dir = to_path(data_dir)
    settings = {**source.settings(), **_flags(config)}
    metadata, damaged = _inspect(data_dir, settings)
    if metadata is None or damaged or (data_dir / _LOCK_FILE).exists():
        with _claimed(data_dir):
            metadata, damaged = _inspect(data_dir, settings)  # another process may have written it
            if metadata is None or damaged:
                with _full_disk_named(data_dir):
                    _write(source, data_dir, config, settings, metadata, damaged, write_training)
    up_to_date = metadata is not None and not damaged
    if up_to_date:
        logging.info("%s is up to date", data_dir)
    return _result(data_dir, up_to_date, time.monotonic() - begin)


def _flags(config: PreparationConfig) -> dict[str, Any]:
    flags = {f"--{name}": value for name, value in dataclasses.asdict(config).items()}
    return flags | {"--vocabulary": ["sha256:" + sha256(path)[:16] for path in config.vocabulary]}


def _inspect(data_dir: Path, settings: dict[str, Any]) -> tuple[Metadata | None, list[Path]]:
    """Metadata of the data set in `data_dir`, if there is one, and its damaged or missing files.

    Raises:
        InputError: if it was prepared with other settings.
    """
    if not (data_dir / records.METADATA_FILE).exists():
        return None, []
    metadata = read_metadata(data_dir, check_files=False)
    there = {**_flags(PreparationConfig()), **metadata.settings}  # older ones have fewer
    for name in {**settings, **there}:
        require(
            there.get(name) == settings.get(name),
            f"--data_dir={data_dir} holds a data set of another {name}: choose a new folder or "
            "delete this one",
            f"{settings.get(name)}, there: {there.get(name)}",
        )
    damaged = records.damaged_files(data_dir, metadata, read_records=True)
    return metadata, [path for path, _ in damaged]


@contextmanager
def _claimed(data_dir: Path) -> Iterator[None]:
    """Creates and locks `data_dir`, and removes temporary files at the end."""
    lock, metadata = data_dir / _LOCK_FILE, data_dir / records.METADATA_FILE
    # In this order, because another process removes its lock after it has written metadata.
    foreign = data_dir.is_dir() and records.leftovers(data_dir) and not lock.exists()
    require(
        not foreign or metadata.exists(),
        "--data_dir must be empty, new, or a data set",
        f"{data_dir}, which holds other files that would be overwritten",
    )
    with locked(lock, "data_dir"):
        yield
        records.remove_leftovers(data_dir, keep_data=True)
        lock.unlink()


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
    write_training: TrainingWriter | None,
) -> None:
    """Writes a new data set, or only the damaged files of the one that `metadata` describes."""
    from keras_transformer.vocabulary.pair import VocabularyPair  # imports TensorFlow
    from pipelines.vocabulary import PairEncoder

    for path in damaged:
        logging.warning("%s is missing or damaged, and is written again", path)
        path.unlink(missing_ok=True)
    source, dropped, examples = select(source, config)
    counts = _resumed_counts(data_dir, settings, config)
    if counts is None:
        counts = _begin(source, data_dir, config, settings, keep_data=metadata is not None)
    vocabularies = VocabularyPair.load(data_dir)
    encoder = PairEncoder(vocabularies, config.max_length)
    unwritten = {records.split_of(path) for path in damaged} if metadata else counts.keys()
    if write_training is not None and "train" in unwritten:
        shards = Sharding(data_dir, "train", counts["train"], config.seed)
        write_training(source, shards, data_dir, config.max_length)
    splits = {
        split: _write_split(source, data_dir, split, counts[split], config.seed, encoder)
        for split in counts
        if split in unwritten
    }
    if metadata is not None:
        for path, _ in records.damaged_files(data_dir, metadata, read_records=True):
            raise InputError(
                f"{path} must be the same when it is written again: prepare the data in a new "
                "folder. Received: another file, as of another version of the programs"
            )
        return
    train = splits["train"]
    splits["train"] = dataclasses.replace(train, dropped=train.dropped | dropped, examples=examples)
    own_source, vocabulary = vocabularies.own_source, vocabularies.target
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
        source_vocabulary=own_source and own_source.file.name,
        source_vocab_size=own_source and own_source.vocab_size,
        source_fingerprint=own_source and own_source.fingerprint,
    )
    records.write_metadata(data_dir, metadata)


def _vocabulary_files(data_dir: Path, config: PreparationConfig) -> list[Path]:
    """The vocabulary of both sides, or those of source and target."""
    from keras_transformer.vocabulary.pair import SEPARATE, SHARED

    names = SHARED if config.shared_vocabulary else SEPARATE
    return [data_dir / f"{name}{SUFFIXES[config.tokenizer]}" for name in names]


def _resumed_counts(
    data_dir: Path, settings: dict[str, Any], config: PreparationConfig
) -> dict[str, int] | None:
    """The pairs of each split, if an interrupted preparation can be resumed."""
    state = sharding.read_or_none(_STATE, data_dir / records.WORK_FOLDER / _STATE_FILE)
    if state is None:
        return None
    if state["settings"] != settings or state["block_pairs"] != sharding.BLOCK_PAIRS:
        logging.info("%s: starting again, because settings have changed", data_dir)
        return None
    if not all(file.exists() for file in _vocabulary_files(data_dir, config)):
        return None
    logging.info("%s: resuming an interrupted preparation", data_dir)
    return state["counts"]


def _begin(
    source: Source,
    data_dir: Path,
    config: PreparationConfig,
    settings: dict[str, Any],
    keep_data: bool,
) -> dict[str, int]:
    """Counts pairs and makes the vocabularies; after that a preparation can be resumed."""
    from pipelines.vocabulary import adopt_subwords, learn_subwords

    records.remove_leftovers(data_dir, keep_data)
    counts = source.counts()
    for side, file in enumerate(_vocabulary_files(data_dir, config)):
        symbols = [] if file.stem == "source_vocabulary" else source.symbols()
        if file.exists():
            continue
        if config.vocabulary:
            adopt_subwords(config.vocabulary[side], file, config.vocab_size, symbols)
            continue
        logging.info("learning %s on %d pairs", config.tokenizer, counts["train"])
        pairs = tqdm(source.pairs("train"), "reading train", counts["train"], **_BAR)
        both = itertools.chain.from_iterable(pairs)
        text = both if config.shared_vocabulary else (pair[side] for pair in pairs)
        kind, size = config.tokenizer, config.vocab_size
        learn_subwords(text, kind, size, data_dir, config.seed, symbols, file.stem)
    state = {"settings": settings, "block_pairs": sharding.BLOCK_PAIRS, "counts": counts}
    work = data_dir / records.WORK_FOLDER
    work.mkdir()
    write_json(work / _STATE_FILE, state)
    return counts


def _write_split(
    source: Source, data_dir: Path, split: str, count: int, seed: int, encoder: "PairEncoder"
) -> SplitInfo:
    shards = Sharding(data_dir, split, count, seed)
    info = shards.finished()
    if info is None:
        pairs = source.pairs(split)
        if split != "train":
            pairs = records.keep_text(data_dir, split, pairs)
            source.keep(data_dir, split)
        with tqdm(desc=f"encoding {split}", total=count, **_BAR) as bar:
            _write_blocks(shards, pairs, encoder, bar)
        info = shards.finish()
    require(
        split != "train" or info.pairs,
        "--max_length must leave at least one training pair",
        f"{encoder.max_length}, with {info.dropped['too_long']} pairs too long and "
        f"{info.dropped['blank']} blank",
    )
    return info


def _write_blocks(
    shards: Sharding, pairs: Iterable[Pair], encoder: "PairEncoder", bar: tqdm
) -> None:
    pairs, threads = iter(pairs), min(_MAX_THREADS, os.cpu_count() or 1)
    blocks = iter(lambda: list(itertools.islice(pairs, sharding.BLOCK_PAIRS)), [])
    with ThreadPoolExecutor(threads) as pool:
        writing = deque()
        for number, block in enumerate(blocks):
            writing.append(pool.submit(write_block, shards, number, block, encoder))
            if len(writing) > threads:  # bounds the text in memory
                bar.update(writing.popleft().result())
        for written in writing:
            bar.update(written.result())


def write_block(shards: Sharding, number: int, block: list[Pair], encoder: "PairEncoder") -> int:
    """Encodes and writes a block that does not exist; returns its number of pairs."""
    if not shards.has_block(number):
        dropped = Counter(blank=0, too_long=0)
        shards.write_block(number, encoder.encode(block, dropped), dropped)
    return len(block)


def _result(data_dir: Path, up_to_date: bool, seconds: float) -> dict[str, Any]:
    metadata = read_metadata(data_dir)
    return {
        "data_dir": str(data_dir),
        "up_to_date": up_to_date,
        "tokenizer": metadata.tokenizer,
        "vocab_size": metadata.vocab_size,
        "source_vocab_size": metadata.source_vocab_size,
        "pairs": {split: info.pairs for split, info in metadata.splits.items()},
        "dropped": {split: info.dropped for split, info in metadata.splits.items()},
        "seconds": round(seconds, 1),
    }
