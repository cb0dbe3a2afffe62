"""An HTML page that shows every attention head for a sentence pair (Figures 3 to 5).

The page is a single self-contained file: page.html, with the script and style of the served page.
"""

import base64
import json
from collections.abc import Sequence
from pathlib import Path
from string import Template

import numpy as np

from keras_transformer.kit.figures.views import MEASURES, AttentionView, head_summary, word_labels
from keras_transformer.support.markup import escaped

# The name of each kind of attention in the data for the page's script.
SCRIPT_FIELDS = {"encoder": "encoder", "decoder": "decoder", "cross": "memory"}


def attention_page(views: Sequence[AttentionView], source: str, target: str) -> str:
    """Makes the page. Weights are rounded to multiples of 1/255.

    Args:
        views: the views of a sentence pair, from attention_views.
        source: the sentence, for the heading.
        target: its translation, for the heading.

    Returns:
        HTML, less than 1 MB for 60 subwords per side and 6 layers with 8 heads.
    """
    data = {
        "source_labels": word_labels(views[0].queries),
        "target_labels": word_labels(views[-1].queries),
        "measures": MEASURES,
        "summary": {},
        "decoder": {"shape": [0, 0, 0, 0], "levels": ""},  # of a decoder with SSRUs
    }
    for view in views:
        field = SCRIPT_FIELDS[view.kind]
        levels = np.rint(255 * view.weights).astype(np.uint8)
        encoded = base64.b64encode(levels.tobytes()).decode("ascii")
        data[field] = {"shape": view.weights.shape, "levels": encoded}
        summary = []
        for row in head_summary([view]):
            summary.append([round(number, 4) for number in row.measures])
        data["summary"][field] = summary
    # Leaves anything that is not a field unchanged, such as $("figure").
    return Template(_asset("page.html")).safe_substitute(
        source=escaped(source),
        target=escaped(target),
        style=_asset("figure.css"),
        # With "<", a word such as "</script>" would end the enclosing script.
        data=json.dumps(data, ensure_ascii=False).replace("<", "\\u003c"),
        script=_asset("figure.js"),
    )


def _asset(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")
