"""Pictures of attention heads, drawn by matplotlib (the extra "figures")."""

import colorsys
import importlib.util
import io
import re
import warnings
from collections.abc import Sequence

import numpy as np

from keras_transformer.analysis.attention_views import AttentionView, word_labels
from keras_transformer.errors import InputError

INSTALL = 'pip install "keras-transformer[figures]"'
FAINT = 0.01  # lines of smaller weight are not drawn
INK, QUIET, PAPER = "#1b1b1b", "#8a8780", "#fffefb"
DARK = {INK: "#e8e6e1", QUIET: "#807e78", PAPER: "#16171a"}  # for readers whose system is dark
NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
PITCH, FONT_SIZE, GAP, STRIP = 13, 10, 100, 10  # points: between words, words, lines, boxes
LARGEST_PICTURE, LARGEST_CELL, SMALLEST_WORD = 2400, 14, 6  # pixels of all heads, of a weight
STYLE = {
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "keras-transformer",  # the same attention gives the same file
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "sans-serif"],
}


def has_matplotlib() -> bool:
    """Whether pictures can be drawn; does not import matplotlib."""
    return importlib.util.find_spec("matplotlib") is not None


def head_picture(
    view: AttentionView, layer: int, heads: Sequence[int], word: str | None, suffix: str
) -> bytes:
    """Draws one layer for print, as in Figures 3 to 5: queries below, keys above, lines between.

    A line's colour is its head's, its opacity the weight.

    Args:
        view: one kind of attention of a sentence.
        layer, heads: which to draw, from 1.
        word: draws only the lines of its first occurrence among the queries, and the weights as
            boxes under the words attended to, as in Figure 3; None draws all words.
        suffix: the format: "svg", "png" or "pdf". An SVG picture follows the reader's choice of a
            dark page.

    Raises:
        InputError: if there is no such layer, head or word.
    """
    layers, num_heads = view.weights.shape[:2]
    check_number("layer", layer, layers)
    for head in heads:
        check_number("heads", head, num_heads)
    queries, keys = _labels(view.queries), _labels(view.keys)
    if word is not None and word not in queries:
        raise InputError(f"--word must be one of {' '.join(queries)}. Received: {word!r}")
    chosen = range(len(queries)) if word is None else [queries.index(word)]
    width, weights = max(len(queries), len(keys)), view.weights[layer - 1]
    figure, axes = _figure(PITCH * width, GAP)
    axes.set(xlim=(0, width), ylim=(0, GAP))
    top = GAP
    if word is not None:
        top -= STRIP
        _draw_boxes(axes, heads, weights[:, chosen[0]], top)
    _draw_lines(axes, heads, weights, chosen, top)
    style = {"ha": "center", "rotation": 90, "size": FONT_SIZE}
    for k, label in enumerate(keys):
        _write(axes, label, k + 0.5, GAP + 4, va="bottom", **style)
    for q, label in enumerate(queries):
        colour = INK if q in chosen else QUIET
        _write(axes, label, q + 0.5, -4, va="top", color=colour, **style)
    return _saved(figure, suffix, dpi=200)


def all_heads(view: AttentionView) -> np.ndarray:
    """Draws the heat maps of all heads with their words: layers downwards, heads across.

    Queries run downwards and keys across, darker for more weight. The words are left out of very
    long sentences, where they could not be read.

    Returns:
        uint8 [Y, X, 3].
    """
    import matplotlib
    from PIL import Image

    layers, heads, Q, P = view.weights.shape
    # The gaps between heads are a row and a column without a value.
    grid = np.full([layers, Q + 1, heads, P + 1], np.nan, np.float32)
    grid[:, 1:, :, 1:] = view.weights.transpose(0, 2, 1, 3)
    grid = grid.reshape(layers * (Q + 1), heads * (P + 1))
    cell = max(1, min(LARGEST_CELL, LARGEST_PICTURE // max(grid.shape)))
    figure, axes = _figure(cell * grid.shape[1], cell * grid.shape[0])
    colours = matplotlib.colormaps["Blues"].with_extremes(bad="#d9d5cc")
    axes.imshow(grid, colours, vmin=0, vmax=1, aspect="auto", interpolation="nearest")
    if cell >= SMALLEST_WORD:
        queries, keys, style = _labels(view.queries), _labels(view.keys), {"size": 0.8 * cell}
        for row in range(layers):
            for q, label in enumerate(queries):
                _write(axes, label, -1, row * (Q + 1) + 1 + q, ha="right", va="center", **style)
        for column in range(heads):
            for k, label in enumerate(keys):
                x = column * (P + 1) + 1 + k
                _write(axes, label, x, -1, ha="center", va="bottom", rotation=90, **style)
    png = _saved(figure, "png", dpi=72)
    with Image.open(io.BytesIO(png)) as picture:
        return np.asarray(picture.convert("RGB"))


def head_colour(head: int) -> tuple[float, float, float]:
    """The colour of a head, counted from 1: red, green and blue, as attention_figure.js has it."""
    return colorsys.hls_to_rgb((210 + 137.5 * (head - 1)) % 360 / 360, 0.45, 0.6)


def check_number(flag: str, value: int | str, count: int) -> int:
    """Reads a number, which must be one of 1, ..., count."""
    if not (str(value).isdecimal() and 1 <= int(value) <= count):
        raise InputError(f"--{flag} must be from 1 to {count}. Received: {value}")
    return int(value)


def _draw_lines(axes, heads: Sequence[int], weights: np.ndarray, chosen: Sequence[int], top: float):
    """Draws lines from each chosen query to every key, by the weights [H, Q, P] of one layer."""
    from matplotlib.collections import LineCollection

    # Those of a single word end side by side, so that no colour hides another.
    spread = min(0.12, 0.65 / max(len(heads), 1)) if len(chosen) == 1 else 0
    for row, head in enumerate(heads):
        aside = (row - (len(heads) - 1) / 2) * spread
        ends = [(q, k) for q in chosen for k in np.flatnonzero(weights[head - 1, q] >= FAINT)]
        lines = [[(q + 0.5, 0), (k + 0.5 + aside, top)] for q, k in ends]
        colours = [(*head_colour(head), min(1, weights[head - 1, q, k])) for q, k in ends]
        drawn = LineCollection(lines, colors=colours, linewidths=1.4)
        axes.add_collection(drawn, autolim=False)


def _draw_boxes(axes, heads: Sequence[int], weights: np.ndarray, bottom: float):
    """Draws under every key a box for each head, by the weights [H, P] of one query."""
    width = 0.85 / max(len(heads), 1)
    for row, head in enumerate(heads):
        for k in np.flatnonzero(weights[head - 1] >= FAINT):
            colour = (*head_colour(head), min(1, weights[head - 1, k]))
            axes.bar(k + 0.075 + row * width, GAP - bottom, width, bottom, align="edge", fc=colour)


def _labels(pieces: Sequence[str]) -> list[str]:
    return [NOT_XML.sub("\ufffd", label) for label in word_labels(pieces)]


def _write(axes, label: str, x: float, y: float, **style):
    """Writes a word; a "$" begins no formula."""
    axes.text(x, y, label, parse_math=False, **{"color": INK, **style})


def _figure(width: float, height: float):
    """A figure of that many points with one bare axes, without pyplot and its backends."""
    from matplotlib.figure import Figure

    figure = Figure((width / 72, height / 72), dpi=72)
    figure.set_facecolor(PAPER)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    return figure, axes


def _saved(figure, suffix: str, dpi: int) -> bytes:
    """The file, cut to what is drawn; an SVG file has the colours of both pages."""
    import matplotlib

    file = io.BytesIO()
    with matplotlib.rc_context(STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # the reader may have the font
        dates = {"svg": ("Date", "Creator"), "pdf": ("CreationDate",)}
        undated = dict.fromkeys(dates[suffix]) if suffix in dates else None
        place = {"bbox_inches": "tight", "pad_inches": 0.1}
        figure.savefig(file, format=suffix, dpi=dpi, metadata=undated, **place)
    if suffix != "svg":
        return file.getvalue()
    rules = "".join(
        f'[style*="{name}: {light}"] {{ {name}: {dark} !important }}\n'
        for light, dark in DARK.items()
        for name in ("fill", "stroke")
    )
    style = f"<style>@media (prefers-color-scheme: dark) {{\n{rules}}}</style>\n <defs>"
    return file.getvalue().decode("utf-8").replace("<defs>", style, 1).encode("utf-8")
