"""Which language a text is in, by py3langid where that is installed."""

import functools
from typing import NamedTuple

from keras_transformer.errors import InputError, install_command

BEST = 3  # languages that are reported


class Detected(NamedTuple):
    """A language that a text may be in."""

    language: str  # code of ISO 639
    confidence: float  # percent, of a hundred for all languages together


def detect(text: str) -> list[Detected]:
    """Finds the languages that a text may be in, the likeliest first.

    The first call loads the detector, which takes a second or two.

    Raises:
        InputError: if no detector is installed.
    """
    found = _identifier().rank(text)
    return [Detected(code, round(100 * share, 1)) for code, share in found[:BEST]]


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
