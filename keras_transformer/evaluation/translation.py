"""BLEU and chrF of translations, by sacreBLEU (Post 2018), with the signatures to report."""

from collections.abc import Sequence
from typing import Any

from sacrebleu.metrics import BLEU, CHRF

from keras_transformer.errors import require


def translation_scores(
    translations: Sequence[str],
    references: Sequence[str],
    tokenize: str = "13a",
    lowercase: bool = False,
) -> dict[str, Any]:
    """Scores a corpus of translations, each against one reference.

    Args:
        translations: one for each sentence; empty ones are allowed.
        references: as many as translations.
        tokenize: sacreBLEU's tokenization for BLEU: "13a" is WMT's, "none" is for text that is
            tokenized already. chrF needs none.
        lowercase: whether BLEU and chrF ignore case.

    Returns:
        {"bleu", "chrf"} in percent, {"signature", "chrf_signature"} of sacreBLEU, and
        {"brevity_penalty", "length_ratio"}.

    Raises:
        InputError: if there are no sentences, or unequal numbers of them.
    """
    received = f"{len(translations)} translations of {len(references)} references"
    paired = 0 < len(references) == len(translations)
    require(paired, "BLEU needs a translation for each reference", received)
    # force=True: sacreBLEU would warn about references that are tokenized already.
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
