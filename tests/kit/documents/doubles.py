"""Fake document translators: one changes characters in place, the other reverses word order."""

import dataclasses
import io
import sys
import types

from keras_transformer.kit.documents.tree.alignment import units
from keras_transformer.kit.documents.tree.segments import Segment, pieces_of
from keras_transformer.kit.documents.tree.translation import AlignedText, DocumentTranslator, Model
from keras_transformer.support.errors import InputError
from keras_transformer.use.translate.answers import Link


def run_on(translate, make_config, content, folder, monkeypatch, streams=False, terminal=False):
    """Translates bytes to bytes, from file to file or from stdin to stdout.

    Args:
        translate: config -> the result.
        make_config: makes the configuration from no arguments, or from input and output path.
        content: of the input.
        folder: for the files.
        streams: whether to use stdin and stdout.
        terminal: whether stdin is a terminal.

    Returns:
        The result or None, the InputError or None, and the bytes of the output; False if there is
        no output file.
    """
    stdout = types.SimpleNamespace(buffer=io.BytesIO())
    output = folder / "out"
    if streams:
        stdin = io.BytesIO(content)
        stdin.isatty = lambda: terminal
        monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=stdin))
        monkeypatch.setattr(sys, "stdout", stdout)
        config = make_config()
    else:
        (folder / "in.txt").write_bytes(content)
        config = make_config(str(folder / "in.txt"), str(output))
    try:
        result, error = translate(config), None
    except InputError as raised:
        result, error = None, raised
    written = stdout.buffer.getvalue() if streams else output.exists() and output.read_bytes()
    return result, error, written


def capitals(text):
    """Capitalizes every letter whose capital is one character, so the text keeps its length."""
    return "".join(c.upper() if len(c.upper()) == 1 else c for c in text)


def written(parts, change):
    """Writes parts with changed text; marks keep their places in it.

    Args:
        parts: parts of a document or of a mark.
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
    """Translates a document: capitalizes the words of each sentence and reverses their order."""

    def translate(texts, aligned):
        answers = zip(map(_reversed, texts), aligned, strict=True)
        return [
            answer if is_aligned else AlignedText(answer.text) for answer, is_aligned in answers
        ]

    def count_subwords(texts):
        return [len(text.split()) for text in texts]

    model = Model(translate, count_subwords, 400)
    return "".join(DocumentTranslator(model, "en", "keep").translate(document.parts))


def _reversed(text):
    words, links, length = [], [], 0
    for start, end in reversed(units(text)):
        word = capitals(text[start:end])
        words.append(word)
        links.append(Link((start, end), (length, length + len(word))))
        length += len(word) + 1
    return AlignedText(" ".join(words), links)
