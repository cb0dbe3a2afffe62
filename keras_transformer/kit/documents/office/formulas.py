"""Texts that formulas of a spreadsheet depend on.

If the heading of an Excel table were translated, it would no longer match the table, which Excel
calls damage.
"""

import re
from collections.abc import Iterable
from html import unescape

_TEXT = re.compile(r'"((?:[^"]|"")*)"')


def texts_in(formulas: Iterable[str]) -> set[str]:
    """Returns the texts within formulas as written in XML: "yes" in =IF(A1="yes",1,0).

    A list of allowed values is one text with commas or semicolons, and yields each value.
    """
    texts: set[str] = set()
    for formula in formulas:
        for match in _TEXT.finditer(unescape(formula)):
            text = match[1].replace('""', '"')
            texts.add(text)
            texts.update(value.strip() for value in re.split("[,;]", text))
    return texts
