"""What a Translator answers, and how it is made of the outputs of graphs.

It does without TensorFlow: programs that check their flags first import it.
"""

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from keras_transformer.documents.alignment import Link
from keras_transformer.documents.sentences import Span
from keras_transformer.errors import require
from keras_transformer.language_codes import is_code

_WORD = re.compile(r"[^ \t\n\v\f\r]+")  # words have spaces of ASCII between them
_BYTE = re.compile(r"<0x([0-9A-F]{2})>")  # a piece that spells a byte

# The outputs of a search that there are for each translation.
TRANSLATION_OUTPUTS = ("translation", "score", "log_prob", "length", "unfinished")


class AlignedPair(NamedTuple):
    """The subwords of a text and of a translation of it: how probable, and aligned with what."""

    source_pieces: list[str]  # S subwords, "</s>" last
    target_pieces: list[str]  # T subwords, "</s>" last
    source_words: list[int]  # S numbers of words, those between spaces; -1 for none
    target_words: list[int]  # T numbers of words, likewise
    log_probs: list[float]  # T, of a subword after those before it; natural logarithm
    alignment: list[int]  # T source positions; see attention_maps.alignment

    @property
    def pharaoh(self) -> str:
        """The aligned words in the Pharaoh format: "0-0 1-2", source before target, from 0."""
        sources = [self.source_words[place] for place in self.alignment]
        links = zip(sources, self.target_words, self.target_pieces, strict=True)
        words = {(i, j) for i, j, piece in links if min(i, j) >= 0 and piece != "</s>"}
        return " ".join(f"{i}-{j}" for i, j in sorted(words))

    def links(self, source: str, target: str) -> list[Link]:
        """The characters of the texts that are aligned: those of subwords, or else of words."""
        sources = _spans(source, self.source_pieces, self.source_words)
        targets = _spans(target, self.target_pieces, self.target_words)
        pairs = [(sources[i], span) for i, span in zip(self.alignment, targets, strict=True)]
        return [Link(*pair) for pair in pairs if None not in pair]


class Translation(NamedTuple):
    """One answer to a sentence."""

    text: str
    # Log-probability / length penalty; with `mbr`, expected utility in percent. None if no scores
    # were asked for and the search needed none.
    score: float | None
    log_prob: float | None  # natural logarithm, EOS included; None as the score
    tokens: int  # subwords, EOS counted
    truncated: bool = False  # the source was longer than the limit; its end was not translated
    unfinished: bool = False  # the translation reached its length limit before EOS


class AlignedTranslation(NamedTuple):
    """One answer to a sentence: a Translation, and what its subwords are aligned with."""

    text: str
    score: float | None
    log_prob: float | None
    tokens: int
    truncated: bool
    unfinished: bool
    pair: AlignedPair  # the subwords of both sides


class TargetScore(NamedTuple):
    """How probable the model finds a given translation."""

    log_prob: float  # natural logarithm, EOS included
    tokens: int  # subwords, EOS counted
    truncated: bool = False  # source or target was longer than the limit; its end did not count


class PairAttention(NamedTuple):
    """What predicting each of T target tokens attends to; see decoding/attention_maps.py."""

    source_pieces: list[str]  # S subwords, "</s>" last
    target_pieces: list[str]  # T subwords, "</s>" last
    encoder: np.ndarray  # float32 [N, H, S, S]
    decoder: np.ndarray  # float32 [N, H, T, T]
    memory: np.ndarray  # float32 [N, H, T, S]
    alignment: np.ndarray  # int32 [T], source positions


def translations(
    found: dict[str, np.ndarray], truncated: Sequence[bool]
) -> list[list[Translation]]:
    """Makes the answers to a batch of the outputs of a search.

    Beams without a hypothesis are left out. Where restrictions leave nothing to say, there is one
    with the text "" and score -inf.

    Args:
        found: the outputs of graphs.Graphs.search_ids, or of greedy_ids, which has no scores.
        truncated: for each sentence, whether its source was cut.

    Raises:
        InputError: where a score or a logit is NaN.
    """
    if "score" not in found:
        return unscored_translations(found, truncated)
    require_finite(~np.isnan(found["score"]), "scores")
    columns = [found[name].tolist() for name in TRANSLATION_OUTPUTS]
    rows = []
    for was_cut, *beams in zip(truncated, *columns, strict=True):
        answers = [
            Translation(text.decode("utf-8"), score, log_prob, length, was_cut, unfinished)
            for text, score, log_prob, length, unfinished in zip(*beams, strict=True)
        ]
        existing = [answer for answer in answers if answer.score > -math.inf]
        rows.append(existing or answers[:1])
    return rows


def require_finite(is_finite: np.ndarray, what: str) -> None:
    """Raises an InputError about the model's weights where not all of what it computed is finite.

    Args:
        is_finite: bool, of any shape.
        what: what was computed, such as "scores".
    """
    require(is_finite.all(), "model", "must have finite weights", f"{what} that are NaN")


def unscored_translations(
    found: dict[str, np.ndarray], truncated: Sequence[bool]
) -> list[list[Translation]]:
    """Makes the answers to a batch of the outputs of greedy_ids: one for each sentence."""
    require_finite(found["is_finite"], "logits")
    texts, lengths, unfinished = (
        found[name][:, 0].tolist() for name in ("translation", "length", "unfinished")
    )
    return [
        [Translation(text.decode("utf-8"), None, None, length, was_cut, is_unfinished)]
        for text, length, was_cut, is_unfinished in zip(
            texts, lengths, truncated, unfinished, strict=True
        )
    ]


def aligned_pair(
    source_pieces: list[bytes],
    target_pieces: list[bytes],
    source_words: list[int],
    target_words: list[int],
    log_probs: list[float],
    alignment: list[int],
) -> AlignedPair:
    """Makes an AlignedPair of its fields, which lose their padding."""
    source = [piece.decode("utf-8") for piece in source_pieces if piece]
    target = [piece.decode("utf-8") for piece in target_pieces if piece]
    return AlignedPair(
        source_pieces=source,
        target_pieces=target,
        source_words=source_words[: len(source)],
        target_words=target_words[: len(target)],
        log_probs=log_probs[: len(target)],
        alignment=alignment[: len(target)],
    )


def _spans(text: str, pieces: Sequence[str], words: Sequence[int]) -> list[Span | None]:
    """The characters of each subword; where a vocabulary has changed some, those of its word."""
    spans = _spans_of_pieces(text, pieces)
    if spans is None:
        found = [match.span() for match in _WORD.finditer(text)]
        spans = [found[word] if 0 <= word < len(found) else None for word in words]
    return [None if piece == "</s>" else span for piece, span in zip(pieces, spans, strict=True)]


def _spans_of_pieces(text: str, pieces: Sequence[str]) -> list[Span | None] | None:
    """Finds subwords one after the other in a text; None if one is not there."""
    encoded = [character.encode("utf-8", errors="replace") for character in text]
    content, place, spans = b"".join(encoded), 0, []
    # The character that each byte is of, and the end.
    characters = [number for number, code in enumerate(encoded) for _ in code] + [len(text)]
    for piece in pieces:
        byte = _BYTE.fullmatch(piece)
        spelled = bytes([int(byte[1], 16)]) if byte else piece.strip("▁").encode("utf-8")
        if piece == "</s>" or not spelled or is_code(piece):
            spans.append(None)
            continue
        while content[place : place + 1].isspace():
            place += 1
        for candidate in (spelled, spelled.removeprefix(b"##")):
            if candidate and content.startswith(candidate, place):
                end = place + len(candidate)
                spans.append((characters[place], max(characters[end], characters[place] + 1)))
                place = end
                break
        else:
            return None
    return spans
