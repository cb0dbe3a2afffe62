"""Replaces the segments of a document by their texts without marks, changed by a function."""


def filled(document, function=str.upper):
    parts = []
    for part in document.parts:
        parts.append(part if isinstance(part, str) else part.written([function(part.text)]))
    return "".join(parts)
