"""How texts are decoded; the paper's settings for each task. Imports no TensorFlow."""

import dataclasses
from typing import Annotated

from keras_transformer.config import BOS_ID, EOS_ID, PAD_ID, TransformerConfig
from keras_transformer.errors import require
from keras_transformer.fields import Amount, Count, Positive, Rule, Seed, Size, check_fields, one_of

Utility = Annotated[str, one_of("chrf", "bleu")]  # of a translation, given another


@dataclasses.dataclass(frozen=True)
class SamplingConfig:
    """How tokens are drawn at random."""

    temperature: Positive = 1.0  # logits are divided by it
    top_k: Count = 0  # only the k most probable tokens; 0 for all
    # Only the most probable tokens that make up this probability.
    top_p: Annotated[float, Rule("be in (0, 1]", lambda share: 0 < share <= 1)] = 1.0
    seed: Seed = 1

    def __post_init__(self):
        check_fields(self)


@dataclasses.dataclass(frozen=True)
class BeamSearchConfig:
    """What decides the outcome of a search, given the probabilities."""

    beam_size: Size = 4  # K, section 6.1; 1 is greedy search
    alpha: Amount = 0.6  # length penalty, section 6.1; 0 ranks by log-probability
    n_best: int | None = None  # how many of the K must be exact; None for all
    sampling: SamplingConfig | None = None  # K random hypotheses instead of the best
    min_length: Count = 0  # fewest tokens of a hypothesis, EOS counted
    no_repeat_ngram_size: Count = 0  # no n-gram of this size twice in a hypothesis; 0 allows all
    forbidden: tuple[tuple[int, ...], ...] = ()  # sequences of ids that no hypothesis contains
    bos_id: int = BOS_ID  # the first input of every hypothesis, not a part of it
    eos_id: int = EOS_ID  # ends a hypothesis, and counts in its length
    pad_id: int = PAD_ID  # fills up what is returned

    def __post_init__(self):
        check_fields(self)
        rule = f"--n_best must be from 1 to the beam size, {self.beam_size}"
        require(self.n_best is None or 1 <= self.n_best <= self.beam_size, rule, self.n_best)

    @property
    def candidates(self) -> int:
        """C, the number of extensions that a step considers for each sentence."""
        return self.beam_size if self.sampling or self.beam_size == 1 else 2 * self.beam_size

    @property
    def is_restricted(self) -> bool:
        return bool(self.min_length > 1 or self.no_repeat_ngram_size or self.forbidden)


@dataclasses.dataclass(frozen=True)
class DecodingConfig:
    """How sentences are translated."""

    beam_size: Size = 4  # section 6.1; 1 is greedy search
    alpha: Amount = 0.6  # length penalty, section 6.1
    extra_length: Count = 50  # maximum output length = input length + 50, section 6.1
    # Subwords of a source, EOS included; the rest is cut off.
    max_source_length: Annotated[int, Rule("be at least 2", lambda length: length >= 2)] = 256
    batch_tokens: Size = 4096  # padded source tokens translated at once
    n_best: int | None = None  # translations that must be exact, of beam_size; None for all
    sampling: SamplingConfig | None = None  # random translations instead of the best
    min_length: Count = 0  # fewest subwords of a translation, EOS counted
    no_repeat_ngram_size: Count = 0  # no n-gram of so many subwords twice; 0 allows all
    forbidden_phrases: tuple[str, ...] = ()  # that no translation contains, as subwords
    mbr: Utility | None = None  # the translations are ranked by it: decoding/minimum_risk

    def __post_init__(self):
        check_fields(self)
        self.search()  # checks n_best

    def search(self, forbidden: tuple[tuple[int, ...], ...] = ()) -> BeamSearchConfig:
        """The settings of the search, given the ids of the forbidden phrases."""
        config = BeamSearchConfig(
            *(self.beam_size, self.alpha, self.n_best, self.sampling),
            *(self.min_length, self.no_repeat_ngram_size, forbidden),
        )
        return dataclasses.replace(config, n_best=None) if self.mbr else config

    def limits(self, model: TransformerConfig) -> tuple[int, int]:
        """The most tokens of a source and of a translation, EOS included."""
        source, target = self.max_source_length, self.max_source_length + self.extra_length
        last = model.max_positions if model.positions == "learned" else target
        return min(source, last), min(target, last)


# How each task is decoded unless told otherwise. `max_source_length` is what a source may always
# have, however short those of training were.
TASKS = {
    "translation": DecodingConfig(4, 0.6, 50, 2),  # section 6.1
    # Section 6.3. A tree must hold all words of the sentence: none should be cut off.
    "parsing": DecodingConfig(21, 0.3, 300, 1024),
}
