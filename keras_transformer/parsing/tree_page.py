"""An HTML page of trees, each beside its gold tree, with the brackets that differ marked."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from keras_transformer.parsing.drawing import MEANING, MISSED, svg_tree
from keras_transformer.parsing.parseval import score_sentence, summary
from keras_transformer.parsing.trees import Tree

STYLE = """
:root { color-scheme: light dark }
body { font: 16px/1.5 Helvetica, Arial, sans-serif; margin: 1.5em auto; max-width: 110em;
  padding: 0 1.2em }
h1 { font-size: 1.4em; margin: 0 } p { margin: .3em 0 } figcaption, i { opacity: .7 }
p b { background: color-mix(in srgb, currentColor 14%, transparent); border-radius: 4px;
  padding: 0 .35em }
details { border-top: 1px solid gray; padding: .6em 0 }
details:first-of-type { margin-top: 1.2em }
summary { cursor: pointer; padding-left: 1.5em; text-indent: -1.5em }
summary b { margin: 0 .5em } summary i { white-space: nowrap }
.pair { display: flex; flex-wrap: wrap; gap: .5em 2em }
figure { margin: .8em 0 0; max-width: 100% } figure div { overflow-x: auto }
"""


def tree_page(
    predicted: Sequence[Tree],
    gold: Sequence[Tree] = (),
    first: int = 1,
    scores: Mapping[str, Any] | None = None,
) -> str:
    """Draws trees in a page without outside files, each folded below its sentence.

    Args:
        predicted: the trees.
        gold: as many, or none.
        first: the number of the first tree.
        scores: of score_trees, shown at the top; of these trees, or of all trees that they were
            taken from.
    """
    head = ""
    if scores is not None:
        facts = ", ".join(f"{name} {scores[name]:.2f}" for name in ("f1", "precision", "recall"))
        head = f"<p>Trees compared: {scores['sentences']}. {facts.capitalize()}.</p>"
    if gold:
        legend = (f'<b class="{kind}">NP</b> {text}' for kind, text in MEANING.items())
        head += f'<p class="tree">{" &nbsp; ".join(legend)}</p>'
    folded = []
    for index, tree in enumerate(predicted):
        note, figures = "", _figure(svg_tree(tree))
        if gold:
            score = score_sentence(gold[index], tree)
            f1 = "no words" if score.skipped else f"F1 {summary([score])['f1']:.2f}"
            note = score.error or f1
            figures = _figure(svg_tree(tree, score.wrong), "predicted")
            figures += _figure(svg_tree(gold[index], score.missed, MISSED), "gold")
        sentence = f"<b>{first + index}</b>{escape(' '.join(tree.words()))} <i>{escape(note)}</i>"
        folded.append(
            f"<details{' open' * (not index)}><summary>{sentence}</summary>"
            f'<div class="pair">{figures}</div></details>\n'
        )
    return (
        '<!DOCTYPE html>\n<html lang="en"><meta charset="utf-8"><title>Trees</title>\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<style>{STYLE}</style>\n<h1>Trees</h1>{head}\n{''.join(folded)}</html>\n"
    )


def _figure(svg: str, caption: str = "") -> str:
    return f"<figure><figcaption>{caption}</figcaption><div>{svg}</div></figure>"
