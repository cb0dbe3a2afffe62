"""Translation memories in TMX 1.4: their units are read, changed, added and removed.

A unit (<tu>) has a text in each of several languages (<tuv>). What is not changed stays as it is:
other units, other languages of a unit, notes, properties, comments.
"""

import dataclasses
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from xml.sax.saxutils import quoteattr

from keras_transformer.core.vocabulary.language_codes import Direction
from keras_transformer.kit.documents.text.xml_source import XmlElement, XmlSource, write_text
from keras_transformer.support.errors import require
from keras_transformer.support.version import VERSION

CODE_TAGS = ("bpt", "ept", "ph", "it", "ut")  # their content within a segment is code
ALL_LANGUAGES = "*all*"  # in place of a source language: each may be
_DATES = ("changedate", "creationdate")  # of units, and of their texts
_EMPTY = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4">
  <header creationtool="keras-transformer" creationtoolversion="{version}" segtype="sentence"
    o-tmf="TMX" adminlang="en" srclang={source_language} datatype="plaintext"
    creationdate="{date}"/>
  <body>
  </body>
</tmx>
"""


@dataclasses.dataclass(frozen=True)
class Unit:
    """A sentence and its translation, as a unit has them."""

    source: str
    target: str
    date: str  # of the last change, as in "20261128T134500Z"; "" if unknown
    element: XmlElement
    variant: XmlElement  # the element of the translation


class Tmx:
    """The text of a translation memory. It does not change: changes are new texts.

    Args:
        text: the whole file.

    Raises:
        InputError: if the text is not well-formed (the error names the line) or is not TMX.
    """

    def __init__(self, text: str):
        self.text = text
        self._xml = XmlSource(text)
        root = self._xml.root
        require(root.local == "tmx", None, "must be a <tmx>", f"<{root.local}>", "the document")
        body = root.child("body")
        has_body = body is not None and not body.is_alone
        require(has_body, None, "must have a <body> with an end tag", "none", "the document")
        self._body = body
        self._units: dict[Direction, list[Unit]] = {}

    def units(self, direction: Direction) -> list[Unit]:
        """Returns the units with both languages, in the order of the file.

        White space in their texts is normalized. The first text in a language counts, and "en-GB"
        is "en", too. A unit that names its source language has no other direction.
        """
        if direction not in self._units:
            self._units[direction] = self._units_of(direction)
        return self._units[direction]

    def _units_of(self, direction: Direction) -> list[Unit]:
        units = []
        for element in self._body.elements:
            named = element.attributes.get("srclang", ALL_LANGUAGES)
            if named != ALL_LANGUAGES and not is_variety(named, direction.source):
                continue
            source = _of_language(_variants(element), direction.source)
            target = _of_language(_variants(element), direction.target)
            if source is None or target is None:
                continue
            texts = [" ".join(_segment_text(variant).split()) for variant in (source, target)]
            if all(texts):
                units.append(Unit(*texts, _date(target) or _date(element), element, target))
        return units

    def with_unit(self, source: str, target: str, direction: Direction) -> str:
        """Returns the text with another unit at its end."""
        first = f"<tuv xml:lang={quoteattr(direction.source)}>{_segment(source)}</tuv>"
        second = _variant(direction.target, target)
        unit = (
            f"<tu srclang={quoteattr(direction.source)}>\n      {first}\n      {second}\n    </tu>"
        )
        return self._edited([], unit)

    def with_translation(self, unit: Unit, target: str) -> str:
        """Returns the text with another translation in a unit, which moves to its end."""
        element, old = unit.element, unit.variant
        before = self._xml.source(element.start, old.start)
        after = self._xml.source(old.end, element.end)
        return self._edited([element], before + _variant(_language(old), target) + after)

    def without(self, units: Iterable[Unit]) -> str:
        """Returns the text without some units' translations.

        A unit is removed if it has no third language.
        """
        return self._edited(
            [unit.variant if len(_variants(unit.element)) > 2 else unit.element for unit in units]
        )

    def _edited(self, removed: Iterable[XmlElement], added: str = "") -> str:
        """Returns the text without some elements, in their order, and with a unit at its end."""
        place, text = 0, ""
        for element in removed:
            text += self._xml.source(place, element.start).rstrip()
            place = element.end
        text += self._xml.source(place, self._body.content_end).rstrip()
        if added:
            text += f"\n    {added}"
        return f"{text}\n  {self._xml.source(self._body.content_end)}"


def empty_memory(source_languages: Sequence[str]) -> str:
    """Returns a memory without units, for sentences in these languages."""
    language = source_languages[0] if len(source_languages) == 1 else ALL_LANGUAGES
    return _EMPTY.format(version=VERSION, source_language=quoteattr(language), date=_now())


def is_variety(name: str, language: str) -> bool:
    """Whether a name is a language or a variety of it: "en-GB" is "en"."""
    name, language = name.lower(), language.lower()
    return name == language or name.replace("_", "-").startswith(f"{language}-")


def _now() -> str:
    return datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")


def _variant(language: str, text: str) -> str:
    return f'<tuv xml:lang={quoteattr(language)} changedate="{_now()}">{_segment(text)}</tuv>'


def _segment(text: str) -> str:
    return f"<seg>{write_text([text])}</seg>"


def _variants(unit: XmlElement) -> list[XmlElement]:
    return [each for each in unit.elements if each.local == "tuv"]


def _of_language(variants: Sequence[XmlElement], language: str) -> XmlElement | None:
    for variant in variants:
        if is_variety(_language(variant), language) and variant.child("seg") is not None:
            return variant
    return None


def _language(variant: XmlElement) -> str:
    return variant.attributes.get("xml:lang", variant.attributes.get("lang", ""))


def _segment_text(variant: XmlElement) -> str:
    return _text(variant.child("seg"))


def _text(element: XmlElement) -> str:
    """Returns the text in an element without the code in it."""
    texts = (
        child if isinstance(child, str) else _text(child)
        for child in element.children
        if isinstance(child, str) or child.local not in CODE_TAGS
    )
    return "".join(texts)


def _date(element: XmlElement) -> str:
    return next((element.attributes[name] for name in _DATES if name in element.attributes), "")
