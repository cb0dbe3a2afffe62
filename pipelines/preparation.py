"""Prepares a data directory: source -> vocabulary -> record shards -> metadata."""

import dataclasses
import fcntl
import itertools
import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from absl import logging
from tqdm import tqdm

from keras_transformer.config import EOS_ID
from keras_transformer.errors import InputError
from pipelines import records
from pipelines.records import EncodedPair, Metadata, SplitInfo, read_metadata
from pipelines.sources import Pair, Source

if TYPE_CHECKING:
    from pipelines.subwords import Subwords

# There from the first to the last moment of a preparation, and after one that was interrupted.
_LOCK_FILE = "prepare.lock"
_ENCODED_AT_ONCE = 4096


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
    """Makes `data_dir` a data set of `source`, unless it is that data set already.

    Returns:
        The program's result: sizes, what was dropped, and whether there was nothing to do.

    Raises:
        InputError: for bad input, and for a folder that holds another data set or foreign files.
    """
    begin = time.monotonic()
    data_dir = Path(data_dir)
    settings = {**source.settings(), **_flags(config)}
    up_to_date = (data_dir / records.METADATA_FILE).exists()
    if up_to_date:
        _check_settings(data_dir, read_metadata(data_dir).settings, settings)
        logging.info("%s is up to date", data_dir)
    else:
        with _claimed(data_dir):
            _write(source, data_dir, config, settings)
    return _result(data_dir, up_to_date, time.monotonic() - begin)


def _flags(config: PreparationConfig) -> dict[str, Any]:
    return {f"--{name}": value for name, value in dataclasses.asdict(config).items()}


def _check_settings(data_dir: Path, there: dict[str, Any], settings: dict[str, Any]) -> None:
    """Refuses to touch a data set that was made otherwise."""
    for name in {**settings, **there}:
        if there.get(name) != settings.get(name):
            raise InputError(
                f"--data_dir={data_dir} holds a data set whose {name} is another: choose a new "
                f"folder or delete this one. Received: {settings.get(name)}, there: "
                f"{there.get(name)}"
            )


@contextmanager
def _claimed(data_dir: Path) -> Iterator[None]:
    """Makes `data_dir`, clears what an interrupted preparation left, and keeps others out."""
    lock = data_dir / _LOCK_FILE
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
        if not lock.exists() and records.has_leftovers(data_dir):
            raise InputError(
                f"--data_dir must be empty, new, or a data set. Received: {data_dir}, which holds "
                "files of other origin that would be overwritten"
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
        records.remove_leftovers(data_dir)
        yield
        lock.unlink()


def _write(
    source: Source, data_dir: Path, config: PreparationConfig, settings: dict[str, Any]
) -> None:
    # Brings TensorFlow, which a look at metadata need not wait for.
    from pipelines.vocabulary import learn_subwords

    counts = source.counts()
    logging.info("learning %s on %d pairs", config.tokenizer, counts["train"])
    text = itertools.chain.from_iterable(_watched(source, "train", counts, "reading"))
    vocabulary = learn_subwords(
        text, config.tokenizer, config.vocab_size, data_dir, config.seed, source.symbols()
    )
    splits = {
        split: _write_split(source, data_dir, split, counts, vocabulary, config) for split in counts
    }
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


def _watched(source: Source, split: str, counts: dict[str, int], doing: str) -> Iterable[Pair]:
    """The pairs of a split under a progress bar on stderr."""
    return tqdm(
        source.pairs(split), f"{doing} {split}", counts[split], unit=" pairs", mininterval=1
    )


def _write_split(
    source: Source,
    data_dir: Path,
    split: str,
    counts: dict[str, int],
    vocabulary: "Subwords",
    config: PreparationConfig,
) -> SplitInfo:
    pairs = _watched(source, split, counts, "encoding")
    if split != "train":
        pairs = records.keep_text(data_dir, split, pairs)
        source.keep(data_dir, split)
    dropped = Counter(blank=0, too_long=0)
    encoded = _encoded(pairs, vocabulary, config.max_length, dropped)
    info = records.write_split(data_dir, split, encoded, counts[split], config.seed)
    if split == "train" and not info.pairs:
        raise InputError(
            f"--max_length must leave at least one training pair. Received: {config.max_length}, "
            f"with {dropped['too_long']} pairs too long and {dropped['blank']} blank"
        )
    return dataclasses.replace(info, dropped=dict(dropped))


def _encoded(
    pairs: Iterable[Pair], vocabulary: "Subwords", max_length: int, dropped: Counter
) -> Iterator[EncodedPair]:
    """Encodes pairs, EOS appended; leaves out and counts those with a blank or over-long side."""
    pairs = iter(pairs)
    while batch := list(itertools.islice(pairs, _ENCODED_AT_ONCE)):
        usable = [pair for pair in batch if pair[0].strip() and pair[1].strip()]
        dropped["blank"] += len(batch) - len(usable)
        sides = [vocabulary.encode([pair[side] for pair in usable]) for side in (0, 1)]
        for source, target in zip(*sides, strict=True):
            if max(len(source), len(target)) < max_length:
                yield [*source, EOS_ID], [*target, EOS_ID]
            else:
                dropped["too_long"] += 1


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
