"""Writes the files of a data set: all of them, or only damaged ones.

Text is encoded by one thread for each core, in one process: the encoders are C++ and release
Python's lock.
"""

import dataclasses
import functools
import itertools
import os
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from absl import logging
from tqdm import tqdm

from keras_transformer.config import SUFFIXES
from keras_transformer.errors import InputError, require
from keras_transformer.files.reading import file_digest
from pipelines import data_files, sharding, unfinished
from pipelines.augmentation import Augmentation, augment
from pipelines.damage import damaged_files
from pipelines.many_languages import with_codes
from pipelines.metadata import Metadata, SplitInfo, write_metadata
from pipelines.preparation_config import PreparationConfig
from pipelines.selection import Selection, select
from pipelines.sharding import Sharding
from pipelines.sources import Pair, Source
from pipelines.unfinished import WorkRecord

if TYPE_CHECKING:  # both import TensorFlow
    from keras_transformer.vocabulary.pair import VocabularyPair
    from pipelines.vocabulary import PairEncoder, SentenceSample

# More threads would wait for each other, as a seventh of the work holds Python's lock. Each thread
# has a block in memory.
_MAX_THREADS = 8
# metadata.json names arguments like the command line, and two properties in words.
_RECORDED_PROPERTIES = {
    "split_sizes": "the split sizes of --dataset",
    "grammar_sentences": "the grammar's sentences",
}
_BAR = {"unit": " pairs", "mininterval": 1}
# Writes a source's training shards; the other arguments are the sizes of its parts, the shards,
# data_dir and max_length.
TrainingWriter = Callable[[Source, list[int], Sharding, Path, int], None]


@dataclasses.dataclass
class Preparation:
    """The inputs and the destination of a data set."""

    source: Source
    data_dir: Path
    config: PreparationConfig
    write_training: TrainingWriter | None = None  # None: the threads of this process

    @functools.cached_property
    def selection(self) -> Selection:
        """The selected pairs; reads the text for the first time."""
        return select(self.source, self.config)

    @functools.cached_property
    def settings(self) -> dict[str, Any]:
        """The settings of source and configuration, by their names in metadata.json."""
        return recorded({**self.selection.survey.settings, **self.config.settings()})

    def vocabulary_files(self) -> list[Path]:
        """The file of the shared vocabulary, or those of source and target."""
        from keras_transformer.vocabulary.pair import SEPARATE, SHARED

        names = SHARED if self.config.shared_vocabulary else SEPARATE
        return [self.data_dir / f"{name}{SUFFIXES[self.config.tokenizer]}" for name in names]


def recorded(settings: dict[str, Any]) -> dict[str, Any]:
    """Returns settings under their names in metadata.json."""
    return {_RECORDED_PROPERTIES.get(name, f"--{name}"): settings[name] for name in settings}


def write_data_set(preparation: Preparation) -> None:
    """Writes a new data set, or resumes writing it.

    Raises:
        InputError: for unreadable text, or a split without usable pairs.
    """
    from keras_transformer.vocabulary.pair import VocabularyPair

    data_dir = preparation.data_dir
    if not _can_resume(preparation):
        _remove_interrupted(data_dir)
    text = _prepare_text(preparation)
    vocabularies = VocabularyPair.load(data_dir)
    splits = _write_splits(preparation, text, vocabularies, list(text.survey.counts))
    selection = preparation.selection
    train = splits["train"]
    splits["train"] = dataclasses.replace(
        train,
        dropped=train.dropped | selection.dropped,
        examples=selection.examples,
        added=text.added,
    )
    write_metadata(data_dir, _metadata(preparation, vocabularies, splits))


def repair_data_set(preparation: Preparation, metadata: Metadata, damaged: list[Path]) -> None:
    """Rewrites the damaged files of a data set, byte for byte.

    Args:
        preparation: the inputs of the data set.
        metadata: its metadata.
        damaged: its damaged or missing files.

    Raises:
        InputError: if the rewritten file differs, as with another version of a library.
    """
    from keras_transformer.vocabulary.pair import VocabularyPair

    data_dir = preparation.data_dir
    for path in damaged:
        logging.warning("rewriting %s, which is missing or damaged", path)
        path.unlink(missing_ok=True)
    if not _can_resume(preparation):
        unfinished.remove_work(data_dir, metadata.splits)
    text = _prepare_text(preparation)
    damaged_splits = {data_files.split_of(path) for path in damaged}
    splits = [split for split in text.survey.counts if split in damaged_splits]
    vocabularies = VocabularyPair.load(data_dir)
    _write_splits(preparation, text, vocabularies, splits, keep_shards=True)
    for error in damaged_files(data_dir, metadata, read_records=True):
        rule = "must be the same when rewritten: prepare the data in a new folder"
        raise InputError(None, rule, "different content, as from another version", error.place)


def _can_resume(preparation: Preparation) -> bool:
    """Whether an interrupted preparation with the same settings left its vocabularies."""
    data_dir = preparation.data_dir
    record = unfinished.read_record(data_dir)
    if record is None:
        return False
    if record.settings != preparation.settings:
        logging.info("%s: restarting, because settings have changed", data_dir)
        return False
    files = preparation.vocabulary_files()
    if not all(file.exists() for file in files) or record.vocabularies != _digests(files):
        return False
    logging.info("%s: resuming an interrupted preparation", data_dir)
    return True


def _remove_interrupted(data_dir: Path) -> None:
    """Removes the files of an interrupted preparation that its record names."""
    record = unfinished.read_record(data_dir)
    if record is not None:
        data_files.remove_files(data_dir, record.files)
    unfinished.remove_work(data_dir, [] if record is None else record.splits)


def _prepare_text(preparation: Preparation) -> Augmentation:
    """Augments the text, and writes missing vocabularies.

    This reads the training text a second time, if there are pairs to add or vocabularies to learn.
    After that, the preparation can be resumed.
    """
    config = preparation.config
    missing = [each for each in _vocabularies(preparation) if not each.file.exists()]
    text = _read_again(preparation, [each for each in missing if each.given is None])
    splits = list(text.survey.counts)
    files = _file_names(preparation, text)
    record = WorkRecord(preparation.settings, splits, files, vocabularies={})
    unfinished.write_record(preparation.data_dir, record)
    for vocabulary in missing:
        if vocabulary.given is None:
            logging.info("learning %s on %d pairs", config.tokenizer, text.survey.counts["train"])
        vocabulary.write(config)
    digests = _digests(preparation.vocabulary_files())
    unfinished.write_record(preparation.data_dir, dataclasses.replace(record, vocabularies=digests))
    return text


def _read_again(preparation: Preparation, learned: list["_Vocabulary"]) -> Augmentation:
    """Adds pairs, and collects the text that vocabularies are learned from."""
    source, survey = preparation.selection.source, preparation.selection.survey
    config = preparation.config

    def show(pairs: list[Pair]) -> None:
        for vocabulary in learned:
            vocabulary.add(pairs)

    if config.augment:
        return augment(source, survey, config.augment, config.seed, visit=lambda pair: show([pair]))
    if learned:
        with tqdm(desc="reading train", total=survey.counts["train"], **_BAR) as bar:
            for block in _blocks(source.pairs("train")):
                show(block)
                bar.update(len(block))
    return Augmentation(source, survey, added={})


def _file_names(preparation: Preparation, text: Augmentation) -> list[str]:
    """Returns the names of all files in the data set except metadata.json."""
    names = [file.name for file in preparation.vocabulary_files()]
    for split, pairs in text.survey.counts.items():
        names += sharding.shard_names(split, pairs)
        kept = data_files.text_files(preparation.data_dir, split, text.source.kept_texts)
        names += [file.name for file in kept]
    return names


def _digests(files: list[Path]) -> dict[str, str]:
    return {file.name: file_digest(file) for file in files}


@dataclasses.dataclass(frozen=True)
class _Vocabulary:
    """A data set's vocabulary, either learned from text or an existing one."""

    file: Path  # where it is written
    given: str | None  # an existing vocabulary; None to learn one
    sides: Sequence[int]  # its side: 0 for the source, 1 for the target
    symbols: Sequence[str]  # words that get one id each
    languages: Sequence[str]  # languages whose codes get one id each
    sample: "SentenceSample"  # the text that it is learned from

    def add(self, pairs: list[Pair]) -> None:
        """Adds pairs to the text that it is learned from."""
        self.sample.add(pair[side] for pair in pairs for side in self.sides)

    def write(self, config: PreparationConfig) -> None:
        from pipelines.vocabulary import adopt_subwords, learn_subwords

        if self.given is not None:
            adopt_subwords(self.given, self.file, config.vocab_size, self.symbols, self.languages)
            return
        learn_subwords(
            self.sample.sentences,
            kind=config.tokenizer,
            vocab_size=config.vocab_size,
            directory=self.file.parent,
            seed=config.seed,
            symbols=self.symbols,
            name=self.file.stem,
            languages=self.languages,
        )


def _vocabularies(preparation: Preparation) -> list[_Vocabulary]:
    """Returns the shared vocabulary, or those of source and target."""
    from pipelines.vocabulary import SentenceSample

    config = preparation.config
    files = preparation.vocabulary_files()
    sides = [(0, 1)] if config.shared_vocabulary else [(0,), (1,)]
    given = config.vocabulary or [None] * len(files)
    vocabularies = []
    for file, path, own_sides in zip(files, given, sides, strict=True):
        # Targets have the symbols, and sources begin with the codes.
        symbols = preparation.selection.survey.symbols if 1 in own_sides else ()
        languages = preparation.source.target_languages if 0 in own_sides else ()
        sample = SentenceSample(config.seed)
        vocabularies.append(_Vocabulary(file, path, own_sides, symbols, languages, sample))
    return vocabularies


def _write_splits(
    preparation: Preparation,
    text: Augmentation,
    vocabularies: "VocabularyPair",
    splits: list[str],
    keep_shards: bool = False,
) -> dict[str, SplitInfo]:
    """Writes the shards of `splits`; reads the text for the last time."""
    from pipelines.vocabulary import PairEncoder

    source = with_codes(text.source)
    data_dir = preparation.data_dir
    config = preparation.config
    encoder = PairEncoder(vocabularies, config.max_length)
    infos = {}
    # The large one last, so that errors in the small ones show early.
    for split in sorted(splits, key=lambda split: split == "train"):
        count = text.survey.counts[split]
        shards = Sharding(data_dir, split, count, config.seed, keep_shards)
        if preparation.write_training is not None and split == "train":
            sizes = text.survey.part_sizes
            preparation.write_training(source, sizes, shards, data_dir, config.max_length)
        info = shards.finished()
        if info is None:
            if split == "train":
                pairs = source.pairs(split)
            else:
                rows = source.rows(split)
                pairs = data_files.keep_text(data_dir, split, source.kept_texts, rows)
            with tqdm(desc=f"encoding {split}", total=count, **_BAR) as bar:
                _write_blocks(shards, pairs, encoder, bar)
            info = shards.finish(data_files.text_files(data_dir, split, source.kept_texts))
        _check_pairs(data_dir, split, info, count)
        _check_usable_pairs(split, info, config.max_length)
        infos[split] = info
    return {split: infos[split] for split in splits}


def _check_pairs(data_dir: Path, split: str, info: SplitInfo, expected: int) -> None:
    pairs = info.pairs + sum(info.dropped.values())
    rule = f"must have {expected} pairs: delete the folder, and prepare the data again"
    require(pairs == expected, split, rule, pairs, data_dir)


def _check_usable_pairs(split: str, info: SplitInfo, max_length: int) -> None:
    too_long, blank = info.dropped["too_long"], info.dropped["blank"]
    require(
        info.pairs > 0,
        "max_length",
        f"must leave at least one pair in the split {split}",
        f"{max_length}, with {too_long} pairs too long and {blank} blank",
    )


def _write_blocks(
    shards: Sharding, pairs: Iterable[Pair], encoder: "PairEncoder", bar: tqdm
) -> None:
    """Encodes pairs and writes them as blocks, one block per thread at a time."""
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
    """Splits pairs into blocks of BLOCK_PAIRS, the last one possibly smaller."""
    pairs = iter(pairs)
    while block := list(itertools.islice(pairs, sharding.BLOCK_PAIRS)):
        yield block


def write_block(shards: Sharding, number: int, block: list[Pair], encoder: "PairEncoder") -> int:
    """Encodes and writes a block if it does not exist; returns its number of pairs."""
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
