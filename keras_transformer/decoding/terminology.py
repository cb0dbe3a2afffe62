"""What translations of a text must contain, by a list of terms."""

import re


def required_terms(text: str, terminology: dict[str, str]) -> list[str]:
    """The target phrases of the source phrases that occur in a text as whole words.

    Of phrases that overlap, the first one counts, or the longest.
    """
    longest_first = sorted(map(re.escape, terminology), key=len, reverse=True)
    pattern = re.compile(rf"(?<!\w)(?:{'|'.join(longest_first)})(?!\w)")
    source_phrases = dict.fromkeys(pattern.findall(text))  # each once, in their order
    return [terminology[phrase] for phrase in source_phrases]
