"""How text is prepared: vocabulary, maximum length, order, and selection of pairs."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from keras_transformer.core.config import VocabularySize, vocabulary_kind
from keras_transformer.support.errors import require
from keras_transformer.support.fields import LARGEST_LENGTH, Seed, option
from pipelines.prepare.augmentation import AugmentShares
from pipelines.prepare.metadata import Tokenizer
from pipelines.prepare.selection import SelectionConfig
from pipelines.sources.text_files import check_files, content_digests

_PAPER_VOCAB_SIZE = 37000  # section 5.1


@dataclasses.dataclass(frozen=True)
class PreparationConfig(SelectionConfig):
    """How text from any source is prepared; see the `help` of each field.

    Raises:
        InputError: for an argument that breaks a rule, and for unreadable files.
    """

    tokenizer: Tokenizer = option(
        "bpe",
        "Kind of vocabulary: bpe (section 5.1), wordpiece, or pieces, as in imported models, "
        "which requires an existing vocabulary.",
    )
    vocab_size: VocabularySize | None = option(
        None,
        "Number of ids in a vocabulary, including the four special ones. Default: "
        f"{_PAPER_VOCAB_SIZE} (section 5.1), or that of an existing vocabulary.",
    )
    max_length: int = option(
        256, "Maximum number of ids on either side, including EOS; longer pairs are dropped."
    )
    seed: Seed = option(
        1,
        "Seed for the order of the pairs, the sample of text that vocabularies are learned from, "
        "and the choice of augmented pairs.",
    )
    shared_vocabulary: bool = option(
        True, "Share one vocabulary between both sides, or use one for each."
    )
    vocabulary: Sequence[str] = option(
        (),
        "Existing vocabulary to use instead of learning one: a file, or SOURCE,TARGET without a "
        "shared vocabulary.",
    )
    augment: AugmentShares | None = option(
        None,
        "Training pairs to add, as shares of all pairs, e.g. upper:0.05,typos:0.1. Kinds: "
        "upper (copies in capitals), title (in title case), typos (with typos in the "
        "source), no_stop (without the full stop at the end), terms (with translations of words in "
        "the source, so that the model can use a terminology), words (pairs of single words).",
    )

    @property
    def has_terms(self) -> bool:
        """Whether models of the data learn to use a terminology."""
        return "terms" in (self.augment or {})

    def __post_init__(self):
        super().__post_init__()
        if self.tokenizer == "pieces":
            rule = "must be given with tokenizer=pieces: an imported model's vocabulary"
            require(len(self.vocabulary) > 0, "vocabulary", rule, "none")
        if self.vocab_size is None and not self.vocabulary:
            object.__setattr__(self, "vocab_size", _PAPER_VOCAB_SIZE)
        self._check_vocabulary()
        rule = "must be at least 2, for a subword and EOS"
        require(self.max_length >= 2, "max_length", rule, self.max_length)
        rule = f"must be at most {LARGEST_LENGTH}"
        require(self.max_length <= LARGEST_LENGTH, "max_length", rule, self.max_length)

    def _check_vocabulary(self) -> None:
        rule = "must be True with augment=terms, whose targets are written into sources"
        is_shared = self.shared_vocabulary or not self.has_terms
        require(is_shared, "shared_vocabulary", rule, self.shared_vocabulary)
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

    def require_whole_trees(self) -> None:
        """Rejects settings that select or change sentences, or split the tokens of a tree.

        Raises:
            InputError: for the first of them.
        """
        of_sentences = [*(field.name for field in dataclasses.fields(SelectionConfig)), "augment"]
        for field in dataclasses.fields(self):
            if field.name in of_sentences:
                value = getattr(self, field.name)
                rule = "must not be given with dataset=treebank"
                require(value == field.default, field.name, rule, value)
        rule = "must be bpe with dataset=treebank, which keeps brackets whole"
        require(self.tokenizer == "bpe", "tokenizer", rule, self.tokenizer)

    def settings(self) -> dict[str, Any]:
        """Returns argument -> JSON value; equal settings give equal data for equal pairs."""
        settings = dataclasses.asdict(self)
        settings["vocabulary"] = content_digests(self.vocabulary)
        return settings
