"""How what computes in an Excel workbook follows the translations of texts.

Cells get their translations first. Then literals in formulas, lists of allowed values, headings of
tables, filters and the caches of pivot tables get those of the cells with the same text. A cell
whose translation formulas could not tell from another gets its own text back (seen_texts.py).
"""

import io
import re
import zipfile
from collections import Counter
from collections.abc import Mapping
from html import unescape
from xml.sax.saxutils import escape, quoteattr

from keras_transformer.kit.documents.office.formulas import key_of, with_texts
from keras_transformer.kit.documents.office.seen_texts import alike, may_be_compared
from keras_transformer.kit.documents.office.xlsx_formulas import (
    COMPUTING,
    FORMULAS,
    LIST,
    NAME,
    NAMED,
    SHEET,
    STRINGS,
    Computing,
    Item,
    entries,
    items_in,
    text_from,
)
from keras_transformer.kit.documents.text.encodings import decoded
from keras_transformer.support.markup import well_formed

MOST_CHARACTERS = 32_767  # of a cell
_LONGEST_LIST = 255  # characters
_IN_HEADING = re.compile(r"[\w .%/()&-]+")  # what a structured reference writes without escapes
_WRITTEN_FORMULA = re.compile(
    rf"(<(?P<prefix>[\w.-]+:)?(?P<tag>{FORMULAS})(?:\s[^<>]*)?(?<!/)>)([^<]+)"
)


def follow(
    computing: Computing,
    types: Mapping[str, str],
    content: bytes,
    left: Counter[str],
    members: dict[str, bytes | bytearray],
) -> None:
    """Changes translated members, and adds others that follow them; see archive.Finish.

    Args:
        computing: what computes in the workbook.
        types: the types of its members, by their names.
        content: the workbook.
        left: counts what stays; see Document.left.
        members: the translated members.
    """
    items = {
        name: items_in(translated)
        for name, translated in members.items()
        if STRINGS.fullmatch(types[name]) or SHEET.fullmatch(types[name])
    }
    is_long = any(len(item.text) > MOST_CHARACTERS for some in items.values() for item in some)
    if not computing.seen.is_compared and not is_long:
        return
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        sources = {name: decoded(archive.read(name), "xml", name).encode("utf-8") for name in items}
        pairs = {
            name: list(zip(items_in(source), items[name], strict=False))
            for name, source in sources.items()
        }
        texts = [(old.text, new.text) for found in pairs.values() for old, new in found]
        translations = _alike(computing, texts)
        for name, found in pairs.items():
            kept = _kept(computing, found, translations, left)
            members[name] = _with_kept(sources[name], members[name], kept)
        cited = computing.seen.literals | computing.headings
        new = {key: text for key, text in translations.items() if key in cited}
        exact = {old: text for old, text in texts if key_of(old) in new}
        if any(old != text for old, text in exact.items()):
            for name, type in types.items():
                if COMPUTING.fullmatch(type):
                    text = decoded(bytes(members.get(name) or archive.read(name)), "xml", name)
                    followed = _followed(text, new, exact)
                    if followed != text:
                        members[name] = followed.encode("utf-8")


def _alike(computing: Computing, texts: list[tuple[str, str]]) -> dict[str, str]:
    """Returns the translations of the texts that may be translated, by their keys."""

    def may_be(text: str, translation: str) -> bool:
        key = key_of(text)
        return (
            may_be_compared(text, translation)
            and len(translation) <= MOST_CHARACTERS
            and (key not in listed or "," not in translation)
            and (key not in computing.headings or _is_heading(translation))
        )

    listed = {key for keys in computing.lists for key in keys}
    kept = set(computing.seen.kept)
    while True:
        found = alike(texts, kept, computing.seen.literals | computing.headings, may_be)
        long = [
            keys
            for keys in computing.lists
            if not kept.issuperset(keys)
            and len(",".join(found.get(key, key) for key in keys)) > _LONGEST_LIST
        ]
        if not long:
            return found
        kept.update(*long)


def _kept(
    computing: Computing,
    pairs: list[tuple[Item, Item]],
    translations: Mapping[str, str],
    left: Counter[str],
) -> list[tuple[Item, Item]]:
    """Returns the texts with translations that stay all the same, and counts them."""
    kept = []
    for old, new in pairs:
        is_long = len(new.text) > MOST_CHARACTERS
        is_kept = computing.seen.is_compared and key_of(old.text) not in translations
        if (is_long or is_kept) and new.text != old.text:
            left["long" if is_long else "formula"] += 1
            kept.append((old, new))
    return kept


def _with_kept(
    source: bytes, translated: bytes | bytearray, kept: list[tuple[Item, Item]]
) -> bytearray:
    """Returns a translated member in which some texts are as in its source."""
    result, place = bytearray(), 0
    for old, new in kept:
        result += translated[place : new.start] + source[old.start : old.end]
        place = new.end
    return result + translated[place:]


def _is_heading(text: str) -> bool:
    return _IN_HEADING.fullmatch(text) is not None and len(text) <= _LONGEST_LIST


def _followed(text: str, new: Mapping[str, str], exact: Mapping[str, str]) -> str:
    """Returns a member whose formulas, lists, filters and headings follow translations.

    Args:
        text: the member.
        new: the translations of texts, by their keys.
        exact: the translations of texts as cells have them.
    """

    def translation(source: str) -> str:
        return exact.get(source) or new.get(key_of(source), source)

    def formula(match: re.Match) -> str:
        source = unescape(match[4])
        written = with_texts(source, translation)
        is_rule = match["tag"].startswith("formula") or match["prefix"] == "xm:"
        if written == source and is_rule and LIST.fullmatch(source):
            inner = ",".join(map(translation, entries(source)))
            written = '"{}"'.format(inner.replace('"', '""'))
        return match[0] if written == source else match[1] + escape(well_formed(written))

    def name(match: re.Match) -> str:
        source = text_from(unescape(match[2][1:-1]))
        if (written := translation(source)) == source:
            return match[0]
        return match[1] + quoteattr(well_formed(written)).replace("\n", "_x000a_")

    text = _WRITTEN_FORMULA.sub(formula, text)
    return NAMED.sub(lambda match: NAME.sub(name, match[0]), text)
