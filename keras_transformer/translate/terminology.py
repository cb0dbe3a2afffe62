"""Required phrases for translations, from a terminology."""

import re
from collections.abc import Iterable

from keras_transformer.errors import require


def check_terminology(terminology: dict[str, str] | None) -> None:
    """Raises InputError for an empty phrase; None means no terminology."""
    for source, target in (terminology or {}).items():
        has_phrases = source.strip() and target.strip()
        rule = "must have a source phrase and a target phrase in each entry"
        require(has_phrases, "terminology", rule, repr({source: target}))


def required_phrases_of(
    texts: Iterable[str], terminology: dict[str, str] | None
) -> list[list[str]] | None:
    """Returns the target phrases for the source phrases that occur as whole words in each text.

    Among overlapping phrases, the first one counts, or the longest. Returns None without a
    terminology.
    """
    if not terminology:
        return None
    longest_first = sorted(map(re.escape, terminology), key=len, reverse=True)
    pattern = re.compile(rf"(?<!\w)(?:{'|'.join(longest_first)})(?!\w)")
    # Each phrase in a text once, in order.
    matches = [dict.fromkeys(pattern.findall(text)) for text in texts]
    return [[terminology[phrase] for phrase in phrases] for phrases in matches]
