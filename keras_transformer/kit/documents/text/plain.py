r"""Plain text: each line is a paragraph.

Lines end at "\n" or "\r\n", as everywhere in this project (files/reading.py). Line ends, empty
lines, and leading and trailing spaces are kept.
"""

from keras_transformer.kit.documents.tree.segment_builder import joined
from keras_transformer.kit.documents.tree.segments import Document, Segment


def read(text: str, language: str) -> Document:
    """Reads a text; the language does not matter.

    The segments have no marks yet: placeholders.py finds URLs and the like in any format.
    """
    parts: list[str | Segment] = []
    for number, line in enumerate(text.split("\n")):
        content = line.strip()
        begin = line.index(content)
        parts.append("\n" * (number > 0) + line[:begin])
        if content:
            parts += [Segment(content, [content]), line[begin + len(content) :]]
        else:
            parts.append(line)
    return Document(joined(parts))
