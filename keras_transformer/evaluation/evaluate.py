"""Scores a translator on a split of a data directory: what bin/evaluate.py prints."""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import tensorflow as tf

from keras_transformer.decoding.translator import Translator
from keras_transformer.evaluation.paper_bleu import paper_bleu
from keras_transformer.evaluation.parsing import parsing_scores
from keras_transformer.evaluation.perplexity import perplexity
from keras_transformer.evaluation.translation import translation_scores
from keras_transformer.parsing.trees import Tree


@dataclasses.dataclass(frozen=True)
class EvaluationData:
    """A split, or the beginning of one.

    Fields:
        sources, references: its texts, as many of the one as of the other.
        batches: its records, of (source int32 [B, S], target int32 [B, T]), for the perplexity.
        trees: the gold trees of the sources, where they are to be parsed.
        language: of the references, for the tokenizer of BLEU as the paper computed it.
    """

    sources: Sequence[str]
    references: Sequence[str]
    batches: Iterable[tuple[tf.Tensor, tf.Tensor]]
    trees: Sequence[Tree] | None = None
    language: str = "de"


def evaluate(
    translator: Translator, data: EvaluationData, tokenize: str = "13a", lowercase: bool = False
) -> tuple[dict[str, Any], list[str]]:
    """Translates, or parses, the sources, and scores what comes out.

    Args:
        translator: of either task.
        data: trees and all, for a parser.
        tokenize, lowercase: as of translation_scores.

    Returns:
        The scores of `translation_scores` and `paper_bleu`, or of `parsing_scores` and the
        parser's counts, with those of `perplexity`, {"sentences", "truncated", "beam_size",
        "alpha"} and the checkpoint's; and the best answer to each source.

    Raises:
        InputError: for no sentences, or weights that are not finite.
    """
    found = [best[0] for best in translator.translate(data.sources, progress=True)]
    texts = [best.text for best in found]
    if data.trees is not None:
        scores = {**parsing_scores([best.tree for best in found], data.trees)}
    else:
        scores = {
            **translation_scores(texts, data.references, tokenize, lowercase),
            **paper_bleu(texts, data.references, data.language),
        }
    results = {
        **scores,
        **translator.counts(),
        **perplexity(translator, data.batches, progress=True),
        "sentences": len(data.sources),
        "truncated": translator.truncated,
        "beam_size": translator.config.beam_size,
        "alpha": translator.config.alpha,
        **translator.checkpoint,
    }
    return results, texts
