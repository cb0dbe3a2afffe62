"""BLEU as the paper scored newstest2014: Moses tokens, split compounds, no smoothing.

These are the steps of tensor2tensor's get_ende_bleu.sh, for comparison with papers of that time.
Such scores depend on the tokenizer and are mostly higher than sacreBLEU's. The script expects
references that are tokenized already; here they are tokenized in the same way as the translations.
The tokenizer is that of sacremoses (the extra "paper").
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

from absl import logging
from sacrebleu.metrics import BLEU

from keras_transformer.evaluation.translation import check_pairs

_HYPHEN = re.compile(r"(\S)-(\S)")
# The tokenizer of Moses always separates these from the last word; sacremoses does not always.
_LAST_MARK = re.compile(r"(?<=[^\s.])([.'])$")


def paper_bleu(
    translations: Sequence[str], references: Sequence[str], language: str = "de"
) -> dict[str, Any]:
    """Scores a corpus of translations, each against one reference.

    Args:
        translations: one for each sentence; empty ones are allowed.
        references: as many as translations.
        language: of both, for the tokenizer. Compounds are split in German only, as is usual.

    Returns:
        {"paper_bleu" in percent, "paper_bleu_signature"}; {} with a warning where sacremoses is
        not installed.

    Raises:
        InputError: if there are no sentences, or unequal numbers of them.
    """
    check_pairs(translations, references)
    try:
        tokens_of = moses_tokenizer(language)
    except ImportError:
        logging.warning("paper_bleu is left out: it needs the package sacremoses (extra paper).")
        return {}
    compounds = "split" if language == "de" else "whole"

    def tokenized(sentence):
        text = " ".join(tokens_of(sentence))
        return split_compounds(text) if compounds == "split" else text

    score = multi_bleu(list(map(tokenized, translations)), list(map(tokenized, references)))
    signature = f"multi-bleu|case:mixed|tok:moses-{language}|compounds:{compounds}"
    return {"paper_bleu": round(score, 4), "paper_bleu_signature": signature}


def moses_tokenizer(language: str) -> Callable[[str], list[str]]:
    """A function that splits a sentence into the tokens of Moses, without its XML escapes.

    Raises:
        ImportError: if sacremoses is not installed.
    """
    from sacremoses import MosesPunctNormalizer, MosesTokenizer

    tokenizer, normalizer = MosesTokenizer(language), MosesPunctNormalizer()

    def tokens(sentence: str) -> list[str]:
        text = normalizer.replace_unicode_punct(sentence).rstrip()
        return tokenizer.tokenize(_LAST_MARK.sub(r" \1", text), escape=False)

    return tokens


def split_compounds(text: str) -> str:
    """Splits words at hyphens, "rich-text" becoming "rich ##AT##-##AT## text".

    As in the script, a character between two hyphens belongs to the first one only: "a-b-c"
    becomes "a ##AT##-##AT## b-c".
    """
    return _HYPHEN.sub(r"\1 ##AT##-##AT## \2", text)


def multi_bleu(translations: Sequence[str], references: Sequence[str]) -> float:
    """Corpus BLEU-4 of tokenized texts in percent (Papineni et al. 2002), without smoothing."""
    # force=True: sacreBLEU would warn about text that is tokenized already.
    metric = BLEU(tokenize="none", smooth_method="none", force=True)
    return metric.corpus_score(list(translations), [list(references)]).score
