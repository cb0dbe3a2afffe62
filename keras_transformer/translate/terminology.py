"""Required phrases of translations, from a list of terms."""

import re

from keras_transformer.errors import require


def check_terminology(terminology: dict[str, str] | None) -> None:
    """Raises InputError for a phrase that is empty; None is no terminology."""
    for source, target in (terminology or {}).items():
        has_phrases = source.strip() and target.strip()
        rule = "must have a source phrase and a target phrase in each entry"
        require(has_phrases, "terminology", rule, repr({source: target}))


def required_terms(text: str, terminology: dict[str, str]) -> list[str]:
    """The target phrases of the source phrases that occur in a text as whole words.

    Of phrases that overlap, the first one counts, or the longest.
    """
    longest_first = sorted(map(re.escape, terminology), key=len, reverse=True)
    pattern = re.compile(rf"(?<!\w)(?:{'|'.join(longest_first)})(?!\w)")
    source_phrases = dict.fromkeys(pattern.findall(text))  # each once, in their order
    return [terminology[phrase] for phrase in source_phrases]
