"""Fills the segments of a document with what a function makes of their texts, without marks."""


def filled(document, function=str.upper):
    parts = []
    for part in document.parts:
        parts.append(part if isinstance(part, str) else part.written([function(part.text)]))
    return "".join(parts)
