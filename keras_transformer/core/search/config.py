"""Decoding options, and the paper's settings for each task. Does not import TensorFlow."""

import dataclasses
from typing import Annotated, NamedTuple

from keras_transformer.core.config import BOS_ID, EOS_ID, PAD_ID, TransformerConfig
from keras_transformer.support.errors import require
from keras_transformer.support.fields import (
    LARGEST_LENGTH,
    Amount,
    Count,
    Length,
    Positive,
    Rule,
    Seed,
    Size,
    between,
    check_fields,
    one_of,
    option,
    shown,
)

Utility = Annotated[str, one_of("chrf", "bleu")]  # of a translation, with another as its reference


@dataclasses.dataclass(frozen=True)
class SamplingConfig:
    """How tokens are sampled.

    Sentences at the same index in two batches use the same random numbers.
    """

    temperature: Positive = option(1.0, "Sampling temperature, which divides the logits.")
    top_k: Count = option(0, "Sample from the k most probable subwords; 0 for all.")
    top_p: Annotated[float, Rule("be in (0, 1]", lambda share: 0 < share <= 1)] = option(
        1.0, "Sample from the most probable subwords that sum to this probability."
    )
    seed: Seed = option(
        1, "Sampling seed. The same seed, texts and batches give the same translations."
    )

    def __post_init__(self):
        check_fields(self)


@dataclasses.dataclass(frozen=True)
class DecodingConfig:
    """How sentences are translated: the options of `keras_transformer.load`.

    The options that are flags have their help below. A phrase is forbidden as the subwords that it
    is encoded to at the beginning of a text or after a space.

    Args:
        extra_length: the number of subwords by which a translation may exceed its source (section
            6.1).
        max_source_length: the maximum number of source subwords, EOS included; longer sources are
            truncated.
        n_best: how many of the `beam_size` translations must be the best ones. With fewer, the
            search ends sooner. None for all.
        sampling: samples translations instead of searching for the best ones.
        mbr: "chrf" or "bleu" ranks the `beam_size` translations of a text by this utility (minimum
            Bayes risk, translate/minimum_risk.py). All of them are then searched exactly, whatever
            `n_best` is.
    """

    beam_size: Size = option(
        4, "Number of beams (section 6.1); 1 is greedy search. Default: 4; for parsing, 21."
    )
    alpha: Amount = option(
        0.6,
        "Length penalty (section 6.1); 0 ranks by log probability. Default: the value that "
        "evaluate chose for the model, or 0.6; for parsing, 0.3.",
    )
    extra_length: Annotated[int, between(0, LARGEST_LENGTH // 2)] = 50
    max_source_length: Annotated[int, between(2, LARGEST_LENGTH)] = 256
    batch_tokens: Length = option(4096, "Padded source tokens per batch; 4096 by default.")
    n_best: int | None = None
    sampling: SamplingConfig | None = None
    early_stopping: bool = option(
        False,
        "End a sentence's search when no unfinished hypothesis, at its current length, beats the "
        "worst finished one. Faster, but may miss longer hypotheses that would win.",
    )
    min_length: Count = option(0, "Minimum translation length in subwords, EOS included.")
    no_repeat_ngram_size: Annotated[int, between(0, 100)] = option(
        0, "Never repeat n-grams of this many subwords; 0 allows all."
    )
    forbidden_phrases: tuple[str, ...] = option(
        (), "File of phrases that no translation may contain, one per line."
    )
    mbr: Utility | None = None

    def __post_init__(self):
        is_sampling = self.sampling is None or isinstance(self.sampling, SamplingConfig)
        require(is_sampling, "sampling", "must be a SamplingConfig, or None", shown(self.sampling))
        check_fields(self)
        rule = f"must be from 1 to the beam size, {self.beam_size}"
        require(
            self.n_best is None or 1 <= self.n_best <= self.beam_size, "n_best", rule, self.n_best
        )

    @property
    def guaranteed(self) -> int:
        """How many of the translations must be the best ones."""
        return self.beam_size if self.mbr or self.n_best is None else self.n_best

    @property
    def is_greedy(self) -> bool:
        """Whether the search is greedy: it takes the most probable token at each step."""
        return self.beam_size == 1 and self.sampling is None

    def limits(self, *models: TransformerConfig) -> "LengthLimits":
        """Returns the length limits that all models support; some have few positions."""
        source = self.max_source_length
        target = self.max_source_length + self.extra_length
        positions = [model.longest_text for model in models if model.longest_text is not None]
        return LengthLimits(min([source, *positions]), min([target, *positions]))


@dataclasses.dataclass(frozen=True)
class LengthLimits:
    """The maximum lengths of a source and a translation in tokens, EOS included."""

    source: int
    target: int


class SearchSettings(NamedTuple):
    """The settings that are fixed during a search."""

    options: DecodingConfig
    forbidden: tuple[tuple[int, ...], ...] = ()  # sequences of ids that no hypothesis contains
    bos_id: int = BOS_ID  # the first input of every hypothesis, not part of it
    eos_id: int = EOS_ID  # ends a hypothesis, and counts towards its length
    pad_id: int = PAD_ID  # pads the results

    @property
    def is_restricted(self) -> bool:
        """Whether tokens may be banned (restrictions.py)."""
        options = self.options
        return bool(options.min_length > 1 or options.no_repeat_ngram_size or self.forbidden)


# How each task is decoded by default. Sources of up to `max_source_length` are always allowed,
# however short the training sources were.
TASKS = {
    "translation": DecodingConfig(
        beam_size=4, alpha=0.6, extra_length=50, max_source_length=2
    ),  # section 6.1
    # Section 6.3. A tree must contain all words of the sentence: none should be truncated.
    "parsing": DecodingConfig(beam_size=21, alpha=0.3, extra_length=300, max_source_length=1024),
}
