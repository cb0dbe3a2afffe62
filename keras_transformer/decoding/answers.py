"""What a Translator answers."""

from typing import NamedTuple

import numpy as np


class AlignedPair(NamedTuple):
    """The subwords of a text and of a translation of it: how probable, and aligned with what."""

    source_pieces: list[str]  # S subwords, "</s>" last
    target_pieces: list[str]  # T
    source_words: list[int]  # S numbers of words, those between spaces; -1 for none
    target_words: list[int]  # T
    log_probs: list[float]  # T, of a subword after those before it; natural logarithm
    alignment: list[int]  # T source positions; see attention_maps.alignment

    @property
    def pharaoh(self) -> str:
        """The aligned words in the Pharaoh format: "0-0 1-2", source before target, from 0."""
        sources = [self.source_words[place] for place in self.alignment]
        links = zip(sources, self.target_words, self.target_pieces, strict=True)
        words = {(i, j) for i, j, piece in links if min(i, j) >= 0 and piece != "</s>"}
        return " ".join(f"{i}-{j}" for i, j in sorted(words))


class Translation(NamedTuple):
    """One answer to a sentence."""

    text: str
    score: float  # log-probability / length penalty; with `mbr`, expected utility in percent
    log_prob: float  # natural logarithm, EOS included
    tokens: int  # subwords, EOS counted
    truncated: bool = False  # the source was longer than the limit; its end was not translated
    unfinished: bool = False  # the translation reached its length limit before EOS


class AlignedTranslation(NamedTuple):
    """One answer to a sentence: a Translation, and what its subwords are aligned with."""

    text: str
    score: float
    log_prob: float
    tokens: int
    truncated: bool
    unfinished: bool
    pair: AlignedPair


class TargetScore(NamedTuple):
    """How probable the model finds a given translation."""

    log_prob: float  # natural logarithm, EOS included
    tokens: int  # subwords, EOS counted
    truncated: bool = False  # source or target was longer than the limit; its end did not count


class PairAttention(NamedTuple):
    """What predicting each of T target tokens attends to; see decoding/attention_maps.py."""

    source_pieces: list[str]  # S subwords, "</s>" last
    target_pieces: list[str]  # T
    encoder: np.ndarray  # float32 [N, H, S, S]
    decoder: np.ndarray  # float32 [N, H, T, T]
    memory: np.ndarray  # float32 [N, H, T, S]
    alignment: np.ndarray  # int32 [T], source positions
