"""Language detection with py3langid, if installed."""

import functools
from collections.abc import Sequence
from typing import NamedTuple

from keras_transformer.support.errors import InputError, install_command
from keras_transformer.use.store.languages import primary, short_code

BEST = 3  # languages reported, at most
LIKELY = 0.1  # probability of those after the first; LibreTranslate's detector has the same bound


class Detected(NamedTuple):
    """A candidate for a text's language."""

    language: str  # its code
    confidence: float  # percent; all languages together have 100


def detect(text: str, languages: Sequence[str] = ()) -> list[Detected]:
    """Returns the most likely languages of a text, most likely first.

    The first call loads the detector, which takes a second or two.

    Args:
        text: the text; if nothing in it is language, the first of `languages` is as likely as any.
        languages: codes of the languages to choose from; empty for all that the detector knows.

    Raises:
        InputError: if no detector is installed.
    """
    ranked = _identifier().rank(text)
    if languages:  # a short text resembles many others
        shares = dict(ranked)
        found = [(code, shares.get(primary(short_code(code)), 0.0)) for code in languages]
        ranked = sorted(found, key=lambda each: each[1], reverse=True)
    others = [each for each in ranked[1:BEST] if each[1] >= LIKELY]
    return [Detected(code, round(100 * share, 1)) for code, share in [ranked[0], *others]]


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
