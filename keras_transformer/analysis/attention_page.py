"""One HTML page that shows every attention head of a sentence pair (Figures 3 to 5).

The page is a single file that loads nothing: attention_page.html is its text and style,
attention_figures.js draws, attention_page.js answers to the reader, and the weights stand in it as
compressed bytes.
"""

import base64
import json
import zlib
from collections.abc import Sequence
from html import escape
from importlib import resources

import numpy as np

from keras_transformer.analysis.attention_heads import HeadSummary, head_summary
from keras_transformer.analysis.attention_svg import HEAD_COLOURS
from keras_transformer.analysis.attention_views import TITLES, AttentionView, sentence_of


def attention_page(views: Sequence[AttentionView]) -> str:
    """Makes the page. Weights are kept to 1/510 of the largest of their head.

    Args:
        views: the three of a sentence pair, from attention_views.

    Returns:
        HTML, well under 2 MB for 60 subwords a side and 6 layers of 8 heads.
    """
    scales = [np.maximum(view.weights.max(axis=(2, 3)), 1e-9) / 255 for view in views]
    levels = [
        np.rint(view.weights / scale[:, :, None, None]).astype(np.uint8)
        for view, scale in zip(views, scales, strict=True)
    ]
    data = {
        "colours": HEAD_COLOURS,
        "columns": HeadSummary._fields[3:],
        "views": [_described(*each) for each in zip(views, scales, strict=True)],
    }
    raw = b"".join(level.tobytes() for level in levels)
    parts = {
        "source": escape(sentence_of(views[0].queries)),
        "target": escape(sentence_of(views[1].queries)),
        # "<" would let a word such as "</script>" end the script that it stands in.
        "data": json.dumps(data, ensure_ascii=False).replace("<", "\\u003c"),
        "weights": base64.b64encode(zlib.compress(raw, 9)).decode("ascii"),
        "script": _asset("attention_figures.js") + _asset("attention_page.js"),
    }
    # Cut once rather than replaced in turn: texts may hold braces, too.
    pieces = _asset("attention_page.html").split("{{")
    return pieces[0] + "".join(
        parts[name] + rest for name, rest in (piece.split("}}", 1) for piece in pieces[1:])
    )


def _described(view: AttentionView, scale: np.ndarray) -> dict:
    layers, heads = view.weights.shape[:2]
    return {
        "kind": view.kind,
        "title": TITLES[view.kind],
        "queries": view.queries,
        "keys": view.keys,
        "layers": layers,
        "heads": heads,
        "scales": [float(f"{step:.5g}") for step in scale.ravel()],  # weight of level 1, [N H]
        "summary": [[round(number, 4) for number in row[3:]] for row in head_summary([view])],
    }


def _asset(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
