"""A prepared data directory, opened once: its description, batches, text and trees."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from keras_transformer.core.vocabulary.language_codes import directions_of
from keras_transformer.kit.parsing.trees import Tree, read_trees
from keras_transformer.support.errors import InputError, require
from keras_transformer.support.files.paths import to_path
from pipelines.prepare.data_files import (
    METADATA_FILE,
    check_digest,
    check_records,
    check_size,
    text_file,
)
from pipelines.prepare.metadata import Metadata, SplitInfo, read_metadata

if TYPE_CHECKING:  # modules with TensorFlow, imported by methods on demand
    import tensorflow as tf

    from keras_transformer.core.vocabulary.pair import VocabularyPair


class DataSet:
    """A data directory, as read by training and evaluation. Opening it does not need TensorFlow.

    Batches are (source int32 [B, S], target int32 [B, T]), padded with 0; every row ends in EOS
    before its padding.

    Attributes:
        data_dir: the folder, as given.
        metadata: its description.

    Example:
        data = DataSet.open("data/en-de")
        for source, target in data.training_batches(tokens_per_batch=25_000, seed=1):
            ...
        sources, references = data.text("test")
    """

    def __init__(self, data_dir: str | os.PathLike, metadata: Metadata):
        self.data_dir = data_dir
        self.metadata = metadata
        self._folder = to_path(data_dir)

    @classmethod
    def open(cls, data_dir: str | os.PathLike) -> "DataSet":
        """Opens a data directory, checking that every file exists and has the right size.

        Raises:
            InputError: if the folder is not a data set, is incomplete, has another version, or has
                changed, missing or truncated files.
        """
        data = cls(data_dir, read_metadata(data_dir))
        data._check_files()
        return data

    def check(self) -> None:
        """Reads all files to the end.

        Raises:
            InputError: naming the first file that is missing, truncated, damaged or changed.
        """
        self._check_files()
        for info in self.metadata.splits.values():
            for name, digest in info.texts.items():
                check_digest(self._folder / name, digest)
            for name in info.shards:
                check_records(self._folder / name)

    def _check_files(self) -> None:
        """Checks the content of the vocabularies, and the sizes of the shards."""
        metadata = self.metadata
        check_digest(self._folder / metadata.vocabulary, metadata.fingerprint)
        if metadata.source_vocabulary is not None:
            check_digest(self._folder / metadata.source_vocabulary, metadata.source_fingerprint)
        for info in metadata.splits.values():
            for name, size in info.shards.items():
                check_size(self._folder / name, size)

    def split(self, name: str) -> SplitInfo:
        """Describes a split.

        Raises:
            InputError: if there is no such split.
        """
        splits = self.metadata.splits
        rule = f"must be one of {', '.join(splits)} in {self.data_dir}"
        require(name in splits, "split", rule, name)
        return splits[name]

    def files(self) -> list[str]:
        """The paths of all files in the data set."""
        names = [METADATA_FILE, *self.metadata.files()]
        return [os.path.join(self.data_dir, name) for name in names]

    def vocabularies(self) -> "VocabularyPair":
        """The source and target vocabularies."""
        from keras_transformer.core.vocabulary.pair import VocabularyPair

        return VocabularyPair.load(self.data_dir)

    def training_batches(self, tokens_per_batch: int, seed: int) -> "tf.data.Dataset":
        """Infinite batches from the training split, whose iterator can be saved and restored.

        Args:
            tokens_per_batch: maximum of rows x padded length in a batch, on either side.
            seed: determines all orders; equal seeds give equal batches.

        Raises:
            InputError: if a sentence does not fit into a batch.
        """
        from pipelines.batches.batching import epochs, prefetch

        info = self._training_split(tokens_per_batch)
        files = self._shards(info)
        dataset = epochs(files, info.pairs, info.longest, tokens_per_batch, seed)
        return dataset.apply(prefetch())

    def packed_training_batches(
        self, tokens_per_batch: int, seed: int, parts: int = 1, extra_target: int = 0
    ) -> "tf.data.Dataset":
        """Infinite batches of one shape from the training split, with several sentences a row.

        Args:
            tokens_per_batch: maximum of rows x length in a batch, on either side, before rounding
                up the rows.
            seed: determines all orders; equal seeds give equal batches.
            parts: the number of rows is a multiple of this.
            extra_target: how many ids the decoder reads for a target besides its own: 1 with a
                code.

        Raises:
            InputError: if a sentence does not fit into a batch.
        """
        from pipelines.batches.batching import prefetch
        from pipelines.batches.packing import PREFETCHED_BATCHES, batch_shape, packed_epochs

        info = self._training_split(tokens_per_batch)
        shape = batch_shape(info, tokens_per_batch, parts, extra_target)
        dataset = packed_epochs(self._shards(info), info.pairs, shape, seed, extra_target)
        return dataset.apply(prefetch(PREFETCHED_BATCHES))

    def _training_split(self, tokens_per_batch: int) -> SplitInfo:
        """Describes the training split; raises InputError if a sentence exceeds a batch."""
        info = self.split("train")
        require(
            tokens_per_batch >= info.longest,
            "tokens_per_batch",
            f"must be at least {info.longest}, the longest training sentence in {self.data_dir}",
            tokens_per_batch,
        )
        return info

    def evaluation_batches(self, split: str, tokens_per_batch: int) -> "tf.data.Dataset":
        """Batches for one pass over a split, with each usable pair once.

        A sentence longer than `tokens_per_batch` gets a larger batch, which fits in memory without
        gradients.

        Args:
            split: its name, e.g. "validation".
            tokens_per_batch: maximum of rows x padded length in a batch, on either side.

        Raises:
            InputError: if there is no such split.
        """
        from pipelines.batches.batching import one_pass, prefetch

        info = self.split(split)
        largest_batch = max(tokens_per_batch, info.longest)
        dataset = one_pass(self._shards(info), info.pairs, info.longest, largest_batch)
        return dataset.apply(prefetch())

    @contextlib.contextmanager
    def damage_named(self) -> Iterator[None]:
        """Replaces TensorFlow's error for a damaged or missing shard by one that names it.

        Raises:
            InputError: naming the shard.
        """
        import tensorflow as tf

        try:
            yield
        except (tf.errors.DataLossError, tf.errors.NotFoundError):
            try:
                self.check()
            except InputError as damage:
                raise damage from None
            raise

    def text(self, split: str) -> tuple[list[str], list[str]]:
        """Returns the original text of a split, with all of its pairs: (sources, references).

        Raises:
            InputError: if there is no such split or its text is not kept, as for the training
                split; and if the text is missing or was changed.
        """
        require(len(self.split(split).texts) > 0, "split", "must be one whose text is kept", split)
        return self._lines(split, "source"), self._lines(split, "target")

    def directions(self, split: str) -> list[str] | None:
        """Returns the direction of each pair in `text`, such as "en-de"; None if there is only one.

        Raises:
            InputError: like `text`.
        """
        if not directions_of(self.metadata.task_options):
            return None
        return self._lines(split, "directions")

    def trees(self, split: str) -> list[Tree]:
        """Returns the cleaned trees of a split, for all sentences; their words are its source text.

        Raises:
            InputError: if the data set is not from a treebank, or has no trees for that split; and
                if the trees are missing or were changed.
        """
        rule = "must be prepared from a treebank"
        task = self.metadata.task
        require(task == "parsing", "data_dir", rule, f"{self.data_dir}, for {task}")
        has_trees = text_file(self._folder, split, "trees").name in self.split(split).texts
        require(has_trees, "split", "must be one whose trees are kept", split)
        return list(read_trees(str(self._unchanged(split, "trees"))))

    def _lines(self, split: str, side: str) -> list[str]:
        """Returns the lines of a text file: one for each pair in the split, usable or not."""
        return self._unchanged(split, side).read_bytes().decode("utf-8").split("\n")[:-1]

    def _unchanged(self, split: str, side: str) -> Path:
        """Returns the path of a text file after checking that it is unchanged."""
        path = text_file(self._folder, split, side)
        check_digest(path, self.split(split).texts[path.name])
        return path

    def _shards(self, info: SplitInfo) -> list[str]:
        return [str(self._folder / name) for name in info.shards]
