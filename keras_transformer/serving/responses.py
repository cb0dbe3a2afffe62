"""The bodies of responses, which are JSON."""

import dataclasses
import json
import math
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from keras_transformer.attention.views import word_labels

if TYPE_CHECKING:  # it imports TensorFlow
    from keras_transformer.translate.answers import PairAttention, Translation


@dataclasses.dataclass(frozen=True)
class ErrorAnswer:
    """Why a request has no other answer."""

    error: Annotated[str, "One line: what must hold, and what was received."]


@dataclasses.dataclass(frozen=True)
class HealthAnswer:
    """The server answers."""

    status: Annotated[str, '"ok"']


@dataclasses.dataclass(frozen=True)
class LimitsAnswer:
    """The most that a request may have."""

    sentences: Annotated[int, "Texts."]
    characters: Annotated[int, "Characters of all texts together."]


@dataclasses.dataclass(frozen=True)
class ModelAnswer:
    """The model card, whose fields are beside these."""

    task: Annotated[str, '"translation", or "parsing": texts are then trees in brackets.']
    beam_size: Annotated[int, "The largest n_best."]
    max_source_length: Annotated[int, "Subwords of a sentence that are read, its end counted."]
    signatures: Annotated[list[str], "What the model can do, by name."]
    limits: Annotated[LimitsAnswer, "The limits of a request."]
    terminologies: Annotated[list[str], "Names of lists of terms; the first is the default."]


@dataclasses.dataclass(frozen=True)
class TranslationAnswer:
    """One translation of a sentence; where `aligned` is asked for, also the optional fields."""

    text: Annotated[str, "The translation."]
    score: Annotated[float | None, "log_prob / length penalty; null: nothing was allowed."]
    log_prob: Annotated[float | None, "Natural logarithm of its probability; null like score."]
    truncated: Annotated[bool, "The sentence was too long: its end was not translated."]
    unfinished: Annotated[bool, "The translation reached the greatest length before its end."]
    from_memory: Annotated[bool, "The translation memory has it."]
    source_pieces: Annotated[list[str] | None, "S subwords of the sentence."] = None
    target_pieces: Annotated[list[str] | None, "T subwords of the translation."] = None
    source_words: Annotated[list[int] | None, "S numbers of words; -1: of none."] = None
    target_words: Annotated[list[int] | None, "T numbers of words; -1: of none."] = None
    log_probs: Annotated[list[float] | None, "T logarithms of the probabilities of subwords."] = (
        None
    )
    alignment: Annotated[list[int] | None, "T places in source_pieces, from 0."] = None
    pharaoh: Annotated[str | None, 'Aligned words, source before target: "0-0 1-2".'] = None


@dataclasses.dataclass(frozen=True)
class TranslateAnswer:
    """The translations of each text."""

    translations: Annotated[list[list[TranslationAnswer]], "Of each text, best first."]


@dataclasses.dataclass(frozen=True)
class SentenceAnswer:
    """A sentence of a document, and where its translation is in that of the document."""

    source: Annotated[str, "The sentence."]
    translation: Annotated[str, "Its translation."]
    start: Annotated[int, "Characters (code points of Unicode) before the translation."]
    end: Annotated[int, "The same with the translation."]
    from_memory: Annotated[bool, "The translation memory has it."]


@dataclasses.dataclass(frozen=True)
class DocumentAnswer:
    """The translation of a document."""

    translation: Annotated[str, "All of it."]
    sentences: Annotated[
        list[SentenceAnswer] | None,
        'Its sentences in order, if its format is "text" or "wrapped".',
    ] = None


@dataclasses.dataclass(frozen=True)
class AttentionAnswer:
    """Attention of N layers with H heads for S source and T target subwords.

    Row t of `decoder` and `memory` is what the decoder attended to when it predicted target piece
    t. Column t of `decoder` is what it had read there: the beginning for t = 0, piece t - 1
    otherwise.
    """

    source_pieces: Annotated[list[str], "S subwords."]
    source_labels: Annotated[list[str], "The same as a reader expects them."]
    target_pieces: Annotated[list[str], "T subwords."]
    target_labels: Annotated[list[str], "The same as a reader expects them."]
    encoder: Annotated[list[list[list[list[float]]]], "[N, H, S, S]"]
    decoder: Annotated[list[list[list[list[float]]]], "[N, H, T, T]"]
    memory: Annotated[list[list[list[list[float]]]], "[N, H, T, S]: cross-attention."]
    alignment: Annotated[list[int], "T places in source_pieces, from 0."]


def translation_fields(translation: "Translation", aligned: bool) -> dict[str, Any]:
    """Returns a translation as JSON has it; an aligned one with its subwords and alignment."""
    fields = {
        "text": translation.text,
        "score": _rounded(translation.score),
        "log_prob": _rounded(translation.log_prob),
        "truncated": translation.truncated,
        "unfinished": translation.unfinished,
        "from_memory": translation.from_memory,
    }
    if aligned:
        fields.update(translation.pair._asdict())
        fields["pharaoh"] = translation.pair.pharaoh
    return fields


def _rounded(number: float) -> float | None:
    """Six digits after the point; JSON has no infinity."""
    return round(number, 6) if math.isfinite(number) else None


def attention_fields(attention: "PairAttention") -> dict[str, Any]:
    """Returns the attention of one pair as JSON has it, rounded to three digits."""
    maps = {
        "encoder": attention.encoder,
        "decoder": attention.decoder,
        "memory": attention.memory,
    }
    lists = {  # doubles, as the digits of a rounded float32 go on when printed
        name: np.round(weights.astype(np.float64), 3).tolist() for name, weights in maps.items()
    }
    return {
        "source_pieces": attention.source_pieces,
        "source_labels": word_labels(attention.source_pieces),
        "target_pieces": attention.target_pieces,
        "target_labels": word_labels(attention.target_pieces),
        **lists,
        "alignment": attention.alignment.tolist(),
    }


def encoded(value: Any) -> bytes:
    """Returns JSON in UTF-8."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8")
