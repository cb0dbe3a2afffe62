"""Draws trees as indented text, as SVG, and as an HTML page.

In SVG, words and their tags are in one row at the bottom. A constituent is centred above its words,
one level above its highest child. A bar runs below each parent, and a line drops from the bar to
each child, so that no line crosses a label. Nothing here is recursive, as trees can be deeper than
Python's stack.
"""

import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keras_transformer.markup import escaped
from keras_transformer.parsing.parseval import score_sentence, summary
from keras_transformer.parsing.trees import TOP, Tree

# All lengths are in pixels.
GAP = 14  # between words
MARGIN = 16  # around a picture
FONT_SIZE = 15
ROW = 44  # from the labels of one level to those of the next, including the bars between them
CORNER = 7  # radius of the ends of a bar
LINE = 20  # from a tag's baseline to its word's
ABOVE, BELOW = 14, 6  # from a label's baseline to the lines above and below it
WRONG, MISSED = "wrong", "missed"  # brackets only in the predicted tree, and only in the gold tree
MEANING = {WRONG: "not in the gold tree", MISSED: "not in the predicted tree"}

# No CSS variables, as programs other than browsers do not support them.
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
    """A node and its place, in pixels."""

    label: str
    word: str | None
    is_marked: bool
    children: list["Node"]
    height: int  # levels above the words
    width: float  # of the strip that only this node and those below it use
    center: float = 0  # of this strip, and of the label


def placed_nodes(tree: Tree, marked: Collection[int] = ()) -> list[Node]:
    """Computes the place of each node of a tree.

    Args:
        tree: the tree.
        marked: the numbers of the nodes to mark, in the order of Tree.fold.

    Returns:
        The nodes in that order, with the root last. They begin at x = 0.
    """
    nodes: list[Node] = []

    def measured(subtree: Tree, children: list[Node]) -> Node:
        label = subtree.label or TOP
        own_width = max(text_width(label), text_width(subtree.word or "")) + GAP
        node = Node(
            label=label,
            word=subtree.word,
            is_marked=len(nodes) in marked,
            children=children,
            height=max((child.height + 1 for child in children), default=0),
            width=max(own_width, sum(child.width for child in children)),
        )
        nodes.append(node)
        return node

    root = tree.fold(measured)
    root.center = root.width / 2
    for node in reversed(nodes):  # parents before children
        left = node.center - sum(child.width for child in node.children) / 2
        for child in node.children:
            child.center = left + child.width / 2
            left += child.width
    return nodes


def text_width(text: str) -> float:
    """Estimates the width of a text in a sans-serif font in pixels, preferably too wide."""
    width = 0.0
    for character in text:
        if unicodedata.combining(character):
            continue
        character_width = 0.75 if character.isupper() else 0.58
        if unicodedata.east_asian_width(character) in "WF":
            character_width *= 2
        width += character_width
    return FONT_SIZE * width


def text_tree(tree: Tree, marked: Collection[int] = ()) -> str:
    """Draws a tree as lines of text, one per node, indented below its parent.

    Args:
        tree: the tree.
        marked: the numbers of the nodes that get a * after their label, in the order of Tree.fold.
    """
    lines = []
    # Each node, with the text before its label and before the labels below it.
    stack = [(placed_nodes(tree, marked)[-1], "", "")]
    while stack:
        node, branch, indent = stack.pop()
        star = "*" if node.is_marked else ""
        lines.append(f"{branch}{node.label}{star} {node.word or ''}".rstrip())
        for child in reversed(node.children):
            if child is node.children[-1]:
                stack.append((child, f"{indent}└─ ", f"{indent}   "))
            else:
                stack.append((child, f"{indent}├─ ", f"{indent}│  "))
    return "\n".join(lines)


def svg_tree(tree: Tree, marked: Collection[int] = (), kind: str = WRONG) -> str:
    """Draws a tree as SVG without external scripts, fonts or styles.

    The picture has its own background, light or dark according to the reader's system.

    Args:
        tree: the tree.
        marked: the numbers of the constituents to colour, in the order of Tree.fold.
        kind: the reason for colouring them: WRONG, or MISSED, which is also dashed.
    """
    nodes = placed_nodes(tree, marked)
    root = nodes[-1]
    parts = []
    for node in nodes:
        drawn = _svg_node(node, root)
        if node.is_marked:
            drawn = _svg_mark(node, root, kind, drawn)
        parts.append(drawn)
    width = root.width + 2 * MARGIN
    height = _baseline(root, root) + ROW * root.height + LINE + MARGIN
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    sentence = escaped(" ".join(tree.words()))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="tree" {size} role="img" '
        f'aria-label="{sentence}"><style>{STYLE}</style>'
        f'<rect class="ground" width="100%" height="100%" rx="8"/>{"".join(parts)}</svg>\n'
    )


def _baseline(node: Node, root: Node) -> float:
    """Returns the y of a node's label; words are at the bottom, and the root at the top."""
    return MARGIN + ABOVE + ROW * (root.height - node.height)


def _svg_node(node: Node, root: Node) -> str:
    """Draws a label with its word, or with the lines to its children."""
    x = MARGIN + node.center
    y = _baseline(node, root)
    if node.word is not None:
        return _svg_text("tag", x, y, node.label) + _svg_text("word", x, y + LINE, node.word)
    bar = y + (ROW - ABOVE + BELOW) / 2
    lines = ""
    for child in node.children:
        column = MARGIN + child.center
        # The ends of the bar are rounded; a line from its middle is not.
        is_left_end = child is node.children[0]
        is_right_end = child is node.children[-1]
        corner = CORNER * (is_right_end - is_left_end)
        lines += f"M{x:.1f} {y + BELOW}V{bar}H{column - corner:.1f}"
        lines += f"q{corner} 0 {corner} {abs(corner)}V{_baseline(child, root) - ABOVE}"
    path = f'<path d="{lines}"/>' if lines else ""
    return path + _svg_text("label", x, y, node.label)


def _svg_mark(node: Node, root: Node, kind: str, drawn: str) -> str:
    """Puts the drawing of a node into a coloured group, with a box and a title."""
    half = text_width(node.label) / 2 + 5
    x = MARGIN + node.center - half
    y = _baseline(node, root) - ABOVE
    box = f'x="{x:.1f}" y="{y}" width="{2 * half:.1f}" height="{ABOVE + 5}"'
    title = f"<title>{escaped(node.label)}: {MEANING[kind]}</title>"
    return f'<g class="{kind}">{title}<rect class="mark" {box} rx="4"/>{drawn}</g>'


def _svg_text(kind: str, x: float, y: float, text: str) -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{escaped(text)}</text>'


def tree_page(
    predicted: Sequence[Tree],
    gold: Sequence[Tree] = (),
    first: int = 1,
    scores: Mapping[str, Any] | None = None,
) -> str:
    """Draws trees in a self-contained page, each folded below its sentence.

    Args:
        predicted: the trees.
        gold: as many trees, drawn beside the predicted ones, with differing brackets marked; or
            none.
        first: the number of the first tree.
        scores: with `gold`, the scores to show at the top, from score_trees: for these trees, or
            for the larger set from which they were taken.
    """
    folded = []
    for index, tree in enumerate(predicted):
        note = ""
        figures = _figure(svg_tree(tree))
        if gold:
            note, figures = _comparison(tree, gold[index])
        sentence = escaped(" ".join(tree.words()))
        is_open = " open" if index == 0 else ""
        folded.append(
            f"<details{is_open}>"
            f"<summary><b>{first + index}</b>{sentence} <i>{escaped(note)}</i></summary>"
            f'<div class="pair">{figures}</div></details>\n'
        )
    head = _page_head(scores) if gold else ""
    return (
        '<!DOCTYPE html>\n<html lang="en"><meta charset="utf-8"><title>Trees</title>\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<style>{PAGE_STYLE}</style>\n<h1>Trees</h1>{head}\n{''.join(folded)}</html>\n"
    )


def _page_head(scores: Mapping[str, Any]) -> str:
    """Returns the scores of all trees, and the meaning of the colours."""
    facts = ", ".join(f"{name} {scores[name]:.2f}" for name in ("f1", "precision", "recall"))
    legend = [f'<b class="{kind}">NP</b> {meaning}' for kind, meaning in MEANING.items()]
    return (
        f"<p>Trees compared: {scores['sentences']}. {facts.capitalize()}.</p>"
        f'<p class="tree">{" &nbsp; ".join(legend)}</p>'
    )


def _comparison(predicted: Tree, gold: Tree) -> tuple[str, str]:
    """Returns a note on the two trees of a sentence, and the figures of both."""
    score = score_sentence(gold, predicted)
    if score.error:
        note = score.error
    elif score.skipped:
        note = "no words"
    else:
        note = f"F1 {summary([score])['f1']:.2f}"
    figures = _figure(svg_tree(predicted, score.wrong), "predicted")
    figures += _figure(svg_tree(gold, score.missed, MISSED), "gold")
    return note, figures


def _figure(svg: str, caption: str = "") -> str:
    return f"<figure><figcaption>{caption}</figcaption><div>{svg}</div></figure>"
