"""Finds what is no language within text: URLs, placeholders of programs, emoji, signs before items.

Each becomes a WHOLE mark, written as the segment writes text. A format that writes URLs in another
way than text makes the marks of them itself.
"""

import re

from keras_transformer.documents.segments import Segment

# A sign before an item of a list, or before a quoted line of an e-mail: "-", "2)", ">". Python and
# RE2, whose regular expressions TensorFlow has, read this pattern in the same way.
ITEM_SIGN = r"(?:[-=–—]*>+|[-–—*+#•‣⁃◦∙·→⇒■-◿]+|\[[ xX]?\]|\(?(?:\d{1,3}|[A-Za-z]|[ivxIVX]{2,4})\))"

# A full stop or a bracket at the end of a URL belongs to the sentence; paired brackets do not.
_OF_URL = r"\s()<>\"“”«»。，、；：！？）」』】"
_URL_END = rf"(?:\([^{_OF_URL}]*\)|[^{_OF_URL}\]}}'’.,;:!?…])"
_URL_REST = rf"(?:\([^{_OF_URL}]*\)|[^{_OF_URL}])*{_URL_END}"
_NAME = r"[A-Za-z_][\w.\[\]-]*"
# A choice between texts by a number or a word, which may hold such a choice. A translation could
# break its form, so it is left to people as a whole.
_IN_BRACES = r"[^{}]"
for _ in range(4):  # a choice within a text of a choice, and a name in it
    _IN_BRACES = rf"[^{{}}]|\{{(?:{_IN_BRACES})*+\}}"
_CHOICE = rf"\{{(?:\d+|{_NAME}), ?(?:plural|select|selectordinal),(?:{_IN_BRACES})*+\}}"
_CONVERSION = r"%(?:\d+\$)?[#0+-]?\d*(?:\.\d+)?(?:hh?|ll?|[zjtL])?[diouxXeEfFgGcrsa@]"
_NAMED_CONVERSION = r"%\([^()\s]+\)[#0+-]*\d*(?:\.\d+)?[diouxXeEfFgGcrsa]"
_PART_OF_NAME = r"(?:\b\w+_|\b[^\W\d_])?"  # before a conversion: "name_%s", "v%s"
# Most models know no emoji, and would write something in their place.
_EMOJI = r"[\U0001F000-\U0001FAFF\u2600-\u27BF\u2B00-\u2BFF]"
_JOINED = r"[\uFE0F\u200D\u20E3]"  # to an emoji: its form, the next one, a key around it
_PATTERNS = (
    rf"\A{ITEM_SIGN}(?:\s+{ITEM_SIGN})*(?=\s)|\A>+",
    rf"{_EMOJI}(?:{_EMOJI}|{_JOINED})*|[\d#*]\uFE0F?\u20E3",
    rf"\b(?:https?|ftps?|sftp|file|ssh|git)://{_URL_REST}",
    rf"\b(?:mailto:|www\.[\w-]+\.){_URL_REST}",
    r"(?<![\w.+-])[\w.+-]*[\w+-]@[\w-]+(?:\.[\w-]+)*\.[^\W\d_]{2,}(?![\w-])",
    r"\{\{\{[^{}\n]*\}\}\}|\{\{[^{}\n]*\}\}|\{%[^{}\n]*%\}",  # of templates
    r"\$\{[^{}\n]*\}",
    rf"\{{(?:\d+|{_NAME})?(?:![rsa])?(?::[^{{}}\s]*)?\}}",  # {}, {0}, {name}, {x:.2f}
    rf"\{{(?:\d+|{_NAME}), ?(?:number|date|time)\b[^{{}}\n]*\}}",  # of ICU's messages
    _CHOICE,
    rf"{_NAMED_CONVERSION}(?:%%)?",  # %(name)s
    # Also at the end of a word ("dog%s"), and "%dx%d"; neither in "100%s" and "50 %d", nor at the
    # beginning of a word: "%sure".
    rf"{_PART_OF_NAME}(?<![\d%])(?<!\d\s)(?:{_CONVERSION})+(?:x(?:{_CONVERSION})+)*(?:%%)?(?!\w)",
    r"(?<![\w%])%[A-Z_][A-Z\d_]+%(?!\w)",  # %PATH%
    r"<(?:x|g|bx|ex|ph|bpt|ept|it)\s[^<>]*>|</(?:g|bpt|ept|ph|it)>",  # XLIFF's, within text
)
PLACEHOLDER = re.compile("|".join(_PATTERNS))
# Of a text that is known to be a format of C or Python.
_FORMAT = re.compile(rf"{_PART_OF_NAME}(?:{_NAMED_CONVERSION}|{_CONVERSION}|%%)+")


def with_placeholders(segment: Segment) -> Segment:
    """Makes marks of the placeholders of a segment, where no other mark is."""
    return segment.with_marks([match.span() for match in PLACEHOLDER.finditer(segment.text)])


def with_conversions(segment: Segment) -> Segment:
    """Makes marks of all conversions in a text that is known to be a format of C or Python."""
    return segment.with_marks([match.span() for match in _FORMAT.finditer(segment.text)])
