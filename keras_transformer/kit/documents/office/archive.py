"""Documents that are ZIP archives: only the text in their members changes.

Word, Excel, PowerPoint, OpenDocument and EPUB files are archives of XML, pictures and other files.
The members keep their order, and members without text keep their bytes. Nothing is unpacked to
disk, and nothing in an archive is executed.

Every translated member is parsed before the archive is written (intact.py). If it is not the same
XML as before around the translated text, it keeps its original text.
"""

import contextlib
import copy
import dataclasses
import io
import itertools
import shutil
import sys
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from tqdm import tqdm

from keras_transformer.kit.documents.office.intact import Pieces, is_intact
from keras_transformer.kit.documents.text.encodings import decoded
from keras_transformer.kit.documents.text.xml_source import XmlSource, check_markup
from keras_transformer.kit.documents.tree.segments import Document, Part, Parts
from keras_transformer.support.errors import InputError, require

_MOST_MEMBERS = 10_000
_MOST_BYTES = 1 << 30  # of all members, unpacked
_MOST_SHARED = 10_000  # different strings between the segments of a member
_MOST_TEXT = 1 << 27  # bytes of the members that are read as text
_SAVE_ANEW = "open it in LibreOffice, and save it again without a password"
PLACE = "the document"
_UNPROTECTED = f"must not be protected: {_SAVE_ANEW}"

# Reads the text of a member, and counts what it leaves untranslated; see Document.left.
Reader = Callable[[str, Counter[str]], Parts]
# Changes the translated members, by their names, or adds others. It runs before they are written.
Finish = Callable[[dict[str, bytes | bytearray]], None]


@dataclasses.dataclass(frozen=True)
class Archive(Document):
    """A document that is an archive; its parts are those of all members with text."""

    content: bytes
    texts: dict[int, int]  # number of a member with text -> number of its parts
    left: Counter[str] = dataclasses.field(kw_only=True)  # `written` adds members it cannot write
    finish: Finish = dataclasses.field(kw_only=True)

    def written(self, translated: Iterable[str]) -> Iterator[bytes]:
        """Yields the archive's bytes, given its translated parts.

        A member that would be damaged keeps its text. A warning on stderr names it, and `left`
        counts it.
        """
        result = io.BytesIO()
        with (
            _opened(self.content) as source,
            zipfile.ZipFile(result, "w") as target,
        ):
            members = source.infolist()
            changed = self._translated_members(members, translated)
            self.finish(changed)
            for member in members:
                if member.filename in changed:
                    target.writestr(copy.copy(member), changed[member.filename])
                else:
                    with source.open(member) as old, target.open(copy.copy(member), "w") as new:
                        shutil.copyfileobj(old, new)
            for name in [name for name in changed if name not in source.namelist()]:
                new = zipfile.ZipInfo(name, members[0].date_time)
                target.writestr(new, changed[name], zipfile.ZIP_DEFLATED)
        yield result.getvalue()

    def _translated_members(
        self, members: Sequence[zipfile.ZipInfo], translated: Iterable[str]
    ) -> dict[str, bytes | bytearray]:
        """Returns the contents of the members with text, by their names."""
        parts, texts = iter(self.parts), iter(translated)
        contents = {}
        for number, count in self.texts.items():
            name = members[number].filename
            before = list(itertools.islice(parts, count))
            contents[name] = self._content(name, before, Pieces(itertools.islice(texts, count)))
        return contents

    def _content(self, name: str, parts: list[Part], after: Pieces) -> bytearray:
        """Returns a member's translated text in UTF-8, or its own if that would be damaged."""
        before = Pieces(part if isinstance(part, str) else part.source for part in parts)
        is_translated = [not isinstance(part, str) for part in parts]
        if before.content == after.content or is_intact(before, after, is_translated):
            return after.content
        self.left["damaged"] += 1
        tqdm.write(
            f"{name}: stays untranslated, as its translation would not be valid XML",
            file=sys.stderr,
        )
        return before.content


class Package:
    """The members of an archive.

    Attributes:
        names: the names of the members.
        finish: see Finish; a format may set it.

    Raises:
        InputError: for a file that is not an archive, is protected, or is too large when unpacked.
    """

    def __init__(self, archive: zipfile.ZipFile):
        self._archive = archive
        self.finish: Finish = lambda members: None
        members = archive.infolist()
        self.names = [member.filename for member in members]
        rule = f"must have at most {_MOST_MEMBERS} members"
        require(len(members) <= _MOST_MEMBERS, None, rule, len(members), PLACE)
        size = sum(member.file_size for member in members)
        rule = f"must have at most {_MOST_BYTES} bytes when unpacked"
        require(size <= _MOST_BYTES, None, rule, size, PLACE)
        is_protected = any(member.flag_bits & 1 for member in members)
        require(not is_protected, None, _UNPROTECTED, "a password", PLACE)
        manifest = "META-INF/manifest.xml"  # OpenDocument's
        if manifest in self.names:
            is_protected = b"encryption-data" in archive.read(manifest)
            require(not is_protected, None, _UNPROTECTED, "a password", PLACE)

    def require_member(self, name: str) -> None:
        """Raises an InputError if the archive lacks a member that each document must have."""
        received = ", ".join(self.names[:3]) or "an empty one"
        require(name in self.names, None, f"must be an archive with {name}", received, PLACE)

    def text(self, name: str) -> str:
        """Returns the text of a member in XML."""
        size = self._archive.getinfo(name).file_size
        rule = f"must have at most {_MOST_TEXT} bytes of text in a member"
        require(size <= _MOST_TEXT, None, rule, f"{name}: {size}", PLACE)
        with _in_member(name):
            return decoded(self._archive.read(name), "xml", name)

    def xml(self, name: str) -> XmlSource:
        """Returns a member in XML."""
        text = self.text(name)
        with _in_member(name):
            return XmlSource(text)


def _opened(content: bytes) -> zipfile.ZipFile:
    """Opens an archive; some programs write backslashes in the names of its members."""
    archive = zipfile.ZipFile(io.BytesIO(content))
    for member in archive.infolist():
        member.filename = member.filename.replace("\\", "/")
    archive.NameToInfo = {member.filename: member for member in archive.infolist()}
    return archive


def _shared(parts: Parts) -> Iterator[Part]:
    """Yields parts, with one string for all that are equal: most are the same few tags."""
    known: dict[str, str] = {}
    for part in parts:
        is_shared = isinstance(part, str) and len(known) < _MOST_SHARED
        yield known.setdefault(part, part) if is_shared else part


@contextlib.contextmanager
def _in_member(name: str) -> Iterator[None]:
    """Names the member in an InputError about its text."""
    try:
        yield
    except InputError as error:
        place = name if error.place == PLACE else f"{name}, {error.place}"
        raise error.replaced(received=f"{error.received} ({place})", place=PLACE) from None


def read_archive(
    content: bytes, find_readers: Callable[[Package], Mapping[str, Reader]], most_markup: int
) -> Archive:
    """Reads an archive.

    Args:
        content: the bytes of the archive.
        find_readers: returns the readers of the members with text, by their names.
        most_markup: the most tags and attributes of these members, taken together.

    Raises:
        InputError: for a file that is not such an archive, or is too large when unpacked.
    """
    rule = f"must be a whole archive (ZIP): {_SAVE_ANEW}"
    parts: list[Part] = []
    texts: dict[int, int] = {}
    left: Counter[str] = Counter()
    markup = 0
    try:
        with _opened(content) as archive:
            package = Package(archive)
            readers = find_readers(package)
            for number, name in enumerate(package.names):
                if name in readers:
                    text = package.text(name)
                    markup += check_markup(text, markup, most_markup)
                    with _in_member(name):
                        found = readers[name](text, left)
                    texts[number] = len(found)
                    parts += _shared(found)
            damaged = archive.testzip()
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise InputError(None, rule, error, PLACE) from None
    require(damaged is None, None, rule, damaged, PLACE)
    return Archive(tuple(parts), content, texts, left=left, finish=package.finish)
