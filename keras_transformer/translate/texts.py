"""The texts that a caller passes: checked, and made into ids."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import regex
from numpy.typing import ArrayLike

from keras_transformer.config import EOS_ID
from keras_transformer.errors import InputError, require
from keras_transformer.fields import shown
from keras_transformer.language_codes import pattern_of
from keras_transformer.search.config import DecodingConfig, SearchSettings
from keras_transformer.search.engine import Rows
from keras_transformer.search.streams import cores
from keras_transformer.vocabulary.subwords import Subwords

# Spaces, line ends and control characters of any script: nothing that could be translated.
BLANK_PATTERN = r"[\s\p{Z}\p{Cc}]*"
MIN_TEXTS_PER_THREAD = 64  # fewer are cut faster by one thread


def with_options(decoding: DecodingConfig, options: Mapping[str, Any]) -> DecodingConfig:
    """Returns `decoding` with other options; those that are None do not count.

    Raises:
        InputError: for an option of a value that it cannot have.
    """
    given = {name: value for name, value in options.items() if value is not None}
    if "forbidden_phrases" in given:
        phrases = as_texts(given["forbidden_phrases"], "forbidden_phrases")
        given["forbidden_phrases"] = tuple(phrases)
    return dataclasses.replace(decoding, **given)


def search_settings(options: DecodingConfig, vocabulary: Subwords) -> SearchSettings:
    """The settings of a search, with the ids of its forbidden phrases.

    Raises:
        InputError: if a forbidden phrase has no subwords.
    """
    if not options.forbidden_phrases:
        return SearchSettings(options)
    phrases = vocabulary.encode(options.forbidden_phrases)
    rule = "must have a subword in each phrase"
    require(all(phrases), "forbidden_phrases", rule, options.forbidden_phrases)
    return SearchSettings(options, tuple(tuple(phrase) for phrase in phrases))


class EncodedTexts(NamedTuple):
    """Texts as ids, with EOS, cut to the limit of the model."""

    ids: Rows
    truncated: list[bool]  # whether a text was longer and its end is missing


def encoded(vocabulary: Subwords, texts: Sequence[str]) -> Rows:
    """Cuts texts into subwords, without EOS: none for a blank text, even if it has a code."""
    code = f"(?:{pattern_of(vocabulary.languages)})?" if vocabulary.languages else ""
    is_blank = regex.compile(code + BLANK_PATTERN).fullmatch
    threads = min(cores(), 1 + len(texts) // MIN_TEXTS_PER_THREAD)
    rows = vocabulary.encode(["" if is_blank(text) else text for text in texts], threads)
    return [np.array(row, np.int32) for row in rows]


def with_eos(rows: Rows, limit: int) -> EncodedTexts:
    """Cuts rows to at most `limit` ids with EOS, and ends them in it."""
    truncated = [len(row) > limit - 1 for row in rows]
    ids = [np.append(row[: limit - 1], np.int32(EOS_ID)) for row in rows]
    return EncodedTexts(ids, truncated)


def rows_of(ids: ArrayLike, vocab_size: int, argument: str) -> np.ndarray:
    """Checks ids that a caller passes, and returns them as int32 [B, S].

    Raises:
        InputError: which names the argument, if they have another shape or are not ids.
    """
    try:
        found = np.asarray(ids)
    except ValueError:  # rows of different lengths
        found = np.zeros(0)
    is_batch = found.ndim == 2 and found.shape[1] > 0 and found.dtype.kind in "iu"
    rule = "must be rows of ids, int [B, S], padded to one length"
    require(is_batch, argument, rule, f"{found.dtype} {list(found.shape)}")
    known = (found >= 0) & (found < vocab_size)
    rule = f"must be ids from 0 to {vocab_size - 1}"
    require(known.all(), argument, rule, shown(found[~known].tolist()))
    return found.astype(np.int32)


def as_texts(texts: Iterable[str], argument: str) -> list[str]:
    """Makes a list of any iterable of strings.

    A string is an iterable of strings, too, of its letters: it is refused.

    Args:
        texts: what the caller gave.
        argument: what the caller calls it, for errors.

    Raises:
        InputError: for a single string, or for anything else that is no text.
    """
    is_many = _is_many(texts)
    rule = 'must be a list of strings; for one text write ["..."]'
    require(is_many, argument, rule, shown(texts))
    listed = list(texts)
    for place, text in enumerate(listed):
        as_text(text, f"{argument}[{place}]")
    return listed


def as_text(text: Any, argument: str) -> str:
    """Returns a text; anything else raises an InputError."""
    if not isinstance(text, str):
        raise InputError(argument, "must be a string", shown(text))
    return text


def as_text_lists(rows: Iterable[Iterable[str]], argument: str) -> list[list[str]]:
    """Makes lists of any iterable of iterables of strings; see `as_texts`."""
    is_many = _is_many(rows)
    rule = 'must be a list with a list of strings for each text, as [["..."]]'
    require(is_many, argument, rule, shown(rows))
    return [as_texts(row, f"{argument}[{place}]") for place, row in enumerate(rows)]


def _is_many(values: Any) -> bool:
    """Whether these are several values; a string is one, and so is an array of no dimensions."""
    if isinstance(values, str | bytes):
        return False
    return isinstance(values, Iterable) and getattr(values, "ndim", 1) > 0
