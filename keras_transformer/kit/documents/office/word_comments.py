"""Comments on the doubtful translations in a Word document.

All comments are in one member of the archive. A document without it gets one, with its type in
[Content_Types].xml and its relationship to the main member.

Comments are on paragraphs, as Word cannot nest ranges in links and fields.
"""

import functools
import re
from collections.abc import Iterable, Mapping

from keras_transformer.kit.documents.office.archive import Package
from keras_transformer.kit.documents.office.open_xml import name_of_types, type_of
from keras_transformer.kit.documents.text.xml_source import with_last_child
from keras_transformer.kit.documents.tree.review import PROGRAM, comment_on
from keras_transformer.kit.documents.tree.segments import Part, ReviewUnit

_COMMENTS = type_of("comments")
_COMMENTS_NAME = "comments.xml"  # in the folder of the main member
_COMMENTS_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.comments+xml"
_NAMESPACE = re.compile(r"http://[^\"']*/wordprocessingml/(2006/)?main")  # strict ones, too
_ID = re.compile(r":id=[\"'](\d+)[\"']")
_DECLARATION = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_NO_RELATIONS = f'{_DECLARATION}<Relationships xmlns="{_PACKAGE}/relationships"/>'


class Comments:
    """The comments that the translation of a document gets.

    Args:
        package: the document.
        types: the types of its members, by their names.
        main: the name of its main member, which has the paragraphs with comments.
    """

    def __init__(self, package: Package, types: Mapping[str, str], main: str):
        self._confidences: list[float] = []  # of the comments so far
        namespace = _NAMESPACE.search(package.text(main))
        self._namespace = "" if namespace is None else namespace[0]  # then it has no paragraphs
        folder, slash, name = main.rpartition("/")
        self._relations = f"{folder}{slash}_rels/{name}.rels"
        known = [name for name, type in types.items() if _COMMENTS.fullmatch(type)]
        self._name = known[0] if known else f"{folder}{slash}{_COMMENTS_NAME}"
        self._is_new = not known
        self._types = name_of_types(package)
        names = (self._types, self._relations, self._name)
        self._texts = {name: package.text(name) for name in names if name in package.names}
        ids = _ID.findall(self._texts.get(self._name, ""))
        self._first_id = max(map(int, ids), default=-1) + 1

    def unit(self, prefix: str, parts: Iterable[Part]) -> ReviewUnit:
        """Returns the content of a paragraph, which gets a comment if it is doubtful.

        Args:
            prefix: the prefix of the paragraph's tag, such as "w:".
            parts: the content.
        """
        return ReviewUnit(tuple(parts), functools.partial(self._write, prefix))

    def _write(self, prefix: str, content: str, doubt: float | None) -> str:
        """Writes the content of a paragraph, with a comment if its translation is doubtful."""
        if doubt is None:
            return content
        id_ = self._first_id + len(self._confidences)
        self._confidences.append(doubt)
        start, end, reference = (
            f'<{prefix}{name} {prefix}id="{id_}"/>'
            for name in ("commentRangeStart", "commentRangeEnd", "commentReference")
        )
        return f"{start}{content}{end}<{prefix}r>{reference}</{prefix}r>"

    def add_to(self, members: dict[str, bytes | bytearray]) -> None:
        """Adds the comments written since the last call; see archive.Finish."""
        comments = "".join(
            self._comment(id_, confidence)
            for id_, confidence in enumerate(self._confidences, start=self._first_id)
        )
        self._confidences = []
        if comments == "":
            return
        if self._is_new:
            opening = f'{_DECLARATION}<w:comments xmlns:w="{self._namespace}">'
            members[self._name] = f"{opening}{comments}</w:comments>".encode()
            self._add_type(members)
            self._add_relationship(members)
        else:
            text = members[self._name].decode("utf-8")
            members[self._name] = with_last_child(text, comments).encode()

    def _comment(self, id_: int, confidence: float) -> str:
        return (
            f'<w:comment xmlns:w="{self._namespace}" w:id="{id_}" w:author="{PROGRAM}" '
            f'w:initials="kt"><w:p><w:r><w:t>{comment_on(confidence)}</w:t></w:r></w:p></w:comment>'
        )

    def _add_type(self, members: dict[str, bytes | bytearray]) -> None:
        added = (
            f'<Override xmlns="{_PACKAGE}/content-types" PartName="/{self._name}" '
            f'ContentType="{_COMMENTS_TYPE}"/>'
        )
        members[self._types] = with_last_child(self._texts[self._types], added).encode()

    def _add_relationship(self, members: dict[str, bytes | bytearray]) -> None:
        kind = self._namespace.replace("wordprocessingml", "officeDocument").removesuffix("main")
        added = (
            f'<Relationship xmlns="{_PACKAGE}/relationships" Id="reviewComments" '
            f'Type="{kind}relationships/comments" Target="{_COMMENTS_NAME}"/>'
        )
        text = self._texts.get(self._relations, _NO_RELATIONS)
        members[self._relations] = with_last_child(text, added).encode()
