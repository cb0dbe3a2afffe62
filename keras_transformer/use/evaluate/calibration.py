"""Fits a model's confidence (confidence.py) to a split's references. Not in the paper.

The regression learns from two kinds of translations: the model's own, of which the worst fifth by
chrF counts as bad; and copies with errors that a search seldom makes, but a person must be warned
of, such as a missing clause. The copies only shape the weights: the probabilities are fitted to the
model's own translations.

Planted errors teach the weights what a search seldom does: without them, 40% of repeated words went
unnoticed. A second fit of scale and bias keeps the probabilities those of the model's own
translations.
"""

import random
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import sacrebleu
from sacrebleu.metrics.base import Metric

from keras_transformer.support.errors import require
from keras_transformer.use.store.calibration import Calibration, Evidence
from keras_transformer.use.translate.answers import AlignedPair, Translation
from keras_transformer.use.translate.translator import Translator

WORST = 0.2  # the share of translations that counts as bad
LEAST_SENTENCES = 100  # to fit
PLANTED_SENTENCES = 400  # at most, that get planted errors
PLANTED_WEIGHT = 0.2  # of all planted errors, relative to all translations
FALSE_ALARMS = 0.02  # the share of good translations that may be taken for planted errors
FOLDS = 5  # of cross-validation
RIDGE = 1.0  # pulls standardized weights towards 0, as strongly as one sentence
ITERATIONS = 50


class PlantedError(NamedTuple):
    """A translation with an error."""

    kind: str
    index: int  # of the sentence
    text: str


def planted_errors(
    sources: Sequence[str], translations: Sequence[str], indices: Sequence[int]
) -> list[PlantedError]:
    """Makes copies of some translations with one error each; the same ones at each call.

    The kinds are "omission" of a third of the words, "repetition" of two to four words, another
    "number", another "word", an "untranslated" source, and an "unrelated" sentence's translation.
    A translation gets those that fit: there are no omissions in a short one.

    Args:
        sources, translations: the texts of a split.
        indices: which of them.
    """
    random_ = random.Random(1)
    others = sorted({word for text in translations for word in text.split() if word.isalpha()})
    errors = []
    for index in indices:
        text = translations[index]
        words = text.split()
        copies = {
            "omission": _omission(words, random_),
            "repetition": _repetition(words, random_),
            "number": _other_number(text, random_),
            "word": _other_word(words, others, random_),
            "untranslated": sources[index],
            "unrelated": translations[index - 1],
        }
        errors += [PlantedError(kind, index, copy) for kind, copy in copies.items() if copy != text]
    return errors


def calibrate(
    translator: Translator, sources: Sequence[str], references: Sequence[str]
) -> tuple[Calibration, dict[str, Any]]:
    """Fits a translator's confidence on a split, with progress on stderr.

    Args:
        translator: the model, with the search options that it will be used with.
        sources, references: the texts of a split that the model was not trained on.

    Returns:
        The calibration; and how good it is by cross-validation, as `confidence_quality` returns it,
        with {"planted": {kind: the share that was found with FALSE_ALARMS}}.

    Raises:
        InputError: if there are fewer than LEAST_SENTENCES sentences.
    """
    rule = f"must have at least {LEAST_SENTENCES} sentences to calibrate confidence"
    require(len(sources) >= LEAST_SENTENCES, "sources", rule, len(sources))
    answers = [row[0] for row in translator.translate(sources, progress=True, aligned=True)]
    texts = [answer.text for answer in answers]
    facts = _evidence(translator, sources, texts, [answer.pair for answer in answers])
    chrf = sentence_scores(sacrebleu.CHRF(), texts, references)
    edit_rates = sentence_scores(sacrebleu.TER(), texts, references)
    good_chrf = float(np.quantile(chrf, WORST))
    bad = chrf < good_chrf
    errors = planted_errors(sources, texts, np.flatnonzero(~bad)[:PLANTED_SENTENCES].tolist())
    error_rows = np.array([error.index for error in errors])
    error_sources = [sources[row] for row in error_rows]
    error_texts = [error.text for error in errors]
    pairs = translator.align(error_sources, error_texts, progress=True)
    error_facts = _evidence(translator, error_sources, error_texts, pairs)

    held_out, error_held_out = _cross_validated(facts, bad, error_facts, error_rows)
    scores = confidence_quality(held_out, facts[:, 0], chrf, edit_rates, good_chrf)
    limit = np.quantile(held_out[~bad], FALSE_ALARMS)
    kinds = np.array([error.kind for error in errors])
    planted = {}
    for kind in np.unique(kinds):
        planted[str(kind)] = float(np.mean(error_held_out[kinds == kind] < limit))

    weights, bias = fit(facts, bad, error_facts)
    calibration = Calibration(
        weights=dict(zip(Evidence._fields, weights.tolist(), strict=True)),
        bias=float(bias),
        good_chrf=good_chrf,
        sentences=len(sources),
        checkpoint=translator.checkpoint,
    )
    return calibration, {**scores, "planted": planted}


def answers_quality(
    answers: Sequence[Translation], references: Sequence[str], calibration: Calibration
) -> dict[str, float]:
    """Measures the confidence in a split's translations: see `confidence_quality`.

    Translations without it, of blank texts and from a memory, do not count.
    """
    pairs = zip(answers, references, strict=True)
    judged = [(answer, text) for answer, text in pairs if answer.confidence is not None]
    texts, wanted = [answer.text for answer, _ in judged], [text for _, text in judged]
    return confidence_quality(
        np.array([answer.confidence for answer, _ in judged]),
        np.array([answer.log_prob / answer.tokens for answer, _ in judged]),
        sentence_scores(sacrebleu.CHRF(), texts, wanted),
        sentence_scores(sacrebleu.TER(), texts, wanted),
        calibration.good_chrf,
    )


def confidence_quality(
    confidences: np.ndarray,
    log_probs: np.ndarray,
    chrf: np.ndarray,
    edit_rates: np.ndarray,
    good_chrf: float,
) -> dict[str, float]:
    """Measures how well confidence tells good translations from bad ones.

    Args:
        confidences: float [N].
        log_probs: float [N], the mean log probability of each translation's subwords.
        chrf, edit_rates: float [N], chrF and TER of each translation, in percent.
        good_chrf: see Calibration.

    Returns:
        {"auroc": the probability that a translation of the worst fifth has less confidence than
        another; "auroc_log_prob": the same by log probability alone; "auroc_ter" and
        "auroc_log_prob_ter": the same for the worst fifth by TER; "calibration_error": the
        expected calibration error, in ten bins of equal numbers (Naeini et al. 2015)}.
    """
    worst, most_edited = _worst(chrf), _worst(-edit_rates)
    return {
        "auroc": auroc(confidences, worst),
        "auroc_log_prob": auroc(log_probs, worst),
        "auroc_ter": auroc(confidences, most_edited),
        "auroc_log_prob_ter": auroc(log_probs, most_edited),
        "calibration_error": calibration_error(confidences, chrf >= good_chrf),
    }


def _worst(scores: np.ndarray) -> np.ndarray:
    """Returns which scores are among the lowest fifth; more if many share the lowest score."""
    return scores < max(np.quantile(scores, WORST), np.nextafter(scores.min(), np.inf))


def auroc(values: np.ndarray, is_low: np.ndarray) -> float:
    """The area under the ROC curve: how probably a low row's value is below another's.

    Args:
        values: float [N]. Equal ones count half.
        is_low: bool [N].

    Returns:
        From 0 to 1; 0.5 for a guess, and if all rows are of one kind.
    """
    low, high = values[is_low], np.sort(values[~is_low])
    if not len(low) or not len(high):
        return 0.5
    below = len(high) - np.searchsorted(high, low, side="right")
    equal = np.searchsorted(high, low, side="right") - np.searchsorted(high, low, side="left")
    return float(np.mean(below + equal / 2) / len(high))


def calibration_error(probabilities: np.ndarray, outcomes: np.ndarray) -> float:
    """The expected calibration error, in ten bins of equal numbers of rows.

    Args:
        probabilities: float [N], of the outcome True.
        outcomes: bool [N].
    """
    order = np.argsort(probabilities, kind="stable")
    bins = np.array_split(order, min(10, len(order)))
    gaps = [len(rows) * abs(probabilities[rows].mean() - outcomes[rows].mean()) for rows in bins]
    return float(sum(gaps) / len(probabilities))


def sentence_scores(
    metric: Metric, translations: Sequence[str], references: Sequence[str]
) -> np.ndarray:
    """Returns the score of each translation, in percent: float [N]."""
    pairs = zip(translations, references, strict=True)
    return np.array([metric.sentence_score(text, [reference]).score for text, reference in pairs])


def fit(facts: np.ndarray, bad: np.ndarray, error_facts: np.ndarray) -> tuple[np.ndarray, float]:
    """Fits the logistic regression for the probability that a translation is good.

    Args:
        facts: float [N, F], the evidence for translations.
        bad: bool [N], whether they are bad.
        error_facts: float [M, F], the evidence for translations with planted errors.

    Returns:
        Weights, float [F], and a bias.
    """
    mean, deviation = facts.mean(axis=0), np.maximum(facts.std(axis=0), 0.01)
    rows = (np.concatenate([facts, error_facts]) - mean) / deviation
    good = np.concatenate([~bad, np.zeros(len(error_facts), bool)])
    share = PLANTED_WEIGHT * len(facts) / max(len(error_facts), 1)
    importance = np.concatenate([np.ones(len(facts)), np.full(len(error_facts), share)])
    weights, bias = logistic_regression(rows, good, importance)
    # Then a scale and a bias alone, so that the probabilities hold without planted errors.
    logits = rows[: len(facts)] @ weights + bias
    (scale,), shift = logistic_regression(logits[:, None], ~bad, np.ones(len(facts)))
    weights = scale * weights / deviation
    return weights, float(scale * bias + shift - mean @ weights)


def logistic_regression(
    rows: np.ndarray, outcomes: np.ndarray, importance: np.ndarray
) -> tuple[np.ndarray, float]:
    """Fits weights and a bias by Newton's method, with RIDGE on the weights.

    Args:
        rows: float [N, F], standardized.
        outcomes: bool [N].
        importance: float [N], how often each row counts.
    """
    inputs = np.concatenate([rows, np.ones([len(rows), 1])], axis=1)
    ridge = np.diag([RIDGE] * rows.shape[1] + [1e-6])
    solution = np.zeros(inputs.shape[1])
    for _ in range(ITERATIONS):
        probabilities = _probability(inputs @ solution)
        gradient = inputs.T @ (importance * (probabilities - outcomes)) + ridge @ solution
        curvature = importance * probabilities * (1 - probabilities)
        hessian = (inputs * curvature[:, None]).T @ inputs + ridge
        solution -= np.clip(np.linalg.solve(hessian, gradient), -2, 2)
    return solution[:-1], float(solution[-1])


def _probability(logits: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-np.clip(logits, -50, 50)))


def _cross_validated(
    facts: np.ndarray, bad: np.ndarray, error_facts: np.ndarray, error_rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the confidence in each translation and planted error, fitted to other sentences."""
    folds = np.arange(len(facts)) % FOLDS
    error_folds = folds[error_rows]
    confidences, error_confidences = np.zeros(len(facts)), np.zeros(len(error_facts))
    for fold in range(FOLDS):
        ours, theirs = folds == fold, error_folds == fold
        weights, bias = fit(facts[~ours], bad[~ours], error_facts[~theirs])
        confidences[ours] = _probability(facts[ours] @ weights + bias)
        error_confidences[theirs] = _probability(error_facts[theirs] @ weights + bias)
    return confidences, error_confidences


def _evidence(
    translator: Translator,
    sources: Sequence[str],
    translations: Sequence[str],
    pairs: Sequence[AlignedPair],
) -> np.ndarray:
    """Collects the evidence for each translation: float [N, F]."""
    rows = [
        translator.evidence(source, text, pair)
        for source, text, pair in zip(sources, translations, pairs, strict=True)
    ]
    return np.array(rows).reshape(-1, len(Evidence._fields))


def _omission(words: list[str], random_: random.Random) -> str:
    """Without a third of the words, three or more; unchanged if there are fewer than six."""
    if len(words) < 6:
        return " ".join(words)
    count = max(len(words) // 3, 3)
    start = random_.randrange(len(words) - count)
    return " ".join(words[:start] + words[start + count :])


def _repetition(words: list[str], random_: random.Random) -> str:
    """With two to four words twice; unchanged if there are fewer than six."""
    if len(words) < 6:
        return " ".join(words)
    end = random_.randrange(4, len(words))
    return " ".join(words[:end] + words[end - random_.randint(2, 4) :])


def _other_word(words: list[str], others: Sequence[str], random_: random.Random) -> str:
    """With one word replaced by another; unchanged if there are none of letters alone."""
    indices = [index for index, word in enumerate(words) if word.isalpha()]
    if not indices:
        return " ".join(words)
    index = random_.choice(indices)
    return " ".join([*words[:index], random_.choice(others), *words[index + 1 :]])


def _other_number(text: str, random_: random.Random) -> str:
    """With another digit in place of one; unchanged if there are none."""
    indices = [index for index, character in enumerate(text) if character in "0123456789"]
    if not indices:
        return text
    index = random_.choice(indices)
    digit = random_.choice([each for each in "0123456789" if each != text[index]])
    return text[:index] + digit + text[index + 1 :]
