"""Sentence splitting inside a graph, where documents/sentences.py cannot be called.

Regular expressions find nearly as many sentences as that module (docs/measurements/documents.md),
with the same rules for all languages.
"""

from typing import NamedTuple

import tensorflow as tf

from keras_transformer.documents.placeholders import ITEM_SIGN

# Titles and the like in several languages, after which a full stop does not end a sentence.
_ABBREVIATIONS = (
    *("Mr", "Mrs", "Ms", "Dr", "Prof", "St", "Hr", "Fr", "Mme", "MM", "Sr", "Sra", "Gen", "Sen"),
    *("Rep", "Gov", "Lt", "Col", "Nr", "No", "Nos", "vs", "ca", "bzw", "Abs", "Art", "Fig", "Vol"),
)
_SPACE = "[[:space:]]"
_CLOSING, _OPENING = "[\"'”’“»)\\]]*", f"(?:[\"'“‘„¿¡(\\[]|«{_SPACE}*)*"
# In order of application; they put a line break between two sentences.
_RULES = (
    # "Yes." Then; "Yes". "Then"; in scripts without case, any letter may be the first.
    (rf"([.!?…]{_CLOSING})({_SPACE}+{_OPENING}[\p{{Lu}}\p{{Lt}}\p{{Lo}}\p{{N}}])", "\\1\n\\2"),
    (r"([。！？][”’」』）]*)", "\\1\n"),
    # An initial, an ordinal, an abbreviation.
    (rf"((?:^|[^\pL\pM\pN])(?:\pL|\d{{1,2}}|{'|'.join(_ABBREVIATIONS)})\.)\n", "\\1"),
    (r"\n+$", ""),
)
_SURROUNDED = rf"(?s)^({_SPACE}*(?:{ITEM_SIGN}{_SPACE}+)*)(.*?)({_SPACE}*)$"


def lines_and_sentences(text: tf.Tensor) -> tf.RaggedTensor:
    """Splits texts, string [B], into lines and these into sentences: string [B, None, None].

    Concatenating a line's sentences gives the line: spaces between two sentences begin the second.
    A carriage return is a space at the end of a line.

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
    """Sentences, string [N] each, and the text around their content."""

    before: tf.Tensor  # spaces and list markers
    language: tf.Tensor  # "" for sentences without letters
    after: tf.Tensor  # spaces


def surrounded(sentences: tf.Tensor) -> Surrounded:
    """Splits sentences, string [N], into content and surrounding text, which stays unchanged."""
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
    """Splits rows of ids, int32 [N, None], into parts of at most `limit`: int32 [N, None, None].

    A row that fits is one part. Parts begin at word boundaries, unless a word exceeds the limit.

    Args:
        begins_word: bool in the same shape, whether a subword begins a word.
    """
    size = max(limit // 2, 1)  # longest prefix of words in a part
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
