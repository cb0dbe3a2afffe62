"""Writes the files of a data set: all of them, or only those that are damaged.

Text is encoded by one thread for each core, in one process: the encoders are C++ and release
Python's lock.
"""

import dataclasses
import itertools
import os
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from absl import logging
from tqdm import tqdm

from keras_transformer.config import SUFFIXES
from keras_transformer.errors import InputError, require
from keras_transformer.files.reading import file_digest
from pipelines import data_files, sharding, unfinished
from pipelines.augmentation import augment
from pipelines.damage import damaged_files
from pipelines.many_languages import with_codes
from pipelines.metadata import write_metadata
from pipelines.preparation_config import PreparationConfig
from pipelines.records import Metadata, SplitInfo
from pipelines.selection import select
from pipelines.sharding import Sharding
from pipelines.sources import Pair, Source
from pipelines.unfinished import WorkRecord

if TYPE_CHECKING:  # both import TensorFlow
    from keras_transformer.vocabulary.pair import VocabularyPair
    from pipelines.vocabulary import PairEncoder

# More threads wait for one another, as a seventh of the work holds Python's lock. Each thread has a
# block in memory.
_MAX_THREADS = 8
_BAR = {"unit": " pairs", "mininterval": 1}
# Writes the training shards of a source; the other arguments are data_dir and max_length.
TrainingWriter = Callable[[Source, Sharding, Path, int], None]


@dataclasses.dataclass(frozen=True)
class Preparation:
    """What a data set is made of, and where."""

    source: Source
    data_dir: Path
    config: PreparationConfig
    settings: dict[str, Any]  # of source and config, as metadata.json has them
    write_training: TrainingWriter | None = None  # None: the threads of this process


def write_data_set(preparation: Preparation) -> None:
    """Writes a new data set, or resumes writing it.

    Raises:
        InputError: for text that cannot be read, or that leaves no pair of a split.
    """
    from keras_transformer.vocabulary.pair import VocabularyPair

    config = preparation.config
    selection = select(preparation.source, config)
    augmentation = augment(selection.source, config.augment, config.seed)
    preparation = dataclasses.replace(preparation, source=augmentation.source)
    counts = _resumed_counts(preparation)
    if counts is None:
        _remove_interrupted(preparation.data_dir)
        counts = _begin(preparation)
    vocabularies = VocabularyPair.load(preparation.data_dir)
    splits = _write_splits(preparation, vocabularies, counts, list(counts))
    train = splits["train"]
    splits["train"] = dataclasses.replace(
        train,
        dropped=train.dropped | selection.dropped,
        examples=selection.examples,
        added=augmentation.added,
    )
    metadata = _metadata(preparation, vocabularies, splits)
    write_metadata(preparation.data_dir, metadata)


def repair_data_set(preparation: Preparation, metadata: Metadata, damaged: list[Path]) -> None:
    """Writes the damaged files of a data set again, byte for byte as they were.

    Args:
        preparation: what the data set was made of.
        metadata: of the data set.
        damaged: its files that are damaged or missing.

    Raises:
        InputError: if another file is written, as another version of a library may do it.
    """
    from keras_transformer.vocabulary.pair import VocabularyPair

    data_dir = preparation.data_dir
    for path in damaged:
        logging.warning("%s is missing or damaged, and is written again", path)
        path.unlink(missing_ok=True)
    config = preparation.config
    selection = select(preparation.source, config)
    augmentation = augment(selection.source, config.augment, config.seed)
    preparation = dataclasses.replace(preparation, source=augmentation.source)
    counts = _resumed_counts(preparation)
    if counts is None:
        unfinished.remove_work(data_dir, metadata.splits)
        counts = _begin(preparation)
    damaged_splits = {data_files.split_of(path) for path in damaged}
    splits = [split for split in counts if split in damaged_splits]
    _write_splits(preparation, VocabularyPair.load(data_dir), counts, splits, keep_shards=True)
    for damage in damaged_files(data_dir, metadata, read_records=True):
        rule = "must be the same when it is written again: prepare the data in a new folder"
        received = "another file, as of another version of the programs"
        raise InputError(None, rule, received, damage.path)


def _resumed_counts(preparation: Preparation) -> dict[str, int] | None:
    """Split -> number of pairs, if an interrupted preparation can be resumed."""
    data_dir = preparation.data_dir
    record = unfinished.read_record(data_dir)
    if record is None:
        return None
    same_settings = record.settings == preparation.settings
    if not same_settings or record.block_pairs != sharding.BLOCK_PAIRS:
        logging.info("%s: starting again, because settings have changed", data_dir)
        return None
    files = _vocabulary_files(data_dir, preparation.config)
    if not all(file.exists() for file in files) or record.vocabularies != _digests(files):
        return None
    logging.info("%s: resuming an interrupted preparation", data_dir)
    return record.counts


def _remove_interrupted(data_dir: Path) -> None:
    """Removes what an interrupted preparation has written, as far as its record names it."""
    record = unfinished.read_record(data_dir)
    if record is not None:
        data_files.remove_files(data_dir, record.files)
    unfinished.remove_work(data_dir, [] if record is None else record.counts)


def _begin(preparation: Preparation) -> dict[str, int]:
    """Counts pairs and makes the vocabularies; after that a preparation can be resumed."""
    data_dir = preparation.data_dir
    counts = preparation.source.counts()
    vocabularies = _vocabulary_files(data_dir, preparation.config)
    files = [file.name for file in vocabularies]
    for split, pairs in counts.items():
        files += sharding.shard_names(split, pairs)
        texts = data_files.text_files(data_dir, split, preparation.source.kept_texts)
        files += [file.name for file in texts]
    record = WorkRecord(preparation.settings, sharding.BLOCK_PAIRS, counts, files, vocabularies={})
    unfinished.write_record(data_dir, record)
    for side, file in enumerate(vocabularies):
        if not file.exists():
            _make_vocabulary(preparation, side, file, counts["train"])
    record = dataclasses.replace(record, vocabularies=_digests(vocabularies))
    unfinished.write_record(data_dir, record)
    return counts


def _digests(files: list[Path]) -> dict[str, str]:
    return {file.name: file_digest(file) for file in files}


def _vocabulary_files(data_dir: Path, config: PreparationConfig) -> list[Path]:
    """The file of the vocabulary of both sides, or those of source and target."""
    from keras_transformer.vocabulary.pair import SEPARATE, SHARED

    names = SHARED if config.shared_vocabulary else SEPARATE
    return [data_dir / f"{name}{SUFFIXES[config.tokenizer]}" for name in names]


def _make_vocabulary(preparation: Preparation, side: int, file: Path, train_pairs: int) -> None:
    """Learns a vocabulary, or takes an existing one.

    Args:
        preparation: what the data set is made of.
        side: 0 for the vocabulary of the source, or of both sides; 1 for that of the target.
        file: where it is written.
        train_pairs: number of training pairs.
    """
    from pipelines.vocabulary import adopt_subwords, learn_subwords

    config = preparation.config
    is_source_alone = side == 0 and not config.shared_vocabulary
    is_target_alone = side == 1
    symbols = [] if is_source_alone else preparation.source.symbols()
    languages = () if is_target_alone else preparation.source.target_languages
    if config.vocabulary:
        adopt_subwords(config.vocabulary[side], file, config.vocab_size, symbols, languages)
        return
    logging.info("learning %s on %d pairs", config.tokenizer, train_pairs)
    pairs = tqdm(preparation.source.pairs("train"), "reading train", train_pairs, **_BAR)
    if config.shared_vocabulary:
        sentences = itertools.chain.from_iterable(pairs)
    else:
        sentences = (pair[side] for pair in pairs)
    learn_subwords(
        sentences,
        kind=config.tokenizer,
        vocab_size=config.vocab_size,
        directory=file.parent,
        seed=config.seed,
        symbols=symbols,
        name=file.stem,
        languages=languages,
    )


def _write_splits(
    preparation: Preparation,
    vocabularies: "VocabularyPair",
    counts: dict[str, int],
    splits: list[str],
    keep_shards: bool = False,
) -> dict[str, SplitInfo]:
    """Writes the shards of `splits`; `counts` has the number of pairs of every split."""
    from pipelines.vocabulary import PairEncoder

    source = with_codes(preparation.source)
    data_dir = preparation.data_dir
    config = preparation.config
    encoder = PairEncoder(vocabularies, config.max_length)
    infos = {}
    # The large one last, so that what is wrong with the small ones shows early.
    for split in sorted(splits, key=lambda split: split == "train"):
        shards = Sharding(data_dir, split, counts[split], config.seed, keep_shards)
        if preparation.write_training is not None and split == "train":
            preparation.write_training(source, shards, data_dir, config.max_length)
        info = shards.finished()
        if info is None:
            pairs = source.pairs(split)
            if split != "train":
                pairs = data_files.keep_text(data_dir, split, pairs)
                source.keep(data_dir, split)
            with tqdm(desc=f"encoding {split}", total=counts[split], **_BAR) as bar:
                _write_blocks(shards, pairs, encoder, bar)
            info = shards.finish(data_files.text_files(data_dir, split, source.kept_texts))
        _check_pairs(data_dir, split, info, counts[split])
        _check_usable_pairs(split, info, config.max_length)
        infos[split] = info
    return {split: infos[split] for split in splits}


def _check_pairs(data_dir: Path, split: str, info: SplitInfo, expected: int) -> None:
    pairs = info.pairs + sum(info.dropped.values())
    rule = f"must have its {expected} pairs: delete the folder, and prepare the data again"
    require(pairs == expected, split, rule, pairs, data_dir)


def _check_usable_pairs(split: str, info: SplitInfo, max_length: int) -> None:
    too_long, blank = info.dropped["too_long"], info.dropped["blank"]
    require(
        info.pairs > 0,
        "max_length",
        f"must leave at least one pair of the split {split}",
        f"{max_length}, with {too_long} pairs too long and {blank} blank",
    )


def _write_blocks(
    shards: Sharding, pairs: Iterable[Pair], encoder: "PairEncoder", bar: tqdm
) -> None:
    """Encodes pairs and writes them as blocks, one block a thread at a time."""
    threads = min(_MAX_THREADS, os.cpu_count() or 1)
    with ThreadPoolExecutor(threads) as pool:
        writing = deque()
        for number, block in enumerate(_blocks(pairs)):
            writing.append(pool.submit(write_block, shards, number, block, encoder))
            if len(writing) > threads:  # bounds the text in memory
                bar.update(writing.popleft().result())
        for written in writing:
            bar.update(written.result())


def _blocks(pairs: Iterable[Pair]) -> Iterator[list[Pair]]:
    """Cuts pairs into blocks of BLOCK_PAIRS, the last of which may have fewer."""
    pairs = iter(pairs)
    while block := list(itertools.islice(pairs, sharding.BLOCK_PAIRS)):
        yield block


def write_block(shards: Sharding, number: int, block: list[Pair], encoder: "PairEncoder") -> int:
    """Encodes and writes a block that does not exist; returns its number of pairs."""
    if not shards.has_block(number):
        dropped = Counter(blank=0, too_long=0)
        shards.write_block(number, encoder.encode(block, dropped), dropped)
    return len(block)


def _metadata(
    preparation: Preparation, vocabularies: "VocabularyPair", splits: dict[str, SplitInfo]
) -> Metadata:
    source = preparation.source
    target_vocabulary = vocabularies.target
    metadata = Metadata(
        task=source.task,
        task_options=source.task_options(),
        tokenizer=target_vocabulary.kind,
        vocabulary=target_vocabulary.file.name,
        vocab_size=target_vocabulary.vocab_size,
        fingerprint=target_vocabulary.fingerprint,
        max_length=preparation.config.max_length,
        languages=list(source.languages),
        settings=preparation.settings,
        splits=splits,
    )
    source_vocabulary = vocabularies.own_source
    if source_vocabulary is None:
        return metadata
    return dataclasses.replace(
        metadata,
        source_vocabulary=source_vocabulary.file.name,
        source_vocab_size=source_vocabulary.vocab_size,
        source_fingerprint=source_vocabulary.fingerprint,
    )
