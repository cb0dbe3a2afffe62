"""Text in SVG and HTML."""

import re
from html import escape

# Not allowed in XML 1.0, even escaped: most control characters, lone surrogates, and two
# noncharacters.
_NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def well_formed(text: str) -> str:
    """Returns a text with each character that XML does not allow replaced by "\ufffd"."""
    return _NOT_XML.sub("\ufffd", text)


def escaped(text: str) -> str:
    """Escapes a text for an element or a quoted attribute."""
    return escape(well_formed(text))
