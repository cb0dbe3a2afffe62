"""Minimum Bayes risk: the translation most similar to all others (Kumar and Byrne 2004).

The most probable translation may differ from most of the probable ones. The expected utility of a
translation h, given translations y of the same text, is

    sum of p(y) u(h, y) over y, u: sacreBLEU's score of sentence h with reference y

where p(y) is the probability of y among them, or, for samples, the share of samples equal to y
(Eikema and Aziz 2020).
"""

import dataclasses
import math
from collections import Counter
from collections.abc import Sequence

from keras_transformer.core.search.config import Utility
from keras_transformer.use.translate.answers import Translation


def by_utility(
    answers: Sequence[Translation], utility: Utility, sampled: bool
) -> list[Translation]:
    """Ranks the translations of a text by expected utility, without duplicates.

    Args:
        answers: at least one; a single one is returned unchanged.
        utility: "chrf" or "bleu", for sentences.
        sampled: whether they were sampled rather than searched.

    Returns:
        The translations, with expected utilities, in percent, as scores.
    """
    from sacrebleu.metrics import BLEU, CHRF  # not needed if nothing is ranked

    if len(answers) == 1:
        return list(answers)
    metric = CHRF() if utility == "chrf" else BLEU(effective_order=True)
    best = max(answer.log_prob for answer in answers)
    weights: Counter[str] = Counter()
    for answer in answers:
        weights[answer.text] += 1.0 if sampled else math.exp(answer.log_prob - best)

    def expected(text: str) -> float:
        scores = (w * metric.sentence_score(text, [other]).score for other, w in weights.items())
        return sum(scores) / weights.total()

    # Among equal texts with different subwords, the most probable one is kept.
    different = {answer.text: answer for answer in sorted(answers, key=lambda one: one.log_prob)}
    ranked = [
        dataclasses.replace(answer, score=expected(text)) for text, answer in different.items()
    ]
    return sorted(ranked, key=lambda answer: (-answer.score, -answer.log_prob))
