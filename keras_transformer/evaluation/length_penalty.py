"""Chooses alpha of the length penalty (section 6.1) on a split, as the paper did."""

from collections.abc import Mapping, Sequence

from absl import logging

from keras_transformer.evaluation.directions import direction_scores
from keras_transformer.evaluation.translation import translation_scores
from keras_transformer.translate.translator import Translator

ALPHAS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0)
# BLEU of a thousand sentences that says nothing: a handful of words.
NOISE = 0.1


def bleu_by_alpha(
    translator: Translator,
    sources: Sequence[str],
    references: Sequence[str],
    tokenize: str = "13a",
    lowercase: bool = False,
    directions: Sequence[str] | None = None,
) -> dict[float, float]:
    """Translates a split once for each of ALPHAS; progress is shown on stderr.

    Args:
        translator: the model, of a model directory or a .keras file.
        sources, references: of the split.
        tokenize, lowercase: see `translation_scores`.
        directions: that of each source, if there are several. BLEU is then the mean of them.

    Returns:
        {alpha: BLEU}.

    Raises:
        InputError: for an export, whose alpha is fixed, and where there are no sentences.
    """
    scores = {}
    for alpha in ALPHAS:
        candidates = translator.with_alpha(alpha).translate(sources, progress=True)
        answers = [row[0].text for row in candidates]
        if directions is None:
            found = translation_scores(answers, references, tokenize, lowercase)
        else:
            found = direction_scores(answers, references, directions, tokenize, lowercase)
        scores[alpha] = found["bleu"]
        logging.info("alpha %.1f: BLEU %.2f", alpha, scores[alpha])
    return scores


def safest_alpha(scores: Mapping[float, float]) -> float:
    """Chooses the smallest alpha that has a good BLEU, and so has the next larger one.

    Above some alpha, translations become too long all at once, and on other text that may happen a
    little sooner. So an alpha counts as the next larger one does, if that one is worse; and of
    those that count as much as the best one, but for NOISE, the smallest is chosen.

    Args:
        scores: {alpha: BLEU}, as of `bleu_by_alpha`.
    """
    alphas = sorted(scores)
    larger_alphas = [*alphas[1:], alphas[-1]]
    counted = {
        alpha: min(scores[alpha], scores[larger])
        for alpha, larger in zip(alphas, larger_alphas, strict=True)
    }
    good_enough = max(counted.values()) - NOISE
    return min(alpha for alpha in alphas if counted[alpha] >= good_enough)
