"""Documents that are ZIP archives: only the text in their members changes.

Word, OpenDocument, PowerPoint and EPUB files are archives of XML, pictures and other files. The
members keep their order, and members without text keep their bytes. Nothing is unpacked to disk,
and nothing in an archive is executed.
"""

import copy
import dataclasses
import io
import itertools
import re
import shutil
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping

from keras_transformer.documents.encodings import decoded
from keras_transformer.documents.segments import Document, Parts, Segment
from keras_transformer.errors import InputError, require

_MOST_MEMBERS = 10_000
_MOST_BYTES = 1 << 30  # of all members, unpacked
_MOST_TEXT = 1 << 27  # bytes of the members that are read as text
_SAVE_ANEW = "open it in LibreOffice, and save it again without a password"
_PLACE = "the document"
_UNPROTECTED = f"must not be protected: {_SAVE_ANEW}"

Reader = Callable[[str], Parts]  # reads the text of a member


@dataclasses.dataclass(frozen=True)
class Archive(Document):
    """A document that is an archive; its parts are those of all members with text."""

    content: bytes
    texts: dict[int, int]  # number of a member with text -> number of its parts

    def written(self, translated: Iterable[str]) -> Iterator[bytes]:
        """Yields the archive's bytes, given its translated parts."""
        remaining = iter(translated)
        result = io.BytesIO()
        with (
            zipfile.ZipFile(io.BytesIO(self.content)) as source,
            zipfile.ZipFile(result, "w") as target,
        ):
            for number, member in enumerate(source.infolist()):
                if number in self.texts:
                    text = "".join(itertools.islice(remaining, self.texts[number]))
                    target.writestr(copy.copy(member), text.encode("utf-8", errors="replace"))
                else:
                    with source.open(member) as old, target.open(copy.copy(member), "w") as new:
                        shutil.copyfileobj(old, new)
        yield result.getvalue()


def read_archive(main: str, readers: Mapping[re.Pattern, Reader], content: bytes) -> Archive:
    """Reads an archive.

    Args:
        main: the name of a member that every document in the format has.
        readers: functions that read members with text, by patterns of their names.
        content: the bytes of the archive.

    Raises:
        InputError: for a file that is no such archive, or is too large when unpacked.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
            _check(members, main)
            if "META-INF/manifest.xml" in archive.namelist():  # OpenDocument's
                is_protected = b"encryption-data" in archive.read("META-INF/manifest.xml")
                require(not is_protected, None, _UNPROTECTED, "a password", _PLACE)
            parts: list[str | Segment] = []
            texts: dict[int, int] = {}
            for number, member in enumerate(members):
                name = member.filename
                reader = next((readers[one] for one in readers if one.fullmatch(name)), None)
                if reader is not None:
                    rule = f"must have at most {_MOST_TEXT} bytes of text in a member"
                    received = f"{name}: {member.file_size}"
                    require(member.file_size <= _MOST_TEXT, None, rule, received, _PLACE)
                    found = _parts(archive.read(member), name, reader)
                    texts[number] = len(found)
                    parts += found
            damaged = archive.testzip()
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        rule = f"must be a whole archive (ZIP): {_SAVE_ANEW}"
        raise InputError(None, rule, error, _PLACE) from None
    require(damaged is None, None, f"must be a whole archive (ZIP): {_SAVE_ANEW}", damaged, _PLACE)
    return Archive(tuple(parts), content, texts)


def _check(members: list[zipfile.ZipInfo], main: str) -> None:
    """Rejects unsupported archives before anything is unpacked."""
    names = [member.filename for member in members]
    rule = f"must have at most {_MOST_MEMBERS} members"
    require(len(members) <= _MOST_MEMBERS, None, rule, len(members), _PLACE)
    size = sum(member.file_size for member in members)
    rule = f"must have at most {_MOST_BYTES} bytes when unpacked"
    require(size <= _MOST_BYTES, None, rule, size, _PLACE)
    is_protected = any(member.flag_bits & 1 for member in members)
    require(not is_protected, None, _UNPROTECTED, "a password", _PLACE)
    rule = f"must be an archive with {main}"
    require(main in names, None, rule, ", ".join(names[:3]) or "an empty one", _PLACE)


def _parts(content: bytes, name: str, reader: Reader) -> Parts:
    try:
        return reader(decoded(content, "xml", name))
    except InputError as error:
        received = f"{error.received} ({name}, {error.place})"
        raise error.replaced(received=received, place=_PLACE) from None
