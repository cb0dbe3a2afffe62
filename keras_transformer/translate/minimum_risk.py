"""Minimum Bayes risk: the translation that is most like all others (Kumar and Byrne 2004).

The most probable translation may be unlike most of what a model finds probable. The expected
utility of a translation h, given translations y of the same text, is

    sum of p(y) u(h, y) over y,    u: sacreBLEU's score of sentence h by reference y

where p(y) is the probability of y among them, or, of a random sample, the share of the draws that
are y (Eikema and Aziz 2020).
"""

import math
from collections import Counter
from collections.abc import Sequence

from keras_transformer.search.config import Utility
from keras_transformer.translate.answers import Translation


def by_utility(
    answers: Sequence[Translation], utility: Utility, sampled: bool
) -> list[Translation]:
    """Ranks the translations of a text by expected utility, equal ones once.

    Args:
        answers: at least one; one alone is returned as it is.
        utility: "chrf" or "bleu", of sentences.
        sampled: whether they were drawn at random, and not searched.

    Returns:
        What was given, with expected utilities, in percent, as scores.
    """
    from sacrebleu.metrics import BLEU, CHRF  # not needed where nothing is ranked

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

    # Of equal texts, which were written by other subwords, the most probable one stays.
    different = {answer.text: answer for answer in sorted(answers, key=lambda one: one.log_prob)}
    ranked = [answer._replace(score=expected(text)) for text, answer in different.items()]
    return sorted(ranked, key=lambda answer: (-answer.score, -answer.log_prob))
