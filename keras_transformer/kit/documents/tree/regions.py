"""Splits a segment's tree into sentences and the nodes between them.

    <b>A dog. It</b> sleeps.        between  sentence      between  sentence        between
                                    <b>      A dog.        " "      It</b> sleeps.

An element belongs to a sentence if all of it does; otherwise each tag stays in its region, so an
element may only begin or only end in a sentence. Marks at a sentence's edges are outside it.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from keras_transformer.core.vocabulary.spans import Span
from keras_transformer.kit.documents.tree.segments import Element, Mark, Node


def regions(nodes: Sequence[Node], spans: Sequence[Span]) -> list[list[Node]]:
    """Splits nodes into regions.

    Args:
        nodes: a segment's nodes.
        spans: the spans of its sentences in its text. A mark that overlaps a span is in it.

    Returns:
        The nodes before the first sentence, its own nodes, the nodes between it and the next
        sentence, and so on, up to the nodes after the last sentence.
    """
    cutter = _Cutter([place for span in spans for place in span])
    cutter.measure(nodes)
    cutter.add(nodes, 0)
    return cutter.regions


class _Cutter:
    def __init__(self, edges: Sequence[int]):
        # The ends of the regions: the beginning of the first sentence, its end, ...
        self.ends = [*edges, math.inf]
        self.regions: list[list[Node]] = [[] for _ in self.ends]
        self._innermost = list(self.regions)  # where each region's next node is added
        self._lengths: dict[Node, int] = {}  # of the elements' texts

    def measure(self, nodes: Sequence[Node]) -> int:
        """Notes the lengths of the elements in nodes; returns the length of all their text."""
        for node in nodes:
            if isinstance(node, Element):
                self._lengths[node] = self.measure(node.children)
        return sum(map(self._length, nodes))

    def _length(self, node: Node) -> int:
        if isinstance(node, Element):
            return self._lengths[node]
        return len(node if isinstance(node, str) else node.text)

    def add(self, nodes: Sequence[Node], start: int) -> int:
        """Adds nodes that begin at a place in the text; returns where they end."""
        for node in nodes:
            end = start + self._length(node)
            if isinstance(node, str):
                self._add_text(node, start)
            elif isinstance(node, Mark):
                region = self._region(start, end)
                if start < end and region % 2 == 0:  # the next sentence may begin in it
                    region = bisect_right(self.ends, end - 1)
                self._innermost[region].append(node)
            elif end <= self.ends[self._region(start, end)]:
                self._innermost[self._region(start, end)].append(node)
            else:
                region = self._region(start, start)
                element = Element(node.opening, None, [])
                self._innermost[region].append(element)
                self._innermost[region] = element.children
                self.add(node.children, start)
                region = self._region(end, end)
                found = self.regions[region]
                found[:] = [Element(None, node.closing, found[:])]
                self._innermost[region] = found
            start = end
        return start

    def _add_text(self, text: str, start: int) -> None:
        place, end = start, start + len(text)
        while place < end:
            region = self._region(place, end)
            until = min(end, self.ends[region])
            self._innermost[region].append(text[place - start : until - start])
            place = until

    def _region(self, start: int, end: int) -> int:
        """Returns the region of a node by where it begins and ends."""
        if start < end:
            return bisect_right(self.ends, start)
        region = bisect_left(self.ends, start)
        is_at_end = region % 2 and self.ends[region] == start
        return region + 1 if is_at_end else region
