"""BLEU as the paper scored newstest2014: Moses tokens, split compounds, no smoothing.

These are the steps of tensor2tensor's get_ende_bleu.sh, for comparison with papers of that time.
Such scores depend on the tokenizer and are mostly higher than sacreBLEU's. The script expects
references that are tokenized already; here they are tokenized in the same way as the translations.
The tokenizer is that of sacremoses (the extra "paper").
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

import sacrebleu
from absl import logging

# As in the script, a character between two hyphens belongs to the first one only: "a-b-c" becomes
# "a ##AT##-##AT## b-c".
_HYPHEN = re.compile(r"(\S)-(\S)")
# The tokenizer of Moses always separates these from the last word; sacremoses does not always.
_LAST_MARK = re.compile(r"(?<=[^\s.])([.'])\s*$")


def paper_bleu(
    translations: Sequence[str], references: Sequence[str], language: str = "de"
) -> dict[str, Any]:
    """Scores a corpus of translations by corpus BLEU-4 (Papineni et al. 2002).

    Args:
        translations: one for each sentence; empty ones are allowed.
        references: as many as translations.
        language: of both, for the tokenizer.

    Returns:
        {"paper_bleu" in percent, "paper_bleu_signature"}; {} with a warning if sacremoses is not
        installed.
    """
    try:
        tokenized = moses_tokenizer(language)
    except ImportError:
        logging.warning("paper_bleu is left out: it needs the package sacremoses (extra paper).")
        return {}
    found, wanted = [list(map(tokenized, texts)) for texts in (translations, references)]
    # force=True: sacreBLEU would warn about text that is tokenized already.
    unsmoothed = {"smooth_method": "none", "tokenize": "none", "force": True}
    score = sacrebleu.corpus_bleu(found, [wanted], **unsmoothed).score
    compounds = "split" if language == "de" else "whole"
    signature = f"multi-bleu|case:mixed|tok:moses-{language}|compounds:{compounds}"
    return {"paper_bleu": round(score, 4), "paper_bleu_signature": signature}


def moses_tokenizer(language: str) -> Callable[[str], str]:
    """A function that puts spaces between the tokens of a sentence, as Moses does.

    In German, as is usual, words are split at hyphens too, "rich-text" becoming
    "rich ##AT##-##AT## text".

    Raises:
        ImportError: if sacremoses is not installed.
    """
    from sacremoses import MosesPunctNormalizer, MosesTokenizer

    tokenizer, normalizer = MosesTokenizer(language), MosesPunctNormalizer()

    def tokenized(sentence: str) -> str:
        text = _LAST_MARK.sub(r" \1", normalizer.replace_unicode_punct(sentence))
        text = tokenizer.tokenize(text, escape=False, return_str=True)
        return _HYPHEN.sub(r"\1 ##AT##-##AT## \2", text) if language == "de" else text

    return tokenized
