"""Pictures of trees, as indented lines of text, as SVG, and as an HTML page.

In a picture, words and their tags stand in one line at the bottom. A constituent stands over the
middle of its words, one level above the highest of its children. A bar runs below each parent, and
a line drops from the bar to each child, so that no line crosses a label. Nothing here recurses, as
trees can be deeper than Python's stack.
"""

import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from keras_transformer.parsing.parseval import score_sentence, summary
from keras_transformer.parsing.trees import TOP, Tree

GAP, MARGIN = 14, 16  # pixels between words, and around a picture
FONT_SIZE, ROW, CORNER = 15, 44, 7  # pixels; a row holds a level's labels and the bars below
LINE = 20  # pixels from a tag's baseline to its word's
ABOVE, BELOW = 14, 6  # pixels from a label's baseline to the lines above and below it
WRONG, MISSED = "wrong", "missed"  # brackets of a predicted tree, and of a gold tree
MEANING = {WRONG: "not in the gold tree", MISSED: "not in the predicted tree"}

# There are no CSS variables, as programs other than browsers do not know them.
STYLE = f"""
.tree text {{ font: {FONT_SIZE}px Helvetica, Arial, sans-serif; text-anchor: middle }}
.tree text.tag {{ font-size: 12px }} .tree text.label {{ font-weight: bold }}
.tree text, .tree rect {{ fill: currentColor }} .tree .mark {{ fill-opacity: .14 }}
.tree path {{ fill: none; stroke: currentColor; stroke-width: 1.4 }}
.tree .missed path {{ stroke-dasharray: 5 3 }}
.tree {{ color: #1b2230 }} .tree .ground {{ color: #fff }} .tree path {{ color: #9aa5b4 }}
.tree .tag {{ color: #687385 }} .tree .label {{ color: #1f55a5 }}
.tree .wrong, .tree .wrong * {{ color: #b9203a }}
.tree .missed, .tree .missed * {{ color: #8a5200 }}
@media (prefers-color-scheme: dark) {{
.tree {{ color: #e7eaef }} .tree .ground {{ color: #171b21 }} .tree path {{ color: #5a6573 }}
.tree .tag {{ color: #98a3b1 }} .tree .label {{ color: #8db8f7 }}
.tree .wrong, .tree .wrong * {{ color: #ff8d99 }}
.tree .missed, .tree .missed * {{ color: #f0b955 }}
}}
"""
PAGE_STYLE = """
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


@dataclass(slots=True, eq=False)
class Node:
    """A node with its place in pixels."""

    label: str
    word: str | None
    marked: bool
    children: list["Node"]
    height: int  # levels above the words
    width: float  # of the strip that this node and all below it have to themselves
    center: float = 0  # of this strip, and of the label


def placed_nodes(tree: Tree, marked: Collection[int] = ()) -> list[Node]:
    """Gives each node of a tree its place, from x = 0 on, in the order of Tree.fold: root last.

    `marked` has the numbers, in this order, of the nodes to mark.
    """
    nodes: list[Node] = []

    def measured(subtree: Tree, children: list[Node]) -> Node:
        label, word = subtree.label or TOP, subtree.word
        own = max(text_width(label), text_width(word or "")) + GAP
        width = max(own, sum(child.width for child in children))
        height = max((child.height + 1 for child in children), default=0)
        nodes.append(Node(label, word, len(nodes) in marked, children, height, width))
        return nodes[-1]

    root = tree.fold(measured)
    root.center = root.width / 2
    for node in reversed(nodes):
        end = node.center - sum(child.width for child in node.children) / 2
        for child in node.children:
            child.center = end + child.width / 2
            end += child.width
    return nodes


def text_width(text: str) -> float:
    """Estimates the pixels of a text in a sans-serif font, too many rather than too few."""
    return FONT_SIZE * sum(
        (0.75 if char.isupper() else 0.58) * (1 + (unicodedata.east_asian_width(char) in "WF"))
        for char in text
        if not unicodedata.combining(char)
    )


def text_tree(tree: Tree, marked: Collection[int] = ()) -> str:
    """Draws a tree as lines of text, one for each node, indented below its parent.

    Nodes whose number, in the order of Tree.fold, is in `marked` have a * after their label.
    """
    lines, stack = [], [(placed_nodes(tree, marked)[-1], "", "")]
    while stack:
        node, branch, indent = stack.pop()
        lines.append(f"{branch}{node.label}{'*' * node.marked} {node.word or ''}".rstrip())
        for child in reversed(node.children):
            last = child is node.children[-1]
            below = (indent + "└─ ", indent + "   ") if last else (indent + "├─ ", indent + "│  ")
            stack.append((child, *below))
    return "\n".join(lines)


def svg_tree(tree: Tree, marked: Collection[int] = (), kind: str = WRONG) -> str:
    """Draws a tree as SVG without scripts, fonts or styles from elsewhere.

    It has a ground of its own, light or dark as the reader's system is. Constituents whose number,
    in the order of Tree.fold, is in `marked` are coloured. `kind` says why: WRONG, or MISSED, which
    also has dashes.
    """
    nodes = placed_nodes(tree, marked)
    top, baseline = nodes[-1].height, MARGIN + ABOVE  # of the root's label
    parts = []
    for node in nodes:
        x, y = MARGIN + node.center, baseline + ROW * (top - node.height)
        bar, lines = y + (ROW - ABOVE + BELOW) / 2, ""
        for child in node.children:
            column, end = MARGIN + child.center, baseline + ROW * (top - child.height) - ABOVE
            # The ends of the bar are round.
            corner = CORNER * ((child is node.children[-1]) - (child is node.children[0]))
            lines += f"M{x:.1f} {y + BELOW}V{bar}H{column - corner:.1f}"
            lines += f"q{corner} 0 {corner} {abs(corner)}V{end}"
        drawn = f'<path d="{lines}"/>' if lines else ""
        drawn += _text("label" if node.word is None else "tag", x, y, node.label)
        if node.word is not None:
            drawn += _text("word", x, y + LINE, node.word)
        if node.marked:
            half = text_width(node.label) / 2 + 5
            box = f'x="{x - half:.1f}" y="{y - ABOVE}" width="{2 * half:.1f}" height="{ABOVE + 5}"'
            title = f"<title>{escape(node.label)}: {MEANING[kind]}</title>"
            drawn = f'<g class="{kind}">{title}<rect class="mark" {box} rx="4"/>{drawn}</g>'
        parts.append(drawn)
    width, height = nodes[-1].width + 2 * MARGIN, baseline + ROW * top + LINE + MARGIN
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="tree" {size} role="img" '
        f'aria-label="{escape(" ".join(tree.words()))}"><style>{STYLE}</style>'
        f'<rect class="ground" width="100%" height="100%" rx="8"/>{"".join(parts)}</svg>\n'
    )


def _text(kind: str, x: float, y: float, text: str) -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>'


def tree_page(
    predicted: Sequence[Tree],
    gold: Sequence[Tree] = (),
    first: int = 1,
    scores: Mapping[str, Any] | None = None,
) -> str:
    """Draws trees in a page without outside files, each folded below its sentence.

    Args:
        gold: as many trees, drawn beside them with the brackets that differ marked; or none.
        first: the number of the first tree.
        scores: with `gold`, what is shown at the top: those of score_trees, of these trees or of
            all that they were taken from.
    """
    head = ""
    if gold:
        facts = ", ".join(f"{name} {scores[name]:.2f}" for name in ("f1", "precision", "recall"))
        head = f"<p>Trees compared: {scores['sentences']}. {facts.capitalize()}.</p>"
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
        f"<style>{PAGE_STYLE}</style>\n<h1>Trees</h1>{head}\n{''.join(folded)}</html>\n"
    )


def _figure(svg: str, caption: str = "") -> str:
    return f"<figure><figcaption>{caption}</figcaption><div>{svg}</div></figure>"
