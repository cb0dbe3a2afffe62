"""One layer's attention as an SVG picture for papers, in the manner of Figures 3 to 5."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from html import escape

import numpy as np

from keras_transformer.analysis.attention_views import AttentionView
from keras_transformer.errors import InputError

# Of heads 1, 2, ...; more heads than colours begin again.
HEAD_COLOURS = (
    *("#2b6fb5", "#dd7a1e", "#2f9150", "#c8403c", "#8459b8", "#8d5f45", "#d364a9", "#1f99a0"),
    *("#7aa9dd", "#f0b46c", "#85c48f", "#e88d86", "#b79be0", "#c09d88", "#eba6d2", "#84cdd1"),
)
FAINT = 0.01  # lines of less weight would not be seen
PITCH, FONT_SIZE, GAP, MARGIN = 17, 13, 130, 10  # pixels: between words, between their two rows

# Characters that no XML may hold.
NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def attention_svg(
    view: AttentionView, layer: int, heads: Sequence[int], word: str | None = None
) -> str:
    """Draws the words that attend below, those attended to above, and the weights as lines.

    A line's colour is its head's, its opacity the weight.

    Args:
        view: one kind of attention of a sentence.
        layer, heads: which to draw, from 1.
        word: draws the lines of its first occurrence among the queries only, and the weights as
            boxes behind the words attended to, as in Figure 3; None for all words.

    Raises:
        InputError: where layer, head or word are not there.
    """
    layers, num_heads = view.weights.shape[:2]
    check_number("layer", layer, layers)
    for head in heads:
        check_number("heads", head, num_heads)
    if word is not None and word not in view.queries:
        rule = f"--word must be one of {' '.join(view.queries)}"
        raise InputError(f"{rule}. Received: {word!r}")
    chosen = range(len(view.queries)) if word is None else [view.queries.index(word)]
    top = MARGIN + max(map(text_width, view.keys)) + 4
    bottom = top + GAP
    height = bottom + 4 + max(map(text_width, view.queries)) + MARGIN
    width = 2 * MARGIN + PITCH * max(len(view.queries), len(view.keys))
    weights = view.weights[layer - 1]
    boxes = () if word is None else _boxes(view.keys, heads, weights[:, chosen[0]], top)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" font-size="{FONT_SIZE}" '
            'font-family="Helvetica, Arial, sans-serif">',
            f'<rect width="{width}" height="{height}" fill="#fff"/>',
            *boxes,
            *_lines(heads, weights, chosen, top, bottom),
            *(_text(label, k, top - 4, "start") for k, label in enumerate(view.keys)),
            *(
                _text(label, q, bottom + 4, "end", faded=q not in chosen)
                for q, label in enumerate(view.queries)
            ),
            "</svg>\n",
        ]
    )


def head_colour(head: int) -> str:
    """The colour of a head, counted from 1."""
    return HEAD_COLOURS[(head - 1) % len(HEAD_COLOURS)]


def check_number(flag: str, value: int | str, count: int) -> int:
    """Reads a number, which must be one of 1, ..., count."""
    if not (str(value).isdecimal() and 1 <= int(value) <= count):
        raise InputError(f"--{flag} must be from 1 to {count}. Received: {value}")
    return int(value)


def text_width(text: str) -> int:
    """About as many pixels as a text takes: no font is at hand to measure with."""
    em = sum(1.0 if unicodedata.east_asian_width(c) in "WF" else 0.6 for c in text)
    return round(em * FONT_SIZE)


def _lines(
    heads: Sequence[int], weights: np.ndarray, chosen: Sequence[int], top: float, bottom: float
) -> Iterator[str]:
    """From each chosen query to every key, by weights [H, Q, P]."""
    # Those of a single word end side by side, lest one colour hide the others.
    spread = min(2.0, 11 / max(len(heads), 1)) if len(chosen) == 1 else 0
    for row, head in enumerate(heads):
        aside = (row - (len(heads) - 1) / 2) * spread
        yield f'<g stroke="{head_colour(head)}" stroke-width="1.8">'
        for q in chosen:
            for k in np.flatnonzero(weights[head - 1, q] >= FAINT):
                ends = f"M{_place(q):g} {bottom}L{_place(k) + aside:g} {top}"
                yield f'<path d="{ends}" opacity="{weights[head - 1, q, k]:.2f}"/>'
        yield "</g>"


def _boxes(
    keys: Sequence[str], heads: Sequence[int], weights: np.ndarray, top: float
) -> Iterator[str]:
    """Behind every key a box for each head, by the weights [H, P] of one query."""
    width = (PITCH - 2) / max(len(heads), 1)
    for row, head in enumerate(heads):
        for k in np.flatnonzero(weights[head - 1] >= FAINT):
            x, height = _place(k) - PITCH / 2 + 1 + row * width, text_width(keys[k]) + 4
            yield (
                f'<rect x="{x:.1f}" y="{top - 2 - height}" width="{width:.1f}" height="{height}" '
                f'fill="{head_colour(head)}" opacity="{0.65 * weights[head - 1, k]:.2f}"/>'
            )


def _place(index: int) -> float:
    """The x of a word's middle."""
    return MARGIN + PITCH * (index + 0.5)


def _text(label: str, index: int, y: float, anchor: str, faded: bool = False) -> str:
    """A word written upwards, beginning or ending at y."""
    x = _place(index) + FONT_SIZE * 0.35
    colour = "#aaa" if faded else "#111"
    shown = escape(NOT_XML.sub("\ufffd", label))
    return (
        f'<text transform="translate({x:.1f} {y}) rotate(-90)" text-anchor="{anchor}" '
        f'fill="{colour}" style="unicode-bidi:plaintext">{shown}</text>'
    )
