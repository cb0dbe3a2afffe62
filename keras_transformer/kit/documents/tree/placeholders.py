"""Finds non-language in text: URLs, program placeholders, emoji, list markers.

Each becomes a WHOLE mark, written as the segment writes text. Formats that write URLs differently
from text mark them themselves.
"""

import re
from collections.abc import Callable

from keras_transformer.kit.documents.tree.segments import Segment

# A list marker, or a quote marker in an e-mail: "-", "2)", ">".
ITEM_SIGN = r"(?:[-=–—]*>+|[-–—*+#•‣⁃◦∙·→⇒■-◿]+|\[[ xX]?\]|\(?(?:\d{1,3}|[A-Za-z]|[ivxIVX]{2,4})\))"

# A full stop or a bracket at the end of a URL belongs to the sentence; paired brackets do not.
_NOT_IN_URL = r"\s()<>\"“”«»。，、；：！？）」』】"
_URL_END = rf"(?:\([^{_NOT_IN_URL}]*\)|[^{_NOT_IN_URL}\]}}'’.,;:!?…])"
_URL_REST = rf"(?:\([^{_NOT_IN_URL}]*\)|[^{_NOT_IN_URL}])*{_URL_END}"
_NAME = r"[A-Za-z_][\w.\[\]-]*"
# A choice between texts by a number or a word, which may be nested. A translation could break its
# syntax, so all of it stays.
_IN_BRACES = r"[^{}]"
for _ in range(4):  # nested choices, and names in them
    _IN_BRACES = rf"[^{{}}]|\{{(?:{_IN_BRACES})*+\}}"
_CHOICE = rf"\{{(?:\d+|{_NAME}), ?(?:plural|select|selectordinal),(?:{_IN_BRACES})*+\}}"
_CONVERSION = r"%(?:\d+\$)?[#0+-]?\d*(?:\.\d+)?(?:hh?|ll?|[zjtL])?[diouxXeEfFgGcrsa@]"
_NAMED_CONVERSION = r"%\([^()\s]+\)[#0+-]*\d*(?:\.\d+)?[diouxXeEfFgGcrsa]"
_PART_OF_NAME = r"(?:\b\w+_|\b[^\W\d_])?"  # before a conversion: "name_%s", "v%s"
# Most models do not know emoji, and would replace them.
_EMOJI = r"[\U0001F000-\U0001FAFF\u2600-\u27BF\u2B00-\u2BFF]"
_JOINED = r"[\uFE0F\u200D\u20E3]"  # modifies an emoji: variation selector, joiner, keycap
_PATTERNS = (
    rf"\A{ITEM_SIGN}(?:\s+{ITEM_SIGN})*(?=\s)|\A>+",
    rf"{_EMOJI}(?:{_EMOJI}|{_JOINED})*|[\d#*]\uFE0F?\u20E3",
    rf"\b(?:https?|ftps?|sftp|file|ssh|git)://{_URL_REST}",
    rf"\b(?:mailto:|www\.[\w-]+\.){_URL_REST}",
    r"(?<![\w.+-])[\w.+-]*[\w+-]@[\w-]+(?:\.[\w-]+)*\.[^\W\d_]{2,}(?![\w-])",
    r"\{\{\{[^{}\n]*\}\}\}|\{\{[^{}\n]*\}\}|\{%[^{}\n]*%\}",  # templates
    r"\$\{[^{}\n]*\}",
    rf"\{{(?:\d+|{_NAME})?(?:![rsa])?(?::[^{{}}\s]*)?\}}",  # {}, {0}, {name}, {x:.2f}
    rf"\{{(?:\d+|{_NAME}), ?(?:number|date|time)\b[^{{}}\n]*\}}",  # ICU messages
    _CHOICE,
    rf"{_NAMED_CONVERSION}(?:%%)?",  # %(name)s
    # Also at the end of a word ("dog%s"), and "%dx%d"; neither in "100%s" and "50 %d", nor at the
    # beginning of a word: "%sure".
    rf"{_PART_OF_NAME}(?<![\d%])(?<!\d\s)(?:{_CONVERSION})+(?:x(?:{_CONVERSION})+)*(?:%%)?(?!\w)",
    r"(?<![\w%])%[A-Z_][A-Z\d_]+%(?!\w)",  # %PATH%
    r"<(?:x|g|bx|ex|ph|bpt|ept|it)\s[^<>]*>|</(?:g|bpt|ept|ph|it)>",  # XLIFF's, within text
    r"\[X\d+X\]",  # Weblate's, in texts for LibreTranslate
    r"<i class=notranslate>\{\d+\}</i>",  # Rocket.Chat's
)
PLACEHOLDER = re.compile("|".join(_PATTERNS))
# Every placeholder contains one of these. Most texts do not, and this search is 15 times as fast.
_SIGN = re.compile(rf"\A\W|[:@{{%<)\u20E3{_EMOJI[1:-1]}]|www\.|X\]")
# For a text known to be a C or Python format string.
_FORMAT = re.compile(rf"{_PART_OF_NAME}(?:{_NAMED_CONVERSION}|{_CONVERSION}|%%)+")


def with_placeholders(segment: Segment) -> Segment:
    """Turns placeholders in a segment into marks, except within other marks."""
    text = segment.text
    if not _SIGN.search(text):
        return segment
    return segment.with_marks([match.span() for match in PLACEHOLDER.finditer(text)])


def replaced(text: str, replace: Callable[[re.Match], str]) -> str:
    """Returns a text with each placeholder replaced by what `replace` returns."""
    return PLACEHOLDER.sub(replace, text) if _SIGN.search(text) else text


def with_conversions(segment: Segment) -> Segment:
    """Turns all conversions in a C or Python format string into marks."""
    return segment.with_marks([match.span() for match in _FORMAT.finditer(segment.text)])
