"""Scores a translator on a split."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import tensorflow as tf

from keras_transformer.core.search.engines.streams import in_streams
from keras_transformer.core.training.metrics import held_out_perplexity
from keras_transformer.support.progress import progress_bar
from keras_transformer.use.evaluate.calibration import answers_quality
from keras_transformer.use.evaluate.directions import direction_scores
from keras_transformer.use.evaluate.translation import paper_bleu, translation_scores
from keras_transformer.use.translate.answers import Translation
from keras_transformer.use.translate.translator import Translator


def evaluate(
    translator: Translator,
    texts: tuple[Sequence[str], Sequence[str]],
    batches: Iterable[tuple[tf.Tensor, tf.Tensor]],
    score_answers: Callable[[Sequence[Translation]], dict[str, Any]] | None = None,
    language: str = "de",
    tokenize: str = "13a",
    lowercase: bool = False,
    directions: Sequence[str] | None = None,
) -> tuple[dict[str, Any], list[str]]:
    """Translates a split, or its beginning, and scores the answers.

    Args:
        translator: the model.
        texts: the sources, and one reference for each.
        batches: the records of the split; see `perplexity`.
        score_answers: for another task than translation, scores the best answers.
        language: the language of the references, such as "de", for `paper_bleu`.
        tokenize: sacreBLEU's tokenization; see `translation_scores`.
        lowercase: whether BLEU and chrF ignore case.
        directions: the direction of each text, such as "en-de", if there are several.

    Returns:
        The scores: those of `translation_scores` and `paper_bleu`, or of `direction_scores`, or of
            `score_answers`; those of `perplexity`; {"sentences",
            "truncated" (sources beyond the model's limit), "beam_size", "alpha"}; and the known
            facts about the checkpoint; with a calibration, {"confidence": as from
            `answers_quality`}. Then the best answer to each source.

    Raises:
        InputError: if there are no sentences, or the weights are not finite.
    """
    sources, references = texts
    is_translation = score_answers is None
    options = {"confidence": True} if is_translation else {}  # if the model has a calibration
    translations = translator.translate(sources, progress=True, scores=False, **options)
    best = [candidates[0] for candidates in translations]
    counts = translator.new_counts()
    counts.add(best)
    answers = [answer.text for answer in best]
    if score_answers is not None:
        scores = score_answers(best)
    elif directions is not None:
        scores = direction_scores(answers, references, directions, tokenize, lowercase)
    else:
        scores = translation_scores(answers, references, tokenize, lowercase)
        scores |= paper_bleu(answers, references, language)
    if is_translation and translator.card.calibration is not None:
        scores["confidence"] = answers_quality(best, references, translator.card.calibration)
    results = {
        **scores,
        **counts.of_trees(),
        **perplexity(translator, batches),
        "sentences": len(sources),
        "truncated": counts.truncated,
        "beam_size": translator.config.beam_size,
        "alpha": translator.config.alpha,
        **translator.checkpoint,
    }
    return results, answers


def perplexity(
    translator: Translator, batches: Iterable[tuple[tf.Tensor, tf.Tensor]]
) -> dict[str, Any]:
    """Measures a translator's perplexity, with a progress bar on stderr.

    Perplexities are only comparable between models with the same vocabulary.

    Args:
        translator: the model.
        batches: (source int32 [B, S], target int32 [B, T]); targets end in EOS before padding.

    Returns:
        {"perplexity", "cross_entropy" in nats per token, "tokens"}; see `held_out_perplexity`.

    Raises:
        InputError: if there are no tokens, or the weights are not finite.
    """
    batches = list(batches)

    def losses_of(batch):
        return -translator.score_ids(*batch), batch[1]

    losses = in_streams(losses_of, batches, translator.engine.streams)
    return held_out_perplexity(progress_bar(losses, total=len(batches), unit=" batches"))
