"""BLEU and chrF for a model with several directions: for each, and their means."""

from collections.abc import Sequence
from typing import Any

from keras_transformer.support.errors import require
from keras_transformer.support.text_table import text_table
from keras_transformer.use.evaluate.translation import translation_scores

# These are the same for all directions.
_SIGNATURES = ("signature", "chrf_signature")


def direction_scores(
    translations: Sequence[str],
    references: Sequence[str],
    directions: Sequence[str],
    tokenize: str = "13a",
    lowercase: bool = False,
) -> dict[str, Any]:
    """Scores the translations in each direction separately.

    Args:
        translations: one for each sentence.
        references: one for each translation.
        directions: the direction of each sentence, such as "en-de".
        tokenize, lowercase: see `translation_scores`.

    Returns:
        {"bleu", "chrf"}, unweighted means over the directions; sacreBLEU's signatures; and
        {"directions": {"en-de": {"sentences", "bleu", "chrf", "brevity_penalty", "length_ratio"}}},
        in the order in which they first occur.

    Raises:
        InputError: if there are no sentences, or their numbers differ.
    """
    counts = (len(translations), len(references), len(directions))
    rule = "must be as many as the references and the directions, and at least one"
    require(0 < counts[0] == counts[1] == counts[2], "translations", rule, counts)
    by_direction = {}
    signatures = {}
    for direction in dict.fromkeys(directions):
        rows = [row for row, name in enumerate(directions) if name == direction]
        scores = translation_scores(
            [translations[row] for row in rows],
            [references[row] for row in rows],
            tokenize,
            lowercase,
        )
        signatures = {name: scores.pop(name) for name in _SIGNATURES}
        by_direction[direction] = {"sentences": len(rows), **scores}
    means = {
        name: _mean([each[name] for each in by_direction.values()]) for name in ("bleu", "chrf")
    }
    return {**means, **signatures, "directions": by_direction}


def directions_table(results: dict[str, Any]) -> str:
    """Formats the result of `direction_scores` as a table."""
    rows = [
        [name, scores["sentences"], f"{scores['bleu']:.2f}", f"{scores['chrf']:.2f}"]
        for name, scores in results["directions"].items()
    ]
    rows.append(["mean", None, f"{results['bleu']:.2f}", f"{results['chrf']:.2f}"])
    return text_table(["direction", "sentences", "BLEU", "chrF"], rows)


def _mean(values: list[float]) -> float:
    return round(sum(values) / len(values), 4)
