"""Pictures of attention heads, drawn with matplotlib (the extra "figures")."""

import colorsys
import importlib.util
import io
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from absl import logging

from keras_transformer.kit.figures.views import AttentionView, attention_views, word_labels
from keras_transformer.support.errors import install_command
from keras_transformer.support.markup import well_formed

if TYPE_CHECKING:  # it imports TensorFlow
    from keras_transformer.use.evaluate.sample import SampleAnswers

INSTALL = install_command("figures")
FAINT = 0.01  # lines with smaller weights are not drawn
INK, PAPER, DARK_INK, DARK_PAPER = "#1b1b1b", "#fffefb", "#e8e6e1", "#16171a"
DARK_STYLE = f"""<style>@media (prefers-color-scheme: dark) {{
#patch_1 path {{ fill: {DARK_PAPER} !important }} text {{ fill: {DARK_INK} !important }}
}}</style>"""
# In points: distance of words, height of the lines, height of the boxes above them.
PITCH, GAP, STRIP = 13, 100, 10
# In pixels: the largest picture of all heads, the largest weight, the smallest one with words.
LARGEST_PICTURE, LARGEST_CELL, SMALLEST_WORD = 2400, 14, 6
STYLE = {
    "svg.fonttype": "none",  # keep text as text
    "svg.hashsalt": "keras-transformer",  # make files reproducible
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "sans-serif"],
}


def has_matplotlib() -> bool:
    """Whether pictures can be drawn; does not import matplotlib."""
    return importlib.util.find_spec("matplotlib") is not None


def head_picture(
    view: AttentionView, layer: int, heads: Sequence[int], word: str | None, suffix: str
) -> bytes:
    """Draws one layer as in Figures 3 to 5: keys above queries, with weights as line opacity.

    Args:
        view: one kind of attention for a sentence.
        layer: the layer to draw, from 1.
        heads: the heads to draw, from 1.
        word: draws only the lines of its first occurrence among the query labels, with the weights
            as boxes under the words attended to, as in Figure 3; None draws all words.
        suffix: the format: "svg", "png" or "pdf". An SVG picture follows the reader's dark mode.
    """
    from matplotlib.collections import LineCollection

    queries, keys = _labels(view.queries), _labels(view.keys)
    chosen = range(len(queries)) if word is None else [word_labels(view.queries).index(word)]
    width = max(len(queries), len(keys))
    figure, axes = _figure(PITCH * width, GAP)
    axes.set(xlim=(0, width), ylim=(0, GAP))
    top = GAP
    spread = 0.0
    if word is not None:
        # Lines of a single word end side by side, below boxes, so that no colour hides another.
        top = GAP - STRIP
        spread = min(0.12, 0.65 / len(heads))
    for row, head in enumerate(heads):
        weights = view.weights[layer - 1, head - 1]
        aside = (row - (len(heads) - 1) / 2) * spread
        ends = [(q, k) for q in chosen for k in np.flatnonzero(weights[q] >= FAINT)]
        lines = [[(q + 0.5, 0), (k + 0.5 + aside, top)] for q, k in ends]
        colours = [(*head_colour(head), min(1, weights[q, k])) for q, k in ends]
        axes.add_collection(LineCollection(lines, colors=colours, linewidths=1.4), autolim=False)
        if word is not None:
            box = 0.85 / len(heads)
            left = np.array([k for _, k in ends]) + 0.075
            axes.bar(left + row * box, STRIP, box, top, align="edge", color=colours)
    style = {"ha": "center", "rotation": 90, "size": 10}
    for k, label in enumerate(keys):
        _write(axes, k + 0.5, GAP + 4, label, va="bottom", **style)
    for q, label in enumerate(queries):
        _write(axes, q + 0.5, -4, label, va="top", alpha=1 if q in chosen else 0.5, **style)
    return _saved(figure, suffix, dpi=200).replace(b"<defs>", DARK_STYLE.encode() + b"<defs>", 1)


def all_heads(view: AttentionView) -> np.ndarray:
    """Draws the heat maps of all heads, uint8 [Y, X, 3]: layers downwards, heads across.

    In each, queries run downwards and keys across. Very long sentences are drawn without words and
    titles, which would be illegible.
    """
    import matplotlib
    from PIL import Image

    layers, heads, Q, P = view.weights.shape
    # The gaps between heads, with their titles, are a row and a column without values.
    grid = np.pad(view.weights, [(0, 0), (0, 0), (1, 0), (1, 0)], constant_values=np.nan)
    grid = grid.transpose(0, 2, 1, 3).reshape(layers * (Q + 1), heads * (P + 1))
    cell = max(1, min(LARGEST_CELL, LARGEST_PICTURE // max(grid.shape)))
    figure, axes = _figure(cell * grid.shape[1], cell * grid.shape[0])
    colours = matplotlib.colormaps["Blues"].with_extremes(bad="#d9d5cc")
    axes.imshow(grid, colours, vmin=0, vmax=1, aspect="auto", interpolation="nearest")
    if cell >= SMALLEST_WORD:
        for y, label in enumerate(["", *_labels(view.queries)] * layers):
            _write(axes, -1, y, label, ha="right", va="center", size=0.8 * cell)
        for x, label in enumerate(["", *_labels(view.keys)] * heads):
            _write(axes, x, -1, label, ha="center", va="bottom", rotation=90, size=0.8 * cell)
        for layer, head in np.ndindex(layers, heads):
            x = (head + 0.5) * (P + 1)
            y = layer * (Q + 1)
            title = f"layer {layer + 1}, head {head + 1}"
            _write(axes, x, y, title, ha="center", va="center", size=0.8 * cell)
        kind = "cross-attention" if view.kind == "cross" else f"{view.kind}\nself-attention"
        _write(axes, -1, -1, f"{kind}:\nrows attend\nto columns", ha="right", size=0.8 * cell)
    picture = Image.open(io.BytesIO(_saved(figure, "png", dpi=72)))
    return np.asarray(picture.convert("RGB"))


def attention_images(sample: "SampleAnswers") -> Callable[..., dict[str, np.ndarray]] | None:
    """Makes the function that draws attention while a model is trained.

    Args:
        sample: the sentences translated during training; the pair of median length is drawn.

    Returns:
        A function from a model to kind of attention -> `all_heads`; None, with a warning, if
        matplotlib is not installed.
    """
    if not has_matplotlib():
        logging.warning("no attention pictures: matplotlib is not installed (%s)", INSTALL)
        return None
    pairs = list(zip(sample.sources, sample.references, strict=True))
    pairs.sort(key=lambda pair: len(pair[0]))
    source, target = pairs[len(pairs) // 2]

    def draw(model):
        views = attention_views(sample.translator_of(model).attention(source, str(target)))
        return {view.kind: all_heads(view) for view in views}

    return draw


def head_colour(head: int) -> tuple[float, float, float]:
    """Returns the colour of a head, counted from 1: red, green and blue, as in figure.js."""
    return colorsys.hls_to_rgb((210 + 137.5 * (head - 1)) % 360 / 360, 0.45, 0.6)


def _labels(pieces: Sequence[str]) -> list[str]:
    return [well_formed(label) for label in word_labels(pieces)]


def _write(axes, x: float, y: float, label: str, **style):
    axes.text(x, y, label, color=INK, parse_math=False, **style)  # a "$" does not begin a formula


def _figure(width: float, height: float):
    """Makes a figure of this size in points with bare axes, without pyplot and its backends."""
    from matplotlib.figure import Figure

    figure = Figure((width / 72, height / 72), dpi=72, facecolor=PAPER)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    return figure, axes


def _saved(figure, suffix: str, dpi: int) -> bytes:
    """Returns the file, cropped to the drawing."""
    import matplotlib

    file = io.BytesIO()
    without_date = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    with matplotlib.rc_context(STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # the reader may have the font
        figure.savefig(
            file,
            format=suffix,
            dpi=dpi,
            metadata=without_date.get(suffix),
            bbox_inches="tight",
            pad_inches=0.1,
        )
    return file.getvalue()
