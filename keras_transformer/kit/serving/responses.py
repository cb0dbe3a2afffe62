"""The JSON bodies of responses."""

import dataclasses
import json
import math
import re
from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np

from keras_transformer.kit.documents.memory.memory import Match
from keras_transformer.kit.documents.tree.translation import SentenceAnswer
from keras_transformer.kit.figures.views import word_labels
from keras_transformer.kit.serving.errors import check
from keras_transformer.use.translate.answer_counts import AnswerCounts
from keras_transformer.use.translate.answers import PairAttention, Translation

ANSWER_WEIGHTS = 2_000_000  # about six bytes each: 6 layers of 8 heads, 118 pieces a side


@dataclasses.dataclass(frozen=True)
class ErrorAnswer:
    """Why a request failed."""

    error: Annotated[str, "One line: the rule, and what was received."]


@dataclasses.dataclass(frozen=True)
class HealthAnswer:
    """The server is up."""

    status: Annotated[str, '"ok"']


@dataclasses.dataclass(frozen=True)
class LimitsAnswer:
    """The request limits."""

    sentences: Annotated[int, "Texts."]
    characters: Annotated[int, "Characters in all texts together."]


@dataclasses.dataclass(frozen=True)
class ModelAnswer:
    """Facts about the model; no folder, file or setting of its training or of the server.

    Other fields are present if they are known: parameters, weights (their type), step, date, config
    (num_layers, num_heads), data (languages), evaluation (bleu, f1, languages), checkpoint (its
    name), task_options (target_languages and directions of a model with several) and
    hardly_trained (a line that says so, for a model of which training has hardly begun).
    """

    task: Annotated[str, '"translation", or "parsing", which returns bracketed trees.']
    alpha: Annotated[float, "The length penalty's exponent."]
    beam_size: Annotated[int, "Maximum of n_best."]
    max_source_length: Annotated[int, "Maximum source length in subwords, EOS included."]
    signatures: Annotated[list[str], "Names of the model's functions."]
    limits: Annotated[LimitsAnswer, "Request limits."]
    terminologies: Annotated[list[str], "Names of terminologies; the first is the default."]
    has_memory: Annotated[bool, "Whether there is a translation memory, or corrections."]
    has_corrections: Annotated[bool, "Whether corrections can be saved."]
    has_confidence: Annotated[bool, "Whether the model can judge its translations."]
    file_formats: Annotated[dict[str, str], "Formats of files, by their extensions."]
    archives: Annotated[list[str], "Formats that are not text, and must be sent as files."]


# The fields of a model card that anyone may read; None for all that a field holds.
SHOWN_FIELDS: dict[str, tuple[str, ...] | None] = {
    **dict.fromkeys(("task", "task_options", "parameters", "weights", "step", "date")),
    **dict.fromkeys(("alpha", "beam_size", "max_source_length", "hardly_trained")),
    "config": ("num_layers", "num_heads"),
    "data": ("languages",),
    "evaluation": ("bleu", "f1", "languages"),
}


def shown_card(card: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the fields of a model card that tell strangers of no folder and no setting.

    Args:
        card: the card as one JSON object, from ModelCard.flat.
    """
    shown = {}
    for name, parts in SHOWN_FIELDS.items():
        if name in card:
            value = card[name]
            if parts is not None and value is not None:
                value = {part: value[part] for part in parts if part in value}
            shown[name] = value
    if "checkpoint" in card:  # names or paths
        names = [re.split(r"[/\\]", path)[-1] for path in card["checkpoint"].split(",")]
        shown["checkpoint"] = ",".join(names)
    return shown


@dataclasses.dataclass(frozen=True)
class TranslationAnswer:
    """One translation of a sentence.

    The optional fields are present if `aligned` was set, or `confidence`.
    """

    text: Annotated[str, "The translation."]
    score: Annotated[float | None, "log_prob / length penalty; null if nothing was allowed."]
    log_prob: Annotated[float | None, "Natural log probability; null if score is."]
    truncated: Annotated[bool, "The sentence was too long; its end was not translated."]
    unfinished: Annotated[bool, "The translation reached the length limit before its end."]
    from_memory: Annotated[bool, "From the translation memory."]
    without_terms: Annotated[list[str], "Terms that it lacks: the model found them too improbable."]
    source_pieces: Annotated[list[str] | None, "S subwords of the sentence."] = None
    target_pieces: Annotated[list[str] | None, "T subwords of the translation."] = None
    source_words: Annotated[list[int] | None, "S word numbers; -1 for none."] = None
    target_words: Annotated[list[int] | None, "T word numbers; -1 for none."] = None
    log_probs: Annotated[list[float] | None, "T log probabilities of subwords."] = None
    alignment: Annotated[list[int] | None, "T indices into source_pieces, from 0."] = None
    pharaoh: Annotated[str | None, 'Aligned words, source before target: "0-0 1-2".'] = None
    confidence: Annotated[
        float | None, "The probability that it is good; absent without a calibration of the model."
    ] = None


@dataclasses.dataclass(frozen=True)
class ChangeAnswer:
    """A part of the difference between two sentences."""

    kind: Annotated[str, '"equal", "delete" (only in the first) or "insert" (only in the second).']
    text: Annotated[str, "The words."]


@dataclasses.dataclass(frozen=True)
class MatchAnswer:
    """A sentence in the translation memory that is similar to a text, and its translation."""

    source: Annotated[str, "The sentence."]
    translation: Annotated[str, "Its translation."]
    similarity: Annotated[float, "From 0.75 to 1, which is the text itself."]
    difference: Annotated[list[ChangeAnswer], "How the sentence becomes the text."]
    is_correction: Annotated[bool, "Whether it is a correction, and can be removed."]


@dataclasses.dataclass(frozen=True)
class TranslateAnswer:
    """The translations of each text."""

    translations: Annotated[list[list[TranslationAnswer]], "For each text, best first."]
    matches: Annotated[
        list[list[MatchAnswer]] | None,
        "For each text, the most similar sentences first, if requested.",
    ] = None


# Counts of a document's sentences, of which equal ones count once.
FromMemory = Annotated[int, "Sentences from the translation memory."]
WithoutTerms = Annotated[int, "Sentences whose translation lacks a term."]
Doubtful = Annotated[int, "Sentences below review_below."]


@dataclasses.dataclass(frozen=True)
class DocumentAnswer:
    """The translation of a document; equal sentences count once."""

    translation: Annotated[str, "The whole translation."]
    from_memory: FromMemory
    without_terms: WithoutTerms
    doubtful: Doubtful
    sentences: Annotated[
        list[SentenceAnswer] | None,
        'Its sentences in order, if the format is "text" or "wrapped".',
    ] = None


@dataclasses.dataclass(frozen=True)
class AttentionAnswer:
    """Attention of N layers with H heads for S source and T target subwords.

    Row t of `decoder` and `memory` holds the weights used when predicting target piece t. Column t
    of `decoder` is the decoder's input there: the BOS token for t = 0, piece t - 1 otherwise.
    """

    source_pieces: Annotated[list[str], "S subwords."]
    source_labels: Annotated[list[str], "The same in readable form."]
    target_pieces: Annotated[list[str], "T subwords."]
    target_labels: Annotated[list[str], "The same in readable form."]
    encoder: Annotated[list[list[list[list[float]]]], "[N, H, S, S]"]
    decoder: Annotated[list[list[list[list[float]]]], "[N, H, T, T]"]
    memory: Annotated[list[list[list[list[float]]]], "[N, H, T, S]: cross-attention."]
    alignment: Annotated[list[int], "T indices into source_pieces, from 0."]


def translation_fields(translation: Translation) -> dict[str, Any]:
    """Returns a translation as JSON: the fields of TranslationAnswer.

    Optional ones that it does not have are left out.
    """
    values = vars(translation) | {
        "score": _rounded(translation.score),
        "log_prob": _rounded(translation.log_prob),
        "confidence": _probability(translation.confidence),
    }
    if translation.pair is not None:
        values |= translation.pair._asdict()
        values["pharaoh"] = translation.pair.pharaoh
    fields = {}
    for field in dataclasses.fields(TranslationAnswer):
        value = values.get(field.name)
        is_required = field.default is dataclasses.MISSING
        if is_required or value is not None:
            fields[field.name] = value
    return fields


def match_fields(match: Match) -> dict[str, Any]:
    """Returns a match in the translation memory as JSON: the fields of MatchAnswer."""
    difference = [change._asdict() for change in match.difference]
    similarity = match.rounded_similarity
    return {**match._asdict(), "similarity": similarity, "difference": difference}


def count_fields(counts: AnswerCounts) -> dict[str, int]:
    """Returns the counts of a document's sentences, as fields of DocumentAnswer."""
    return {
        "from_memory": counts.from_memory,
        "without_terms": counts.without_terms,
        "doubtful": counts.doubtful,
    }


def sentence_fields(sentence: SentenceAnswer) -> dict[str, Any]:
    """Returns a sentence of a document as JSON, without the confidence that it does not have."""
    fields = dict(vars(sentence))
    if sentence.confidence is None:
        del fields["confidence"]
    else:
        fields["confidence"] = _probability(sentence.confidence)
    return fields


def _probability(confidence: float | None) -> float | None:
    """Rounds a probability to three decimals; None stays None."""
    return None if confidence is None else round(confidence, 3)


def _rounded(number: float) -> float | None:
    """Rounds to six decimals; infinity, which JSON lacks, becomes None."""
    return round(number, 6) if math.isfinite(number) else None


def attention_fields(attention: PairAttention) -> dict[str, Any]:
    """Returns the attention for one pair as JSON, rounded to three digits."""
    maps = {
        "encoder": attention.encoder,
        "decoder": attention.decoder,
        "memory": attention.memory,
    }
    lists = {  # doubles, as a rounded float32 prints with more digits
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


def attention_body(attention: PairAttention) -> bytes:
    """Returns the attention for one pair as JSON.

    Raises:
        RequestError: 413 if the answer would have too many weights.
    """
    count = attention.encoder.size + attention.decoder.size + attention.memory.size
    rule = f"an answer must have at most {ANSWER_WEIGHTS} weights: send a shorter sentence"
    check(count <= ANSWER_WEIGHTS, 413, rule, f"one of {count}")
    return encoded(attention_fields(attention))


def encoded(value: Any) -> bytes:
    """Encodes JSON in UTF-8."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8")
