"""Translators for documents: one changes characters in place, the other turns words round."""

import dataclasses

from keras_transformer.documents.alignment import units
from keras_transformer.documents.segments import Segment, pieces_of
from keras_transformer.documents.translation import AlignedText, DocumentTranslator, Model
from keras_transformer.translate.answers import Link


def capitals(text):
    """Capitals for all letters that have one; the text keeps its length."""
    return "".join(c.upper() if len(c.upper()) == 1 else c for c in text)


def written(parts, change):
    """Writes parts with changed text; each mark has its place in it.

    Args:
        parts: of a document, or of a mark.
        change: text -> text of the same length.
    """
    return "".join(part if isinstance(part, str) else _written(part, change) for part in parts)


def _written(segment: Segment, change):
    text = change(segment.text)
    assert len(text) == len(segment.text)
    pieces, place = [], 0
    for piece in pieces_of(segment.nodes):
        end = place + len(piece if isinstance(piece, str) else piece.text)
        if isinstance(piece, str):
            pieces.append(text[place:end])
        else:
            source = written(piece.parts, change) if piece.parts else piece.source
            pieces.append(dataclasses.replace(piece, source=source))
        place = end
    return segment.written(pieces)


def with_words_reversed(document):
    """Translates a document: the words of each sentence in capitals, the last one first."""

    def align(texts):
        return [_reversed(text) for text in texts]

    def translate(texts):
        return [answer.text for answer in align(texts)]

    def count_subwords(texts):
        return [len(text.split()) for text in texts]

    model = Model(translate, align, count_subwords, 400)
    return "".join(DocumentTranslator(model, "en", "keep").translate(document.parts))


def _reversed(text):
    words, links, length = [], [], 0
    for start, end in reversed(units(text)):
        word = capitals(text[start:end])
        words.append(word)
        links.append(Link((start, end), (length, length + len(word))))
        length += len(word) + 1
    return AlignedText(" ".join(words), links)
