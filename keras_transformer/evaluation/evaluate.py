"""Scores a translator on a split of a data directory: what bin/evaluate.py prints."""

from collections.abc import Iterable, Sequence
from typing import Any

import tensorflow as tf
from tqdm import tqdm

from keras_transformer.decoding.streams import in_streams
from keras_transformer.decoding.translator import Translator
from keras_transformer.errors import require
from keras_transformer.evaluation.translation import paper_bleu, translation_scores
from keras_transformer.parsing.parseval import parsing_scores
from keras_transformer.parsing.trees import Tree
from keras_transformer.training.metrics import held_out_perplexity


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
        texts: the sources and as many references.
        batches: the split's records, as of `perplexity`.
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
        **perplexity(translator, batches),
        "sentences": len(sources),
        "truncated": translator.truncated,
        "beam_size": translator.config.beam_size,
        "alpha": translator.config.alpha,
        **translator.checkpoint,
    }
    return results, answers


def perplexity(
    translator: Translator, batches: Iterable[tuple[tf.Tensor, tf.Tensor]]
) -> dict[str, Any]:
    """Measures a translator as `held_out_perplexity` does, with a bar on stderr.

    Only perplexities of models with the same vocabulary can be compared. A batch is (source int32
    [B, S], target int32 [B, T]), targets ending in EOS. Without a token there is an InputError.
    """
    batches = list(batches)
    losses = in_streams(lambda batch: (-translator.score_ids(*batch), batch[1]), batches)
    result = held_out_perplexity(tqdm(losses, total=len(batches), unit="batch"))
    require(result["tokens"] > 0, "perplexity needs at least one target token", "none")
    return result
