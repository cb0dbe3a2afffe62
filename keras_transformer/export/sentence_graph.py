"""Sentences of whole texts within a graph, where documents/sentences.py cannot be called.

Regular expressions find nearly as many as that module (docs/measurements/documents.md), by rules
for all languages.
"""

from typing import NamedTuple

import tensorflow as tf

from keras_transformer.documents.placeholders import ITEM_SIGN

# Titles and the like that a full stop after is no end of a sentence, in several languages.
_ABBREVIATIONS = (
    *("Mr", "Mrs", "Ms", "Dr", "Prof", "St", "Hr", "Fr", "Mme", "MM", "Sr", "Sra", "Gen", "Sen"),
    *("Rep", "Gov", "Lt", "Col", "Nr", "No", "Nos", "vs", "ca", "bzw", "Abs", "Art", "Fig", "Vol"),
)
_SPACE = "[[:space:]]"
_CLOSING, _OPENING = "[\"'”’“»)\\]]*", f"(?:[\"'“‘„¿¡(\\[]|«{_SPACE}*)*"
# In the order in which they are applied; a line break is put between two sentences.
_RULES = (
    # "Yes." Then; "Yes". "Then"; of scripts without case, any letter may be the first.
    (rf"([.!?…]{_CLOSING})({_SPACE}+{_OPENING}[\p{{Lu}}\p{{Lt}}\p{{Lo}}\p{{N}}])", "\\1\n\\2"),
    (r"([。！？][”’」』）]*)", "\\1\n"),
    # An initial, an ordinal, an abbreviation.
    (rf"((?:^|[^\pL\pM\pN])(?:\pL|\d{{1,2}}|{'|'.join(_ABBREVIATIONS)})\.)\n", "\\1"),
    (r"\n+$", ""),
)
_SURROUNDED = rf"(?s)^({_SPACE}*(?:{ITEM_SIGN}{_SPACE}+)*)(.*?)({_SPACE}*)$"


def lines_and_sentences(text: tf.Tensor) -> tf.RaggedTensor:
    """Cuts texts, string [B], into lines and these into sentences: string [B, None, None].

    The sentences of a line are together the line: spaces between two are at the beginning of the
    second. A carriage return is a space at the end of a line.

    Example:
        >>> lines_and_sentences(tf.constant(["Dr. Li came. He sat.\\nYes!"])).to_list()
        [[[b'Dr. Li came.', b' He sat.'], [b'Yes!']]]
    """
    lines = tf.strings.split(text, "\n")  # [B, None]
    marked = lines.flat_values
    for pattern, replacement in _RULES:
        marked = tf.strings.regex_replace(marked, pattern, replacement)
    return lines.with_flat_values(tf.strings.split(marked, "\n"))


class Surrounded(NamedTuple):
    """Sentences, string [N] each, and what is around their language."""

    before: tf.Tensor  # spaces, and signs before items of lists
    language: tf.Tensor  # "" where a sentence has no letter
    after: tf.Tensor  # spaces


def surrounded(sentences: tf.Tensor) -> Surrounded:
    """Parts sentences, string [N], into language and what stays as it is."""
    before, language, after = (
        tf.strings.regex_replace(sentences, _SURROUNDED, group) for group in (r"\1", r"\2", r"\3")
    )
    has_none = tf.strings.regex_full_match(language, r"[^\pL]*")
    return Surrounded(
        tf.where(has_none, sentences, before),
        tf.where(has_none, "", language),
        tf.where(has_none, "", after),
    )


def in_parts(ids: tf.RaggedTensor, begins_word: tf.RaggedTensor, limit: int) -> tf.RaggedTensor:
    """Cuts rows of ids, int32 [N, None], into parts of at most `limit`: int32 [N, None, None].

    A row that fits is one part. A part begins with a word, if words are no longer than a part.

    Args:
        begins_word: bool of the same shape, whether a subword is the first of a word.
    """
    size = max(limit // 2, 1)  # up to where words begin in a part, which ends with a word
    rows = ids.value_rowids()
    place = tf.ragged.range(ids.row_lengths()).flat_values  # of each id in its row
    is_first = begins_word.flat_values | (place == 0)
    first = tf.boolean_mask(place, is_first)  # of each word
    begin = tf.gather(first, tf.cumsum(tf.cast(is_first, tf.int64)) - 1)  # of the word of each id
    part = tf.where(place - begin < size, begin, place) // size
    part = tf.where(tf.gather(ids.row_lengths(), rows) <= limit, tf.zeros_like(part), part)
    changes = tf.concat([part[:1] < 0, part[1:] != part[:-1]], axis=0)
    is_first = changes | (place == 0)
    parts = tf.RaggedTensor.from_row_starts(ids.flat_values, tf.where(is_first)[:, 0])
    counts = tf.math.unsorted_segment_sum(tf.cast(is_first, tf.int64), rows, ids.nrows())
    return tf.RaggedTensor.from_row_lengths(parts, counts)
