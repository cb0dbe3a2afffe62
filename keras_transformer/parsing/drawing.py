"""Pictures of trees, as lines of text and as SVG.

Words and their tags stand in one line at the bottom, and a constituent stands one level above the
highest of its children. A bar runs below each parent, and a line drops from the bar to each child,
so that no line crosses a label. Nothing here recurses, as trees can be deeper than Python's stack.
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
ABOVE, BELOW = 14, 6  # pixels from a label's baseline to the lines above and below it
WRONG, MISSED = "wrong", "missed"  # brackets of a predicted tree, and of a gold tree
MEANING = {WRONG: "not in the gold tree", MISSED: "not in the predicted tree"}

COLOURS = {  # on a light page and on a dark one
    "ground": ("#fff", "#171b21"),
    "ink": ("#1b2230", "#e7eaef"),
    "soft": ("#687385", "#98a3b1"),
    "label": ("#1f55a5", "#8db8f7"),
    "line": ("#9aa5b4", "#5a6573"),
    "red": ("#b9203a", "#ff8d99"),
    "red_ground": ("#fde7ea", "#4a1d26"),
    "amber": ("#8a5200", "#f0b955"),
    "amber_ground": ("#fceccb", "#43310e"),
}


def in_both_colours(rules: str) -> str:
    """Fills CSS rules with the light colours, and again with the dark ones for dark systems.

    CSS variables would be shorter, but programs other than browsers do not know them.
    """
    light, dark = (
        rules.format(**{name: pair[theme] for name, pair in COLOURS.items()}) for theme in (0, 1)
    )
    return f"{light}@media (prefers-color-scheme: dark) {{{dark}}}\n"


STYLE = f"""
.tree text {{ font: {FONT_SIZE}px Helvetica, Arial, sans-serif; text-anchor: middle }}
.tree text.tag {{ font-size: 12px }} .tree text.label {{ font-weight: bold }}
.tree path {{ fill: none; stroke-width: 1.4 }} .tree .missed path {{ stroke-dasharray: 5 3 }}
""" + in_both_colours("""
.tree .ground {{ fill: {ground} }}
.tree text {{ fill: {ink} }} .tree .tag {{ fill: {soft} }} .tree .label {{ fill: {label} }}
.tree path {{ stroke: {line} }}
.tree .wrong rect {{ fill: {red_ground} }} .tree .missed rect {{ fill: {amber_ground} }}
.tree .wrong path {{ stroke: {red} }} .tree .missed path {{ stroke: {amber} }}
.tree .wrong text {{ fill: {red} }} .tree .missed text {{ fill: {amber} }}
""")


@dataclass(slots=True, eq=False)
class Node:
    """A node with its place. Units are columns of text or pixels."""

    label: str
    word: str | None
    children: list["Node"] = field(default_factory=list)
    height: int = 0  # levels above the words
    left: float = 0  # of the strip that this node and all below it have to themselves
    width: float = 0  # of this strip
    center: float = 0  # of its label


def placed_nodes(tree: Tree, width: Callable[[str], float], gap: float, marks=()) -> list[Node]:
    """Gives each node of a tree its place, from x = 0 on.

    Args:
        tree: any tree. A constituent may be empty.
        width: gives the width of a label or a word.
        gap: the space between two words.
        marks: the numbers, in preorder, of nodes that get a * after their label.

    Returns:
        The nodes in preorder.
    """
    nodes: list[Node] = []
    stack: list[tuple[Tree, list[Node]]] = [(tree, [])]
    while stack:
        subtree, siblings = stack.pop()
        label = (subtree.label or TOP) + "*" * (len(nodes) in marks)
        siblings.append(node := Node(label, subtree.word))
        nodes.append(node)
        stack.extend((child, node.children) for child in reversed(subtree.children))
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
    return nodes


def text_tree(tree: Tree, marked: Collection[int] = ()) -> str:
    """Draws a tree with box-drawing characters, as wide as the sentence is.

    Args:
        tree: any tree.
        marked: the numbers, in preorder, of nodes that get a * after their label.
    """
    nodes = placed_nodes(tree, columns, TEXT_GAP, marked)
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
    """The columns of a text in a terminal: two for wide characters, none for combining ones."""
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
    tree: Tree, marked: Collection[int] = (), kind: str = WRONG, style: str = STYLE
) -> str:
    """Draws a tree as SVG without scripts, fonts or styles from elsewhere.

    It has a ground of its own, light or dark as the reader's system is.

    Args:
        tree: any tree.
        marked: the numbers, in preorder, of nodes to mark in colour, and by dashes.
        kind: why they are marked: WRONG or MISSED.
        style: its style sheet.
    """
    nodes = placed_nodes(tree, text_width, GAP)
    top, baseline = nodes[0].height, MARGIN + ABOVE  # of the root's label
    parts = []
    for number, node in enumerate(nodes):
        x, y = MARGIN + node.center, baseline + ROW * (top - node.height)
        drawn = _lines(node, x, y, baseline, top)
        if node.word is not None:
            drawn += _text("tag", x, y, node.label) + _text("word", x, y + LINE, node.word)
        elif number in marked:
            half = text_width(node.label) / 2 + 5
            box = f'x="{x - half:.1f}" y="{y - ABOVE}" width="{2 * half:.1f}" height="{ABOVE + 5}"'
            title = f"<title>{escape(node.label)}: {MEANING[kind]}</title>"
            drawn += f'<rect {box} rx="4"/>' + _text("label", x, y, node.label)
            drawn = f'<g class="{kind}">{title}{drawn}</g>'
        else:
            drawn += _text("label", x, y, node.label)
        parts.append(drawn)
    width, height = nodes[0].width + 2 * MARGIN, baseline + ROW * top + LINE + MARGIN
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="tree" {size} role="img" '
        f'aria-label="{escape(" ".join(tree.words()))}"><style>{style}</style>'
        f'<rect class="ground" width="100%" height="100%" rx="8"/>{"".join(parts)}</svg>\n'
    )


def text_width(text: str) -> float:
    """Estimates the pixels of a text in a sans-serif font, too many rather than too few."""
    return FONT_SIZE * sum(_columns(char) * (0.75 if char.isupper() else 0.58) for char in text)


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
