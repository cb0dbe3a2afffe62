"""Writes the files of a data set.

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

from keras_transformer.core.config import SUFFIXES
from keras_transformer.core.vocabulary.terms import options_of_terms
from keras_transformer.support.errors import require
from keras_transformer.support.progress import progress_bar
from pipelines.prepare import data_files, sharding
from pipelines.prepare.augmentation import Augmentation, augment
from pipelines.prepare.metadata import Metadata, SplitInfo, write_metadata
from pipelines.prepare.preparation_config import PreparationConfig
from pipelines.prepare.selection import Selection, select
from pipelines.prepare.sharding import Sharding
from pipelines.sources.many_languages import code_languages, with_codes
from pipelines.sources.source import Pair, Source

if TYPE_CHECKING:  # both import TensorFlow
    from keras_transformer.core.vocabulary.pair import VocabularyPair
    from pipelines.prepare.vocabulary import PairEncoder, SentenceSample

# More threads would wait for each other, as a seventh of the work holds Python's lock. Each thread
# has a block in memory.
_MAX_THREADS = 8
# metadata.json names arguments like the command line, and a property in words.
_RECORDED_PROPERTIES = {"split_sizes": "the split sizes of --dataset"}
_BAR = {"unit": " pairs", "mininterval": 1}
# Writes a source's training shards; the other arguments are the sizes of its parts, the shards,
# the folder of the vocabularies, and max_length.
TrainingWriter = Callable[[Source, list[int], Sharding, Path, int], None]


@dataclasses.dataclass
class Preparation:
    """The inputs of a data set."""

    source: Source
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


def recorded(settings: dict[str, Any]) -> dict[str, Any]:
    """Returns settings under their names in metadata.json."""
    return {_RECORDED_PROPERTIES.get(name, f"--{name}"): settings[name] for name in settings}


def write_data_set(preparation: Preparation, folder: Path) -> None:
    """Writes a data set into an empty folder.

    Raises:
        InputError: for unreadable text, or a split without usable pairs.
    """
    from keras_transformer.core.vocabulary.pair import VocabularyPair

    text = _prepare_text(preparation, folder)
    vocabularies = VocabularyPair.load(folder)
    splits = _write_splits(preparation, text, vocabularies, folder)
    selection = preparation.selection
    train = splits["train"]
    splits["train"] = dataclasses.replace(
        train,
        dropped=train.dropped | selection.dropped,
        examples=selection.examples,
        added=text.added,
    )
    write_metadata(folder, _metadata(preparation, vocabularies, splits))


def _prepare_text(preparation: Preparation, folder: Path) -> Augmentation:
    """Adds pairs to the training text, and writes the vocabularies.

    This reads the training text a second time, if there are pairs to add or vocabularies to learn.
    """
    config = preparation.config
    vocabularies = _vocabularies(preparation, folder)
    text = _read_again(preparation, [each for each in vocabularies if each.existing is None])
    for vocabulary in vocabularies:
        if vocabulary.existing is None:
            logging.info("learning %s on %d pairs", config.tokenizer, text.survey.counts["train"])
        vocabulary.write(config)
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
        with progress_bar(desc="reading train", total=survey.counts["train"], **_BAR) as bar:
            for block in _blocks(source.pairs("train")):
                show(block)
                bar.update(len(block))
    return Augmentation(source, survey, added={})


@dataclasses.dataclass(frozen=True)
class _Vocabulary:
    """A data set's vocabulary, either learned from text or an existing one."""

    file: Path  # where it is written
    existing: str | None  # the file of an existing vocabulary; None to learn one
    sides: Sequence[int]  # its side: 0 for the source, 1 for the target
    symbols: Sequence[str]  # words that get one id each
    languages: Sequence[str]  # languages whose codes get one id each
    term_marks: bool  # whether the marks of terms get one id each
    sample: "SentenceSample"  # the text that it is learned from

    def add(self, pairs: list[Pair]) -> None:
        """Adds pairs to the text that it is learned from."""
        self.sample.add(pair[side] for pair in pairs for side in self.sides)

    def write(self, config: PreparationConfig) -> None:
        from pipelines.prepare.vocabulary import adopt_subwords, learn_subwords

        if self.existing is not None:
            adopt_subwords(
                self.existing,
                self.file,
                config.vocab_size,
                self.symbols,
                self.languages,
                self.term_marks,
            )
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
            term_marks=self.term_marks,
        )


def _vocabularies(preparation: Preparation, folder: Path) -> list[_Vocabulary]:
    """Returns the shared vocabulary, or those of source and target."""
    from keras_transformer.core.vocabulary.pair import SEPARATE, SHARED
    from pipelines.prepare.vocabulary import SentenceSample

    config = preparation.config
    names = SHARED if config.shared_vocabulary else SEPARATE
    sides = [(0, 1)] if config.shared_vocabulary else [(0,), (1,)]
    existing = config.vocabulary or [None] * len(names)
    vocabularies = []
    for name, path, own_sides in zip(names, existing, sides, strict=True):
        file = folder / f"{name}{SUFFIXES[config.tokenizer]}"
        # Targets have the symbols, and sources begin with the codes.
        symbols = preparation.selection.survey.symbols if 1 in own_sides else ()
        languages = code_languages(preparation.source) if 0 in own_sides else ()
        sample = SentenceSample(config.seed)
        vocabularies.append(
            _Vocabulary(file, path, own_sides, symbols, languages, config.has_terms, sample)
        )
    return vocabularies


def _write_splits(
    preparation: Preparation, text: Augmentation, vocabularies: "VocabularyPair", folder: Path
) -> dict[str, SplitInfo]:
    """Writes the shards of all splits; reads the text for the last time."""
    from pipelines.prepare.vocabulary import PairEncoder

    source = with_codes(text.source)
    config = preparation.config
    encoder = PairEncoder(vocabularies, config.max_length)
    counts = text.survey.counts
    infos = {}
    # The large one last, so that errors in the small ones show early.
    for split in sorted(counts, key=lambda split: split == "train"):
        shards = Sharding(folder, split, counts[split], config.seed)
        if split != "train":
            rows = source.rows(split)
            pairs = data_files.keep_text(folder, split, source.kept_texts, rows)
            _write_blocks(shards, pairs, encoder, split, counts[split])
        elif preparation.write_training is None:
            _write_blocks(shards, source.pairs(split), encoder, split, counts[split])
        else:
            sizes = text.survey.part_sizes
            preparation.write_training(source, sizes, shards, folder, config.max_length)
        info = shards.finish(data_files.text_files(folder, split, source.kept_texts))
        _check_pairs(split, info, counts[split])
        _check_usable_pairs(split, info, config.max_length)
        infos[split] = info
    return {split: infos[split] for split in counts}


def _check_pairs(split: str, info: SplitInfo, expected: int) -> None:
    """Rejects text that has changed since it was read first."""
    pairs = info.pairs + sum(info.dropped.values())
    rule = f"must not change while it is prepared, and had {expected} pairs: prepare the data again"
    require(pairs == expected, split, rule, pairs)


def _check_usable_pairs(split: str, info: SplitInfo, max_length: int) -> None:
    too_long, blank = info.dropped["too_long"], info.dropped["blank"]
    require(
        info.pairs > 0,
        "max_length",
        f"must leave at least one pair in the split {split}",
        f"{max_length}, with {too_long} pairs too long and {blank} blank",
    )


def _write_blocks(
    shards: Sharding, pairs: Iterable[Pair], encoder: "PairEncoder", split: str, count: int
) -> None:
    """Encodes pairs and writes them as blocks, one block per thread at a time."""
    threads = min(_MAX_THREADS, os.cpu_count() or 1)
    with (
        progress_bar(desc=f"encoding {split}", total=count, **_BAR) as bar,
        ThreadPoolExecutor(threads) as pool,
    ):
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
    """Encodes and writes a block; returns its number of pairs."""
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
        task_options={**source.task_options(), **options_of_terms(preparation.config.has_terms)},
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
