"""An HTML page of trees, each beside its gold tree, with the brackets that differ marked."""

from collections.abc import Sequence
from html import escape

from keras_transformer.parsing.drawing import MEANING, MISSED, STYLE, in_both_colours, svg_tree
from keras_transformer.parsing.parseval import ParsevalScores, score_sentence, unmatched_nodes
from keras_transformer.parsing.trees import Tree

PAGE_STYLE = """
body { font: 16px/1.5 Helvetica, Arial, sans-serif; margin: 1.5em auto; max-width: 110em;
  padding: 0 1.2em }
h1 { font-size: 1.4em; margin: 0 } p { margin: .3em 0 }
details { border-top: 1px solid; padding: .6em 0 } details:first-of-type { margin-top: 1.2em }
summary { cursor: pointer; padding-left: 1.5em; text-indent: -1.5em }
summary b { margin: 0 .5em } summary i { white-space: nowrap }
.pair { display: flex; flex-wrap: wrap; gap: .5em 2em }
figure { margin: .8em 0 0; max-width: 100% } figure div { overflow-x: auto }
p b { border-radius: 4px; padding: 0 .35em }
""" + in_both_colours("""
body {{ background: {ground}; color: {ink} }}
details {{ border-color: {line} }} figcaption, i {{ color: {soft} }}
b.wrong {{ background: {red_ground}; color: {red} }}
b.missed {{ background: {amber_ground}; color: {amber} }}
""")


def tree_page(
    predicted: Sequence[Tree],
    gold: Sequence[Tree] = (),
    first: int = 1,
    scores: ParsevalScores | None = None,
) -> str:
    """Draws trees in a page without outside files, each folded below its sentence.

    Args:
        predicted: the trees.
        gold: as many, or none.
        first: the number of the first tree.
        scores: shown at the top; of these trees, or of all trees that they were taken from.
    """
    head = ""
    if scores is not None:
        counts = scores.all.to_dict()
        facts = ", ".join(f"{name} {counts[name]:.2f}" for name in ("f1", "precision", "recall"))
        head = f"<p>Trees compared: {counts['sentences']}. {facts.capitalize()}.</p>"
    if gold:
        legend = (f'<b class="{kind}">NP</b> {text}' for kind, text in MEANING.items())
        head += f"<p>{' &nbsp; '.join(legend)}</p>"
    folded = []
    for index, tree in enumerate(predicted):
        note, figures = "", _figure(svg_tree(tree, style=""))
        if gold:
            note, figures = _pair(tree, gold[index])
        summary = f"<b>{first + index}</b>{escape(' '.join(tree.words()))} <i>{escape(note)}</i>"
        folded.append(
            f"<details{' open' * (not index)}><summary>{summary}</summary>"
            f'<div class="pair">{figures}</div></details>\n'
        )
    return (
        '<!DOCTYPE html>\n<html lang="en"><meta charset="utf-8"><title>Trees</title>\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<style>{STYLE}{PAGE_STYLE}</style>\n<h1>Trees</h1>{head}\n{''.join(folded)}</html>\n"
    )


def _pair(predicted: Tree, gold: Tree) -> tuple[str, str]:
    """A note on a predicted tree, and the pictures of both trees."""
    score = score_sentence(gold, predicted)
    scores = ParsevalScores()
    scores.add(score)
    note = score.error or ("no words" if score.skipped else f"F1 {scores.to_dict()['f1']:.2f}")
    missed, wrong = unmatched_nodes(gold, predicted)
    figures = _figure(svg_tree(predicted, wrong, style=""), "predicted")
    return note, figures + _figure(svg_tree(gold, missed, MISSED, style=""), "gold")


def _figure(svg: str, caption: str = "") -> str:
    return f"<figure><figcaption>{caption}</figcaption><div>{svg}</div></figure>"
