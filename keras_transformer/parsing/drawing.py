"""Pictures of trees, as lines of text and as SVG.

In both the words and their tags stand in one line at the bottom, and a constituent stands
one level above the highest of its children. A child is reached by a bar below its parent and a drop
from the bar, so that no line crosses a label.
"""

import unicodedata
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from html import escape

from keras_transformer.parsing.trees import TOP, Tree

TEXT_GAP = 2  # columns between words
GAP, MARGIN = 14, 16  # pixels between words, and around a picture
FONT_SIZE, ROW, CORNER = 15, 44, 7  # pixels; a row holds a level's labels and the bars below
LINE = 20  # pixels from a tag's baseline to its word's
ABOVE, BELOW = 14, 6  # pixels from a label's baseline to the lines that meet it
# Widths in em, a little above those of the usual sans-serif faces.
NARROW, OTHER, UPPER, WIDE, SQUARE = 0.34, 0.58, 0.72, 0.92, 1.0
WRONG, MISSED = "wrong", "missed"  # brackets of a predicted tree, and of a gold tree
SAID = {WRONG: "not in the gold tree", MISSED: "not in the predicted tree"}

# Colours stand in each rule: programs other than browsers do not know CSS variables.
_RULES = """
.tree .ground {{ fill: {ground} }}
.tree text {{ fill: {ink} }} .tree .tag {{ fill: {soft} }} .tree .label {{ fill: {label} }}
.tree path {{ stroke: {line} }}
.tree .wrong rect {{ fill: {red_ground} }} .tree .missed rect {{ fill: {amber_ground} }}
.tree .wrong path {{ stroke: {red} }} .tree .missed path {{ stroke: {amber} }}
.tree .wrong text {{ fill: {red} }} .tree .missed text {{ fill: {amber} }}
"""
LIGHT = {
    "ground": "#fff",
    "ink": "#1b2230",
    "soft": "#687385",
    "label": "#1f55a5",
    "line": "#9aa5b4",
    "red": "#b9203a",
    "red_ground": "#fde7ea",
    "amber": "#8a5200",
    "amber_ground": "#fceccb",
}
DARK = {
    "ground": "#171b21",
    "ink": "#e7eaef",
    "soft": "#98a3b1",
    "label": "#8db8f7",
    "line": "#5a6573",
    "red": "#ff8d99",
    "red_ground": "#4a1d26",
    "amber": "#f0b955",
    "amber_ground": "#43310e",
}


def in_both_colors(rules: str) -> str:
    """Fills CSS rules with LIGHT, and once more with DARK for readers whose system is dark."""
    dark = rules.format(**DARK)
    return f"{rules.format(**LIGHT)}@media (prefers-color-scheme: dark) {{{dark}}}\n"


STYLE = f"""
.tree text {{ font: {FONT_SIZE}px Helvetica, Arial, sans-serif; text-anchor: middle }}
.tree text.tag {{ font-size: 12px }} .tree text.label {{ font-weight: bold }}
.tree path {{ fill: none; stroke-width: 1.4 }} .tree .missed path {{ stroke-dasharray: 5 3 }}
""" + in_both_colors(_RULES)


@dataclass(slots=True, eq=False)
class Node:
    """A node with its place. Units are columns of text or pixels."""

    label: str
    word: str | None
    children: list["Node"] = field(default_factory=list)
    height: int = 0  # levels above the words
    left: float = 0  # of the strip that it and all below it have for themselves
    width: float = 0  # of this strip
    center: float = 0  # of its label


def nodes_of(tree: Tree) -> list[Node]:
    """Copies a tree's nodes, in preorder; they have no place yet."""
    nodes: list[Node] = []
    stack: list[tuple[Tree, list[Node]]] = [(tree, [])]
    while stack:
        subtree, siblings = stack.pop()
        node = Node(subtree.label or TOP, subtree.word)
        nodes.append(node)
        siblings.append(node)
        stack.extend((child, node.children) for child in reversed(subtree.children))
    return nodes


def place(nodes: list[Node], width: Callable[[str], float], gap: float) -> None:
    """Places the nodes of a tree, from x = 0 on.

    Args:
        nodes: in preorder. A constituent may be empty.
        width: gives the width of a label or a word.
        gap: what lies between two words.
    """
    for node in reversed(nodes):  # children before parents: `left` is from the parent's strip
        half = (max(width(node.label), width(node.word or "")) + gap) / 2
        if not node.children:
            node.center, node.width = half, 2 * half
            continue
        end = 0.0
        for child in node.children:
            child.left, end = end, end + child.width
        first, last = node.children[0], node.children[-1]
        node.center = (first.left + first.center + last.left + last.center) / 2
        overhang = max(0.0, half - node.center)  # of a label wider than what is below it
        for child in node.children:
            child.left += overhang
        node.center += overhang
        node.width = max(end + overhang, node.center + half)
        node.height = 1 + max(child.height for child in node.children)
    for node in nodes:  # parents before children: `left` becomes absolute
        node.center += node.left
        for child in node.children:
            child.left += node.left


def text_tree(tree: Tree, marked: Collection[int] = ()) -> str:
    """Draws a tree with box-drawing characters, as wide as the sentence is.

    Args:
        tree: any tree.
        marked: the numbers, in preorder, of nodes that get a * after their label.
    """
    nodes = nodes_of(tree)
    for number in marked:
        nodes[number].label += "*"
    place(nodes, columns, TEXT_GAP)
    top = nodes[0].height
    grid = [[" "] * round(nodes[0].width + TEXT_GAP) for _ in range(2 * top + 2)]
    for node in nodes:
        row = 2 * (top - node.height)
        _write(grid[row], node.center, node.label)
        if node.children:
            _connect(grid, row + 1, node, top)
        else:
            _write(grid[row + 1], node.center, node.word or "")
    return "\n".join("".join(row).rstrip() for row in grid)


def columns(text: str) -> int:
    """The columns that a terminal gives a text: two to wide characters, none to combining ones."""
    return sum(map(_columns, text))


def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _write(row: list[str], center: float, text: str) -> None:
    column = int(center - columns(text) / 2)
    for character in text:
        width = _columns(character)
        if width == 0:
            row[column - 1] += character
            continue
        row[column : column + width] = [character] + [""] * (width - 1)
        column += width


def _connect(grid: list[list[str]], row: int, node: Node, top: int) -> None:
    """Draws the bar below a node and the drops from there to its children."""
    places = [int(child.center - 0.5) for child in node.children]
    first, last, parent = places[0], places[-1], int(node.center - 0.5)
    grid[row][first : last + 1] = "─" * (last + 1 - first)
    for child, column in zip(node.children, places, strict=True):
        grid[row][column] = "┬"
        for below in range(row + 1, 2 * (top - child.height)):
            grid[below][column] = "│"
    grid[row][first], grid[row][last] = "┌", "┐"
    grid[row][parent] = "┼" if grid[row][parent] == "┬" else "┴"
    if len(places) == 1:
        grid[row][first] = "│"


def svg_tree(
    tree: Tree,
    marked: Collection[int] = (),
    kind: str = WRONG,
    style: str = STYLE,
) -> str:
    """Draws a tree as SVG that needs nothing else: no script, font or style from elsewhere.

    It has a ground of its own, light or dark as the reader's system is.

    Args:
        tree: any tree.
        marked: the numbers, in preorder, of nodes to mark in colour, and by dashes.
        kind: why they are marked: WRONG or MISSED.
        style: its style sheet.
    """
    nodes, marked = nodes_of(tree), set(marked)
    place(nodes, text_width, GAP)
    width = nodes[0].width + 2 * MARGIN
    baseline = MARGIN + ABOVE  # of the root's label
    top = nodes[0].height
    parts = []
    for number, node in enumerate(nodes):
        x, y = MARGIN + node.center, baseline + ROW * (top - node.height)
        drawn = _lines(node, x, y, baseline, top)
        if node.word is not None:
            drawn += _text("tag", x, y, node.label)
            drawn += _text("word", x, y + LINE, node.word)
        elif number in marked:
            half = text_width(node.label) / 2 + 5
            box = f'x="{x - half:.1f}" y="{y - ABOVE}" width="{2 * half:.1f}" height="{ABOVE + 5}"'
            drawn += f'<rect {box} rx="4"/>' + _text("label", x, y, node.label)
            drawn = (
                f'<g class="{kind}"><title>{escape(node.label)}: {SAID[kind]}</title>{drawn}</g>'
            )
        else:
            drawn += _text("label", x, y, node.label)
        parts.append(drawn)
    height = baseline + ROW * top + LINE + MARGIN
    sentence = escape(" ".join(tree.words()))
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="tree" {size} role="img" '
        f'aria-label="{sentence}"><style>{style}</style>'
        f'<rect class="ground" width="100%" height="100%" rx="8"/>{"".join(parts)}</svg>\n'
    )


def text_width(text: str) -> float:
    """Guesses the pixels that a text takes in a sans-serif face, rather too many than too few."""
    return FONT_SIZE * sum(map(_em, text))


def _em(character: str) -> float:
    if _columns(character) != 1:
        return SQUARE * (_columns(character) == 2)
    if character in "ijlI.,:;'`|!()[]{}ft-r ":
        return NARROW
    if character in "mwMW@%—":
        return WIDE
    return UPPER if character.isupper() else OTHER


def _text(kind: str, x: float, y: float, text: str) -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>'


def _lines(node: Node, x: float, y: float, baseline: float, top: int) -> str:
    """The bar below a node, with round ends, and the drops from there to its children."""
    bar = y + (ROW - ABOVE + BELOW) / 2
    steps = [f"M{x:.1f} {y + BELOW}V{bar}"] if node.children else []
    for child in node.children:
        end, column = baseline + ROW * (top - child.height) - ABOVE, MARGIN + child.center
        if child in (node.children[0], node.children[-1]) and len(node.children) > 1:
            corner = CORNER if column > x else -CORNER
            steps.append(f"M{x:.1f} {bar}H{column - corner:.1f}q{corner} 0 {corner} {CORNER}V{end}")
        else:
            steps.append(f"M{column:.1f} {bar}V{end}")
    return f'<path d="{"".join(steps)}"/>' if steps else ""
