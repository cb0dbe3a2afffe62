"""Text in SVG and HTML."""

import re
from html import escape

# XML 1.0 has no place for these, not even escaped: most control characters, halves of surrogate
# pairs, and two characters that are none.
_NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def well_formed(text: str) -> str:
    """Returns a text whose characters are all allowed in XML: "\ufffd" in place of the others."""
    return _NOT_XML.sub("\ufffd", text)


def escaped(text: str) -> str:
    """Returns a text as it stands in an element or a quoted attribute."""
    return escape(well_formed(text))
