"""Required phrases of translations, from a list of terms."""

import re
from collections.abc import Iterable

from keras_transformer.errors import require


def check_terminology(terminology: dict[str, str] | None) -> None:
    """Raises InputError for a phrase that is empty; None is no terminology."""
    for source, target in (terminology or {}).items():
        has_phrases = source.strip() and target.strip()
        rule = "must have a source phrase and a target phrase in each entry"
        require(has_phrases, "terminology", rule, repr({source: target}))


def required_phrases_of(
    texts: Iterable[str], terminology: dict[str, str] | None
) -> list[list[str]] | None:
    """The target phrases of the source phrases that occur in each text as whole words.

    Of phrases that overlap, the first one counts, or the longest. Without terminology, it is None.
    """
    if not terminology:
        return None
    longest_first = sorted(map(re.escape, terminology), key=len, reverse=True)
    pattern = re.compile(rf"(?<!\w)(?:{'|'.join(longest_first)})(?!\w)")
    # Each phrase of a text once, in their order.
    found = [dict.fromkeys(pattern.findall(text)) for text in texts]
    return [[terminology[phrase] for phrase in phrases] for phrases in found]
