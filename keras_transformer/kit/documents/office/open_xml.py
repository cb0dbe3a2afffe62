"""What Word, PowerPoint and Excel files share (Office Open XML, ECMA-376).

[Content_Types].xml gives the type of each member; names of members, such as word/document.xml, are
only a habit of programs.
"""

import functools
import re
from collections import Counter
from collections.abc import Mapping

from keras_transformer.kit.documents.office.archive import PLACE, Package, Reader
from keras_transformer.kit.documents.text.xml_source import XmlSource
from keras_transformer.kit.documents.tree.segments import Parts
from keras_transformer.support.errors import require

_TYPES = "[Content_Types].xml"
_CORE_PROPERTIES = re.compile(r".*package\.core-properties\+xml")
_TITLES = ("dc:title", "dc:subject", "dc:description")


def name_of_types(package: Package) -> str:
    """Returns the name of the member with the types; case does not matter in names of members.

    Raises:
        InputError: if there is none.
    """
    same = (name for name in package.names if name.lower() == _TYPES.lower())
    name = next(same, _TYPES)
    package.require_member(name)
    return name


def types_in(package: Package, program: str, main: re.Pattern) -> dict[str, str]:
    """Returns the types of an archive's members, by their names.

    Args:
        package: the members.
        program: the program that makes such archives, for errors.
        main: the pattern of the type of its main member.

    Raises:
        InputError: for other archives.
    """
    by_extension: dict[str, str] = {}
    by_name: dict[str, str] = {}
    for element in package.xml(name_of_types(package)).root.elements:
        type = element.attributes.get("ContentType", "")
        if element.local == "Default":
            by_extension[element.attributes.get("Extension", "").lower()] = type
        elif element.local == "Override":
            by_name[element.attributes.get("PartName", "").lower()] = type
    types = {
        name: by_name.get(f"/{name.lower()}", by_extension.get(_extension(name), ""))
        for name in package.names
    }
    rule = f"must be a file of {program}"
    received = ", ".join(package.names[:3])
    require(any(map(main.fullmatch, types.values())), None, rule, received, PLACE)
    return types


def readers_by_type(
    types: Mapping[str, str], readers: Mapping[re.Pattern, Reader]
) -> dict[str, Reader]:
    """Returns the readers of members, given those for patterns of types; and of the properties."""
    readers = {**readers, _CORE_PROPERTIES: read_properties}
    found: dict[str, Reader] = {}
    for name, type in types.items():
        for pattern, reader in readers.items():
            if pattern.fullmatch(type):
                found[name] = reader
    return found


def read_properties(text: str, left: Counter[str]) -> Parts:
    """Reads the title and the description in a document's properties."""
    xml = XmlSource(text)
    return xml.parts(xml.contents(_TITLES))


def _extension(name: str) -> str:
    return name.rpartition(".")[2].lower()


@functools.cache
def type_of(name: str) -> re.Pattern:
    """Returns the pattern of a type, given a pattern of the end of its name: "header|footer"."""
    return re.compile(rf"application/vnd\..*\.({name})\+xml", re.IGNORECASE)
