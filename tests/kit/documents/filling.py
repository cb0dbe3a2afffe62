"""Replaces the segments of a document by their texts without marks, changed by a function."""

from keras_transformer.kit.documents.tree.segments import ReviewUnit


def filled(document, function=str.upper):
    return _filled(document.parts, function)


def _filled(parts, function):
    written = []
    for part in parts:
        if isinstance(part, str):
            written.append(part)
        elif isinstance(part, ReviewUnit):
            written.append(part.write(_filled(part.parts, function), None))
        else:
            written.append(part.written([function(part.text)]))
    return "".join(written)
