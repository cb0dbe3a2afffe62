"""Fake document translators: one changes characters in place, the other reverses word order."""

import dataclasses
import io
import sys
import types

from keras_transformer.kit.documents.tree.alignment import units
from keras_transformer.kit.documents.tree.segments import Segment, with_places
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
    pieces = []
    for piece, start, end in with_places(segment.pieces):
        if isinstance(piece, str):
            pieces.append(text[start:end])
        else:
            source = written(piece.parts, change) if piece.parts else piece.source
            pieces.append(dataclasses.replace(piece, source=source))
    return segment.written(pieces)


def documents(
    answer, limit=400, language="en", case="keep", knows=lambda text: False, review_below=0.0
):
    """Makes a translator of documents from one of sentences.

    Args:
        answer: a sentence -> its translation, as a text, or with its alignment as an AlignedText.
        limit: the most words of a sentence.
        language, case, review_below: of the DocumentTranslator.
        knows: whether a text is in the translation memory.
    """

    def translate(texts, aligned):
        answers = [_answered(answer(text)) for text in texts]
        return [
            found if is_aligned else found._replace(links=())
            for found, is_aligned in zip(answers, aligned, strict=True)
        ]

    def count_subwords(texts):
        return [len(text.split()) for text in texts]

    model = Model(translate, count_subwords, limit, knows)
    return DocumentTranslator(model, language, case, review_below=review_below)


def _answered(found):
    return AlignedText(found) if isinstance(found, str) else found


def in_place(change):
    """Returns an answer that changes a text, and aligns each word with itself."""
    return lambda text: AlignedText(change(text), [Link(unit, unit) for unit in units(text)])


def in_reverse(change):
    """Returns an answer that changes each word, and reverses their order."""
    return lambda text: joined([(unit, change(text[slice(*unit)])) for unit in units(text)[::-1]])


def joined(words):
    """Joins words by spaces; each has the span in the source that it is aligned to."""
    text, links = "", []
    for span, word in words:
        start = len(text) + (text != "")
        text = f"{text} {word}" if text else word
        links.append(Link(span, (start, start + len(word))))
    return AlignedText(text, links)


def with_words_reversed(document):
    """Translates a document: capitalizes the words of each sentence and reverses their order."""
    return "".join(documents(in_reverse(capitals)).translate(document.parts))
