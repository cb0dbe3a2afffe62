"""The answers of a Translator, made from an engine's results."""

import dataclasses
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from keras_transformer.core.search.engines.engine import Explained, Rows
from keras_transformer.core.search.hypotheses import Hypotheses
from keras_transformer.core.vocabulary.pair import VocabularyPair
from keras_transformer.core.vocabulary.spans import Span, piece_spans
from keras_transformer.core.vocabulary.subwords import spelled
from keras_transformer.core.vocabulary.terms import remove_terms


class Link(NamedTuple):
    """A part of a text, and the part of its translation that is aligned with it."""

    source: Span
    target: Span


class AlignedPair(NamedTuple):
    """The subwords of a text and its translation, with probabilities and alignment."""

    source_pieces: list[str]  # S subwords, "</s>" last
    target_pieces: list[str]  # T subwords, "</s>" last
    source_words: list[int]  # S word numbers, words being separated by spaces; -1 for none
    target_words: list[int]  # T word numbers, likewise
    # T, of each subword given the previous ones; natural logarithm; None if scores are not wanted
    log_probs: list[float] | None
    alignment: list[int]  # T source positions; see search/alignment.py

    @property
    def pharaoh(self) -> str:
        """The aligned words in the Pharaoh format: "0-0 1-2", source before target, from 0."""
        sources = [self.source_words[position] for position in self.alignment]
        links = zip(sources, self.target_words, self.target_pieces, strict=True)
        words = {(i, j) for i, j, piece in links if min(i, j) >= 0 and piece != "</s>"}
        return " ".join(f"{i}-{j}" for i, j in sorted(words))

    def links(self, source: str, target: str) -> list[Link]:
        """The aligned characters of both texts: by subwords, or else by words."""
        sources = piece_spans(source, self.source_pieces, self.source_words)
        targets = piece_spans(target, self.target_pieces, self.target_words)
        pairs = [(sources[i], span) for i, span in zip(self.alignment, targets, strict=True)]
        return [Link(*pair) for pair in pairs if None not in pair]


@dataclasses.dataclass(frozen=True)
class Translation:
    """One answer to a sentence."""

    text: str
    # Log probability / length penalty; with `mbr`, expected utility in percent. None if scores were
    # neither requested nor needed by the search.
    score: float | None
    log_prob: float | None  # natural logarithm, EOS included; None if the score is
    tokens: int  # subwords, EOS included
    truncated: bool = False  # the source was longer than the limit; its end was not translated
    unfinished: bool = False  # the translation reached its length limit before EOS
    from_memory: bool = False  # from a translation memory; the score is the model's
    without_terms: tuple[str, ...] = ()  # terms that it lacks: the model found them too improbable
    # The subwords of both sides, and their alignment; None if not requested
    pair: AlignedPair | None = None
    # The probability that it is good (confidence.py); None if not requested, for a blank text, from
    # a memory, and of a model without a calibration
    confidence: float | None = None


class TargetScore(NamedTuple):
    """How probable the model finds a given translation."""

    log_prob: float  # natural logarithm, EOS included
    tokens: int  # subwords, EOS included
    truncated: bool = False  # source or target was longer than the limit; its end was ignored


class PairAttention(NamedTuple):
    """The attention for each of T target tokens; see search/alignment.py."""

    source_pieces: list[str]  # S subwords, "</s>" last
    target_pieces: list[str]  # T subwords, "</s>" last
    encoder: np.ndarray  # float32 [N, H, S, S]
    decoder: np.ndarray  # float32 [N, H, T, T]
    memory: np.ndarray  # float32 [N, H, T, S]
    alignment: np.ndarray  # int32 [T], source positions


def translations(
    hypotheses: Hypotheses, vocabularies: VocabularyPair, truncated: Sequence[bool]
) -> list[list[Translation]]:
    """Makes the answers for a batch.

    Missing hypotheses are left out. If restrictions allow no hypothesis, there is one answer with
    the text "" and score -inf.

    Args:
        hypotheses: those of each sentence.
        vocabularies: the model's.
        truncated: for each sentence, whether its source was truncated.
    """
    lengths = hypotheses.length.tolist()
    rows = [
        ids[:length]
        for beams, beam_lengths in zip(hypotheses.ids.tolist(), lengths, strict=True)
        for ids, length in zip(beams, beam_lengths, strict=True)
    ]
    texts = iter(vocabularies.target.decode(rows))
    unfinished = hypotheses.unfinished.tolist()
    answers = []
    for index, is_truncated in enumerate(truncated):
        beams = []
        for beam, length in enumerate(lengths[index]):
            score = log_prob = None
            if hypotheses.score is not None:
                score = float(hypotheses.score[index, beam])
                log_prob = float(hypotheses.log_prob[index, beam])
            answer = Translation(
                text=next(texts),
                score=score,
                log_prob=log_prob,
                tokens=length,
                truncated=is_truncated,
                unfinished=unfinished[index][beam],
            )
            beams.append(answer)
        existing = [answer for answer in beams if answer.score is None or answer.score > -math.inf]
        answers.append(existing or beams[:1])
    return answers


def aligned_pairs(
    explained: Explained, vocabularies: VocabularyPair, sources: Rows, targets: Rows
) -> list[AlignedPair]:
    """Makes an AlignedPair for each source and target, which end in EOS.

    Sources are aligned without their terms: what was aligned with a term's target, is aligned with
    the term.
    """
    pairs = []
    for index, (source, target) in enumerate(zip(sources, targets, strict=True)):
        source, positions = remove_terms(vocabularies.source, source.tolist())
        target = target.tolist()
        log_probs = explained.log_probs
        alignment = explained.alignment[index, : len(target)].tolist()
        pairs.append(
            AlignedPair(
                source_pieces=spelled(vocabularies.source, source),
                target_pieces=spelled(vocabularies.target, target),
                source_words=vocabularies.source.words(source),
                target_words=vocabularies.target.words(target),
                log_probs=None if log_probs is None else log_probs[index, : len(target)].tolist(),
                alignment=[positions[position] for position in alignment],
            )
        )
    return pairs
