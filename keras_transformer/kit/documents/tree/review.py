"""How documents mark the translations that a person should read again.

Each format has a mark of its own: flags, states, comments. Formats that have one, by `review_mark`
in formats.py, write it with ReviewUnits (segments.py). A DocumentTranslator (translation.py) knows
below which confidence a translation is doubtful.
"""

PROGRAM = "keras-transformer"  # the author of comments


def comment_on(confidence: float) -> str:
    """Returns the text of a comment."""
    share = f"{confidence:.0%}" if confidence >= 0.01 else "less than 1%"
    return f"Please check: {share} likely to be good."
