"""Scores a translator on a split of a data directory: what bin/evaluate.py prints."""

from collections.abc import Iterable, Sequence
from typing import Any

import tensorflow as tf

from keras_transformer.decoding.translator import Translator
from keras_transformer.evaluation.paper_bleu import paper_bleu
from keras_transformer.evaluation.parsing import parsing_scores
from keras_transformer.evaluation.perplexity import perplexity
from keras_transformer.evaluation.translation import translation_scores
from keras_transformer.parsing.trees import Tree


def evaluate(
    translator: Translator,
    texts: tuple[Sequence[str], Sequence[str]],
    batches: Iterable[tuple[tf.Tensor, tf.Tensor]],
    trees: Sequence[Tree] | None = None,
    language: str = "de",
    tokenize: str = "13a",
    lowercase: bool = False,
) -> tuple[dict[str, Any], list[str]]:
    """Translates or parses a split, or the beginning of one, and scores the answers.

    Args:
        translator: of either task.
        texts: the sources and as many references.
        batches: the split's records (source int32 [B, S], target int32 [B, T]), for the perplexity.
        trees: the gold trees of the sources, if they are to be parsed.
        language: of the references, for `paper_bleu`.
        tokenize, lowercase: as of `translation_scores`.

    Returns:
        The scores of `translation_scores` and `paper_bleu`, or of `parsing_scores` and the
        parser's counts, with those of `perplexity`, {"sentences", "truncated", "beam_size",
        "alpha"} and the checkpoint's; and the best answer to each source.

    Raises:
        InputError: if there are no sentences, or the weights are not finite.
    """
    sources, references = texts
    found = [best for best, *_ in translator.translate(sources, progress=True)]
    answers = [best.text for best in found]
    if trees is None:
        scores = translation_scores(answers, references, tokenize, lowercase)
        scores |= paper_bleu(answers, references, language)
    else:
        scores = parsing_scores([best.tree for best in found], trees)
    results = {
        **scores,
        **translator.counts(),
        **perplexity(translator, batches, progress=True),
        "sentences": len(sources),
        "truncated": translator.truncated,
        "beam_size": translator.config.beam_size,
        "alpha": translator.config.alpha,
        **translator.checkpoint,
    }
    return results, answers
