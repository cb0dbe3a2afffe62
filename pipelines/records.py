"""What is known of the records of encoded pairs: the contents of metadata.json.

A record is a tf.train.Example with two int64 lists, "source" and "target": subword ids, each ending
in EOS, without BOS. Records are in TFRecord shards.
"""

import dataclasses
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from keras_transformer.config import SUFFIXES, Task, VocabularySize
from keras_transformer.errors import require
from keras_transformer.fields import Count, FileName, Rule, Size, one_of, whole_number
from keras_transformer.files.reading import file_digest
from pipelines.data_files import digest_of_beginning

FORMAT_VERSION = 2

# Ids per bar of the length histogram.
_HISTOGRAM_STEP = 8
Tokenizer = Annotated[str, one_of(*SUFFIXES)]
_Number = Annotated[str, Rule("be a number", lambda text: whole_number(text) is not None)]


@dataclasses.dataclass(frozen=True)
class SplitInfo:
    """The contents of one split's records. Lengths and counts are in ids and include EOS."""

    pairs: Count  # records, all usable
    dropped: dict[str, Count]  # reason -> pairs of the text that became no record
    source_tokens: Count
    target_tokens: Count
    longest_source: Count
    longest_target: Count
    length_histogram: dict[_Number, Count]  # "16": pairs whose longer side has 9 to 16 ids
    shards: dict[FileName, Count] = dataclasses.field(default_factory=dict)  # file name -> bytes
    beginnings: dict[FileName, str] = dataclasses.field(default_factory=dict)  # name -> digest
    texts: dict[FileName, str] = dataclasses.field(default_factory=dict)  # kept: name -> SHA-256
    examples: dict[str, list[list[str]]] = dataclasses.field(default_factory=dict)  # of `dropped`
    added: dict[str, Count] = dataclasses.field(default_factory=dict)  # kind -> pairs by `augment`

    def __post_init__(self):
        pairs = sum(self.length_histogram.values())
        require(
            self.pairs == pairs, "pairs", f"must be {pairs}, as in length_histogram", self.pairs
        )

    @property
    def longest(self) -> int:
        return max(self.longest_source, self.longest_target)

    @staticmethod
    def from_lengths(lengths: Sequence[tuple[int, int]], dropped: dict[str, int]) -> "SplitInfo":
        """Describes pairs by their (source, target) lengths, without shards."""
        sides = np.array(lengths, np.int64).reshape(-1, 2)
        source_tokens, target_tokens = sides.sum(axis=0).tolist()
        longest_source, longest_target = sides.max(axis=0, initial=0).tolist()
        bars = -(-sides.max(axis=1) // _HISTOGRAM_STEP)  # rounded up
        counts = Counter((bars * _HISTOGRAM_STEP).tolist())
        histogram = {str(bound): counts[bound] for bound in sorted(counts)}
        return SplitInfo(
            pairs=len(sides),
            dropped=dict(dropped),
            source_tokens=source_tokens,
            target_tokens=target_tokens,
            longest_source=longest_source,
            longest_target=longest_target,
            length_histogram=histogram,
        )

    @staticmethod
    def total(
        parts: Sequence["SplitInfo"], shards: Sequence[Path], texts: Sequence[Path] = ()
    ) -> "SplitInfo":
        """Describes all parts of a split together.

        Args:
            parts: the descriptions of the parts.
            shards: the files of their records.
            texts: the files of the text that is kept of the split.
        """
        dropped, histogram = Counter(), Counter()
        for part in parts:
            dropped.update(part.dropped)
            histogram.update(part.length_histogram)
        return SplitInfo(
            pairs=sum(part.pairs for part in parts),
            dropped=dict(dropped),
            source_tokens=sum(part.source_tokens for part in parts),
            target_tokens=sum(part.target_tokens for part in parts),
            longest_source=max((part.longest_source for part in parts), default=0),
            longest_target=max((part.longest_target for part in parts), default=0),
            length_histogram={bound: histogram[bound] for bound in sorted(histogram, key=int)},
            shards={shard.name: shard.stat().st_size for shard in shards},
            beginnings={shard.name: digest_of_beginning(shard) for shard in shards},
            texts={text.name: file_digest(text) for text in texts},
        )


def _can_train(splits: dict[str, SplitInfo]) -> bool:
    """Whether training has files to read; without any, it would look for them for ever."""
    return "train" in splits and len(splits["train"].shards) > 0


# Of a split without one, training would look for pairs for ever, and a validation would measure a
# loss of 0, as of a perfect model.
_USABLE = Rule(
    "have a pair that is neither blank nor longer than max_length", lambda info: info.pairs > 0
)


@dataclasses.dataclass(frozen=True)
class Metadata:
    """metadata.json: all that training and evaluation need to know about a data directory."""

    task: Task
    tokenizer: Tokenizer
    vocabulary: FileName  # of the target's, where the source has its own
    vocab_size: VocabularySize
    fingerprint: str  # SHA-256 of that file
    max_length: Size  # of either side in ids, including EOS
    # Of source and target; all, where task_options name several directions.
    languages: Annotated[list[str], Rule("be two names or more", lambda names: len(names) >= 2)]
    settings: dict[str, Any]  # the arguments and inputs of the preparation, to recognise them
    splits: Annotated[
        dict[FileName, Annotated[SplitInfo, _USABLE]], Rule("have train, with records", _can_train)
    ]
    # Of parsing, or of several directions (keras_transformer/language_codes.py).
    task_options: dict[str, Any] = dataclasses.field(default_factory=dict)
    source_vocabulary: FileName | None = None  # these three of the source's own, or None
    source_vocab_size: VocabularySize | None = None
    source_fingerprint: str | None = None
    format_version: int = FORMAT_VERSION

    def files(self) -> list[str]:
        """The names of all files that metadata.json describes."""
        names = [self.vocabulary]
        if self.source_vocabulary is not None:
            names.append(self.source_vocabulary)
        for info in self.splits.values():
            names += [*info.shards, *info.texts]
        return names
