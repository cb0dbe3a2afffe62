"""Checks the texts that a caller passes, and encodes them as ids."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import regex
from numpy.typing import ArrayLike

from keras_transformer.core.config import EOS_ID
from keras_transformer.core.search.engines.engine import Rows
from keras_transformer.core.search.engines.streams import cores
from keras_transformer.core.vocabulary.language_codes import pattern_of
from keras_transformer.core.vocabulary.subwords import Subwords
from keras_transformer.support.errors import InputError, require
from keras_transformer.support.fields import shown

# Spaces, line ends and control characters in any script: nothing to translate.
BLANK_PATTERN = r"[\s\p{Z}\p{Cc}]*"
MIN_TEXTS_PER_THREAD = 64  # fewer are encoded faster by one thread


class EncodedTexts(NamedTuple):
    """Texts as ids with EOS, truncated to the model's limit."""

    ids: Rows
    truncated: list[bool]  # whether each text was truncated


def encoded(vocabulary: Subwords, texts: Sequence[str]) -> Rows:
    """Encodes texts, without EOS; a blank text gives no ids, even with codes."""
    code = f"(?:{pattern_of(vocabulary.languages)} ?){{0,2}}" if vocabulary.languages else ""
    is_blank = regex.compile(code + BLANK_PATTERN).fullmatch
    threads = min(cores(), 1 + len(texts) // MIN_TEXTS_PER_THREAD)
    rows = vocabulary.encode(["" if is_blank(text) else text for text in texts], threads)
    return [np.array(row, np.int32) for row in rows]


def with_eos(rows: Rows, limit: int) -> EncodedTexts:
    """Truncates rows to `limit` ids including EOS, and appends EOS."""
    truncated = [len(row) > limit - 1 for row in rows]
    ids = [np.append(row[: limit - 1], np.int32(EOS_ID)) for row in rows]
    return EncodedTexts(ids, truncated)


def rows_of(ids: ArrayLike, vocab_size: int, argument: str) -> np.ndarray:
    """Checks ids that a caller passes, and returns them as int32 [B, S].

    Raises:
        InputError: naming the argument, if the shape is wrong or they are not ids.
    """
    try:
        array = np.asarray(ids)
    except ValueError:  # rows of different lengths
        array = np.zeros(0)
    is_batch = array.ndim == 2 and array.shape[1] > 0 and array.dtype.kind in "iu"
    rule = "must be rows of ids, int [B, S], padded to one length"
    require(is_batch, argument, rule, f"{array.dtype} {list(array.shape)}")
    known = (array >= 0) & (array < vocab_size)
    rule = f"must be ids from 0 to {vocab_size - 1}"
    require(known.all(), argument, rule, shown(array[~known].tolist()))
    return array.astype(np.int32)


def as_texts(texts: Iterable[str], argument: str) -> list[str]:
    """Converts any iterable of strings to a list.

    A single string, itself an iterable of letters, is rejected.

    Args:
        texts: the caller's texts.
        argument: the caller's name for them, for errors.

    Raises:
        InputError: for a single string, or for items that are not strings.
    """
    is_many = _is_many(texts)
    rule = 'must be a list of strings; for one text write ["..."]'
    require(is_many, argument, rule, shown(texts))
    listed = list(texts)
    for index, text in enumerate(listed):
        as_text(text, f"{argument}[{index}]")
    return listed


def as_text(text: Any, argument: str) -> str:
    """Returns a text; anything else raises an InputError."""
    if not isinstance(text, str):
        raise InputError(argument, "must be a string", shown(text))
    return text


def as_text_lists(rows: Iterable[Iterable[str]], argument: str) -> list[list[str]]:
    """Converts any iterable of iterables of strings to lists; see `as_texts`."""
    is_many = _is_many(rows)
    rule = 'must be a list with a list of strings for each text, such as [["..."]]'
    require(is_many, argument, rule, shown(rows))
    return [as_texts(row, f"{argument}[{index}]") for index, row in enumerate(rows)]


def require_one_each(sources: Sequence, rows: Sequence, argument: str, of: str = "texts") -> None:
    """Requires one row for each source; `of` is the name of the sources' argument."""
    received = f"{len(rows)} for {len(sources)}"
    require(len(rows) == len(sources), argument, f"must be as many as the {of}", received)


def _is_many(values: Any) -> bool:
    """Whether these are several values; a string or a zero-dimensional array is a single one."""
    if isinstance(values, str | bytes):
        return False
    return isinstance(values, Iterable) and getattr(values, "ndim", 1) > 0
