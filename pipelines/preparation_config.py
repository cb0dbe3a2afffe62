"""How text is prepared: the vocabulary, the longest pairs, the order, and which pairs are used."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from keras_transformer.config import VocabularySize, vocabulary_kind
from keras_transformer.errors import require
from keras_transformer.fields import LARGEST_LENGTH, Seed, check_fields
from pipelines.augmentation import AugmentShares
from pipelines.metadata import Tokenizer
from pipelines.selection import SelectionConfig
from pipelines.text_files import check_files, content_digests

_PAPER_VOCAB_SIZE = 37000  # section 5.1


@dataclasses.dataclass(frozen=True)
class PreparationConfig(SelectionConfig):
    """How text is prepared, whatever its source is.

    Args:
        tokenizer: the kind of vocabulary: "bpe" (section 5.1), "wordpiece", or "pieces", which is
            that of imported models and goes with `vocabulary`.
        vocab_size: ids of a vocabulary, the four special ones included. None stands for the 37,000
            of section 5.1, or for the ids of `vocabulary`.
        max_length: largest number of ids of either side, EOS included; longer pairs are left out.
        seed: determines the order of the pairs, the text that a vocabulary is learned from, and
            which pairs are augmented.
        shared_vocabulary: one vocabulary for both sides, or one for each.
        vocabulary: files of existing vocabularies, used in place of learned ones: one file, or two,
            of source and target, with shared_vocabulary=False.
        augment: kind -> share of further training pairs of that kind, as {"upper": 0.05}; see
            `augmentation.augment`. None for none.

    The other arguments select the training pairs: see `SelectionConfig`.

    Raises:
        InputError: for an argument that breaks a rule, and for files that cannot be read.
    """

    tokenizer: Tokenizer = "bpe"
    vocab_size: VocabularySize | None = None
    max_length: int = 256
    seed: Seed = 1
    shared_vocabulary: bool = True
    vocabulary: Sequence[str] = ()
    augment: AugmentShares | None = None

    def __post_init__(self):
        check_fields(self)
        if self.tokenizer == "pieces":
            rule = "must be given with tokenizer=pieces: that of an imported model"
            require(len(self.vocabulary) > 0, "vocabulary", rule, "none")
        if self.vocab_size is None and not self.vocabulary:
            object.__setattr__(self, "vocab_size", _PAPER_VOCAB_SIZE)
        self._check_vocabulary()
        rule = "must be at least 2, for a subword and EOS"
        require(self.max_length >= 2, "max_length", rule, self.max_length)
        rule = f"must be at most {LARGEST_LENGTH}"
        require(self.max_length <= LARGEST_LENGTH, "max_length", rule, self.max_length)

    def _check_vocabulary(self) -> None:
        if not self.vocabulary:
            return
        wanted = 1 if self.shared_vocabulary else 2
        rule = "must be one file, or SOURCE,TARGET with shared_vocabulary=False"
        require(len(self.vocabulary) == wanted, "vocabulary", rule, ",".join(self.vocabulary))
        for path in self.vocabulary:
            check_files("vocabulary", [path])
            kind = vocabulary_kind(path)
            rule = f"must be {kind} with vocabulary={path}"
            require(self.tokenizer == kind, "tokenizer", rule, self.tokenizer)

    def settings(self) -> dict[str, Any]:
        """Argument -> JSON value; equal settings prepare equal pairs equally."""
        settings = dataclasses.asdict(self)
        settings["vocabulary"] = content_digests(self.vocabulary)
        return settings
