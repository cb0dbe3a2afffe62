"""Chooses the length penalty's alpha (section 6.1) on a split, as in the paper."""

from collections.abc import Mapping, Sequence

from absl import logging

from keras_transformer.use.evaluate.directions import direction_scores
from keras_transformer.use.evaluate.translation import translation_scores
from keras_transformer.use.translate.translator import Translator

ALPHAS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0)
# An insignificant difference in BLEU on a thousand sentences: a handful of words.
NOISE = 0.1


def bleu_by_alpha(
    translator: Translator,
    sources: Sequence[str],
    references: Sequence[str],
    tokenize: str = "13a",
    lowercase: bool = False,
    directions: Sequence[str] | None = None,
) -> dict[float, float]:
    """Scores a split with each of ALPHAS, from one search, with progress on stderr.

    Args:
        translator: the model, from a model directory or a .keras file.
        sources, references: the texts of the split.
        tokenize, lowercase: see `translation_scores`.
        directions: the direction of each source, if there are several. BLEU is then the mean.

    Returns:
        {alpha: BLEU}.

    Raises:
        InputError: for an export, whose alpha is fixed, and if there are no sentences.
    """
    message = "choosing alpha: one search of %d sentences, scored for %d values"
    logging.info(message, len(sources), len(ALPHAS))
    rows = translator.translate_by_alpha(sources, ALPHAS, progress=True)
    scores = {}
    for number, alpha in enumerate(ALPHAS):
        # A row has a single answer if restrictions allow none.
        answers = [row[min(number, len(row) - 1)].text for row in rows]
        if directions is None:
            score = translation_scores(answers, references, tokenize, lowercase)
        else:
            score = direction_scores(answers, references, directions, tokenize, lowercase)
        scores[alpha] = score["bleu"]
        logging.info("alpha %.1f: BLEU %.2f", alpha, scores[alpha])
    return scores


def safest_alpha(scores: Mapping[float, float]) -> float:
    """Chooses the smallest alpha whose BLEU is good, and whose next larger alpha's is, too.

    Above some alpha, translations suddenly become too long, and on other text this may happen at a
    slightly smaller one. So each alpha counts as the worse of itself and the next larger one; among
    those within NOISE of the best, the smallest is chosen.

    Args:
        scores: {alpha: BLEU}, from `bleu_by_alpha`.
    """
    alphas = sorted(scores)
    larger_alphas = [*alphas[1:], alphas[-1]]
    counted = {
        alpha: min(scores[alpha], scores[larger])
        for alpha, larger in zip(alphas, larger_alphas, strict=True)
    }
    good_enough = max(counted.values()) - NOISE
    return min(alpha for alpha in alphas if counted[alpha] >= good_enough)
