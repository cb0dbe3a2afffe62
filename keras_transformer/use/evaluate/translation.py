"""BLEU and chrF from sacreBLEU (Post 2018), and BLEU as computed in the paper."""

import re
from collections.abc import Callable, Sequence
from typing import Any

from absl import logging
from sacrebleu.metrics import BLEU, CHRF

from keras_transformer.support.errors import require

# A character between two hyphens only counts for the first one, as in get_ende_bleu.sh: "a-b-c"
# becomes "a ##AT##-##AT## b-c".
_HYPHEN = re.compile(r"(\S)-(\S)")
# Moses always separates these from the last word in a sentence; sacremoses does not.
_LAST_MARK = re.compile(r"(?<=[^\s.])([.'])\s*$")


def translation_scores(
    translations: Sequence[str],
    references: Sequence[str],
    tokenize: str = "13a",
    lowercase: bool = False,
) -> dict[str, Any]:
    """Scores a corpus of translations, each against one reference.

    Args:
        translations: one for each sentence; empty ones are allowed.
        references: one for each translation.
        tokenize: sacreBLEU's tokenization for BLEU: "13a" is WMT's, "none" is for tokenized text.
            chrF needs none.
        lowercase: whether BLEU and chrF ignore case.

    Returns:
        {"bleu", "chrf"} in percent, sacreBLEU's {"signature", "chrf_signature"}, and
        {"brevity_penalty", "length_ratio"}.

    Raises:
        InputError: if there are no sentences, or their numbers differ.
    """
    received = f"{len(translations)} translations of {len(references)} references"
    is_paired = 0 < len(references) == len(translations)
    rule = "must be as many as the references, and at least one"
    require(is_paired, "translations", rule, received)
    # force=True: sacreBLEU would warn about tokenized references.
    bleu_metric = BLEU(tokenize=tokenize, lowercase=lowercase, force=True)
    chrf_metric = CHRF(lowercase=lowercase)
    bleu = bleu_metric.corpus_score(translations, [references])
    chrf = chrf_metric.corpus_score(translations, [references])
    return {
        "bleu": round(bleu.score, 4),
        "chrf": round(chrf.score, 4),
        "signature": str(bleu_metric.get_signature()),
        "chrf_signature": str(chrf_metric.get_signature()),
        "brevity_penalty": round(bleu.bp, 4),
        "length_ratio": round(bleu.ratio, 4),
    }


def paper_bleu(
    translations: Sequence[str], references: Sequence[str], language: str = "de"
) -> dict[str, Any]:
    """Scores like the paper on newstest2014: Moses tokens, split compounds, no smoothing.

    These are the steps of tensor2tensor's get_ende_bleu.sh, for comparison with papers from that
    time, except that references are tokenized, too. Such scores depend on the tokenizer
    (sacremoses, the extra "paper") and are mostly higher than sacreBLEU's.

    Args:
        translations: one for each sentence.
        references: one for each translation.
        language: the language of both, such as "de", for Moses' rules.

    Returns:
        {"paper_bleu" in percent, "paper_bleu_signature"}; {} with a warning if sacremoses is not
        installed.
    """
    try:
        tokenize = moses_tokenizer(language)
    except ImportError:
        logging.warning("paper_bleu is omitted: it requires the package sacremoses (extra paper).")
        return {}
    tokenized_translations = [tokenize(text) for text in translations]
    tokenized_references = [tokenize(text) for text in references]
    metric = BLEU(tokenize="none", smooth_method="none", force=True)
    score = metric.corpus_score(tokenized_translations, [tokenized_references]).score
    compounds = "split" if language == "de" else "whole"
    return {
        "paper_bleu": round(score, 4),
        "paper_bleu_signature": f"multi-bleu|case:mixed|tok:moses-{language}|compounds:{compounds}",
    }


def moses_tokenizer(language: str) -> Callable[[str], str]:
    """Makes a function that separates the tokens of a sentence by spaces, like Moses.

    In German, as usual, words are also split at hyphens: "rich-text" becomes "rich ##AT##-##AT##
    text".

    Args:
        language: such as "de".

    Raises:
        ImportError: if sacremoses is not installed.
    """
    from sacremoses import MosesPunctNormalizer, MosesTokenizer

    tokenizer, normalizer = MosesTokenizer(language), MosesPunctNormalizer()

    def tokenize(sentence: str) -> str:
        text = _LAST_MARK.sub(r" \1", normalizer.replace_unicode_punct(sentence))
        text = tokenizer.tokenize(text, escape=False, return_str=True)
        return _HYPHEN.sub(r"\1 ##AT##-##AT## \2", text) if language == "de" else text

    return tokenize
