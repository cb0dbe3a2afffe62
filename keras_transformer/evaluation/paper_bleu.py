"""BLEU as the paper scored newstest2014: Moses' words, compounds split, multi-bleu's counts.

This is tensor2tensor's get_ende_bleu.sh, for comparison with papers of the time only: such scores
hang on the tokenizer, and are mostly higher than sacreBLEU's. Here the references go the same way
as the translations; the script takes references that somebody has tokenized before.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from keras_transformer.errors import InputError
from keras_transformer.evaluation.moses import moses_tokens

MAX_ORDER = 4
_HYPHEN = re.compile(r"(\S)-(\S)")


def paper_bleu(
    translations: Sequence[str], references: Sequence[str], language: str = "de"
) -> dict[str, Any]:
    """Scores a corpus of translations, each against one reference.

    Args:
        translations: one a sentence, empty ones included.
        references: as many.
        language: of both, for the tokenizer. Compounds are split in German only, as is the custom.

    Returns:
        {"paper_bleu" in percent, "paper_bleu_signature"}.

    Raises:
        InputError: for no sentences, or unequal numbers of them.
    """
    if not references or len(translations) != len(references):
        received = f"{len(translations)} translations of {len(references)} references"
        raise InputError(f"BLEU needs a translation for each reference. Received: {received}")
    compounds = "split" if language == "de" else "whole"

    def words(sentence):
        tokens = moses_tokens(sentence, language)
        return split_compounds(" ".join(tokens)).split() if compounds == "split" else tokens

    score = multi_bleu([words(text) for text in translations], [words(text) for text in references])
    signature = f"multi-bleu|case:mixed|tok:moses-{language}|compounds:{compounds}"
    return {"paper_bleu": round(score, 4), "paper_bleu_signature": signature}


def split_compounds(text: str) -> str:
    """Parts words at hyphens, "rich-text" becoming "rich ##AT##-##AT## text".

    As in the script, a character between two hyphens serves the first only: "a-b-c" becomes
    "a ##AT##-##AT## b-c".
    """
    return _HYPHEN.sub(r"\1 ##AT##-##AT## \2", text)


def multi_bleu(translations: Sequence[Sequence[str]], references: Sequence[Sequence[str]]) -> float:
    """Corpus BLEU-4 of words, in percent (Papineni et al. 2002), without smoothing.

    BLEU = min(1, exp(1 - r / c)) (p_1 p_2 p_3 p_4)^(1/4), with c and r the number of words of
    translations and references and p_n the share of the translations' n-grams that occur in their
    reference, each at most as often as there; 0 where any p_n is 0 or has no n-grams.
    """
    matches, totals = [0] * MAX_ORDER, [0] * MAX_ORDER
    for translation, reference in zip(translations, references, strict=True):
        for n in range(MAX_ORDER):
            found, wanted = _ngrams(translation, n + 1), _ngrams(reference, n + 1)
            matches[n] += (found & wanted).total()
            totals[n] += found.total()
    if not all(matches):
        return 0.0
    log_precision = sum(map(math.log, matches)) - sum(map(math.log, totals))
    translated, referred = sum(map(len, translations)), sum(map(len, references))
    return 100 * math.exp(min(0.0, 1 - referred / translated) + log_precision / MAX_ORDER)


def _ngrams(words: Sequence[str], n: int) -> Counter:
    return Counter(tuple(words[start : start + n]) for start in range(len(words) - n + 1))
