"""Robustness: how well a model translates text as users write it, compared to clean text.

Users write in capitals, in title case, with typos, without a full stop, and single words. Training
text rarely does, and a model may fail on changes that a reader would hardly notice.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from keras_transformer.support.text_changes import (
    in_capitals,
    in_title_case,
    with_typos,
    without_final_stop,
)
from keras_transformer.support.text_table import text_table
from keras_transformer.use.evaluate.translation import translation_scores
from keras_transformer.use.translate.translator import Translator

# Name -> the changes to the sources, and to the references.
_CHANGES: dict[str, tuple[Callable[[str], str], Callable[[str], str]]] = {
    "upper": (in_capitals, in_capitals),
    "title": (in_title_case, in_title_case),
    "typos": (with_typos, str),
    "no_stop": (without_final_stop, without_final_stop),
}
_NAMES = {
    "plain": "as it is",
    "upper": "in capitals",
    "title": "in title case",
    "typos": "with typos",
    "no_stop": "without the last full stop",
}
# Words translated alone: the most frequent ones with at least this many letters.
_SINGLE_WORDS = 200
_FEWEST_LETTERS = 3
# A longer translation of one word counts as bad.
_MOST_WORDS = 3


def robustness(
    translator: Translator,
    sources: Sequence[str],
    references: Sequence[str],
    plain: dict[str, Any],
    tokenize: str = "13a",
    lowercase: bool = False,
) -> dict[str, Any]:
    """Translates changed sources, and scores the translations.

    Args:
        translator: the model.
        sources: sentences.
        references: one for each source.
        plain: the scores for the unchanged sources, from `translation_scores`.
        tokenize, lowercase: see `translation_scores`.

    Returns:
        Name -> {"bleu", "chrf"}: "plain", "upper" and "title" (against references in capitals and
        in title case), "typos" in one of seven words (against the unchanged references), and
        "no_stop" (sources and references without the final full stop). Also {"one_word": {"words",
        "bad"}}: how many source words were translated alone, and the percentage of translations
        with no word, more than three words, or a repeated word.
    """
    results = {"plain": _bleu_and_chrf(plain)}
    for name, (change_source, change_reference) in _CHANGES.items():
        translations = _translated(translator, [change_source(text) for text in sources])
        changed_references = [change_reference(text) for text in references]
        scores = translation_scores(translations, changed_references, tokenize, lowercase)
        results[name] = _bleu_and_chrf(scores)
    words = single_words(sources)
    bad = sum(is_bad_for_a_word(text) for text in _translated(translator, words))
    share = round(100 * bad / len(words), 2) if words else None
    results["one_word"] = {"words": len(words), "bad": share}
    return results


def robustness_table(results: dict[str, Any]) -> str:
    """Formats the result of `robustness` as a table, with BLEU relative to that of plain text."""
    whole = results["plain"]["bleu"]
    rows = []
    for name, shown in _NAMES.items():
        scores = results[name]
        share = f"{100 * scores['bleu'] / whole:.1f}" if whole else None
        rows.append([shown, f"{scores['bleu']:.2f}", share, f"{scores['chrf']:.2f}"])
    table = text_table(["text", "BLEU", "% of plain", "chrF"], rows)
    one_word = results["one_word"]
    if not one_word["words"]:
        return table
    share, words = one_word["bad"], one_word["words"]
    return (
        f"{table}\n{share}% of {words} words translated alone give more than {_MOST_WORDS} "
        "words, a repeated word, or none."
    )


def single_words(sources: Sequence[str]) -> list[str]:
    """Returns the most frequent words of three letters or more, in order; the first on ties."""
    counts = Counter()
    for text in sources:
        counts.update(word for word in text.split() if word.isalpha())
    frequent = [word for word, _ in counts.most_common() if len(word) >= _FEWEST_LETTERS]
    return frequent[:_SINGLE_WORDS]


def is_bad_for_a_word(translation: str) -> bool:
    """Whether a text cannot be a translation of one word: it is blank, long, or repeats a word."""
    words = [word.strip(".,;:!?").casefold() for word in translation.split()]
    words = [word for word in words if word]
    return not 0 < len(words) <= _MOST_WORDS or len(set(words)) < len(words)


def _translated(translator: Translator, sources: list[str]) -> list[str]:
    return [row[0].text for row in translator.translate(sources, progress=True, scores=False)]


def _bleu_and_chrf(scores: dict[str, Any]) -> dict[str, float]:
    return {"bleu": scores["bleu"], "chrf": scores["chrf"]}
