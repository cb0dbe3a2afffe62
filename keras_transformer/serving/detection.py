"""Language detection with py3langid, if installed."""

import functools
from typing import NamedTuple

from keras_transformer.errors import InputError, install_command

BEST = 3  # languages reported


class Detected(NamedTuple):
    """A candidate for a text's language."""

    language: str  # ISO 639 code
    confidence: float  # percent; all languages together have 100


def detect(text: str) -> list[Detected]:
    """Returns the most likely languages of a text, most likely first.

    The first call loads the detector, which takes a second or two.

    Raises:
        InputError: if no detector is installed.
    """
    ranked = _identifier().rank(text)
    return [Detected(code, round(100 * share, 1)) for code, share in ranked[:BEST]]


def is_available() -> bool:
    """Whether a detector is installed."""
    try:
        import py3langid  # noqa: F401
    except ModuleNotFoundError:
        return False
    return True


@functools.cache
def _identifier():
    try:
        from py3langid.langid import MODEL_FILE, LanguageIdentifier
    except ModuleNotFoundError as error:
        rule = f"must have py3langid installed ({install_command('detect')})"
        raise InputError(None, rule, error, "/detect") from None
    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
