"""Line charts as SVG text: panels on a card of its own colours, for light and for dark readers."""

import math
from html import escape
from typing import NamedTuple

WIDTH, HEIGHT = 440, 304  # pixels of a panel without its legend
LEFT, RIGHT, TOP, BOTTOM = 64, 424, 40, 252  # of the plot in it
COLOURS = ("#2878c8", "#e0662a", "#1f9e77", "#b065c8", "#c99a1c", "#d84a7b", "#4fa8c8", "#808890")
STYLE = """
text { font: 12px system-ui, sans-serif; fill: #24292f } .title { font-weight: 600 }
.small { font-size: 11px } .card { fill: #ffffff } .grid { stroke: #d0d7de; fill: none }
.line { fill: none; stroke-width: 2 } .dashed { stroke-dasharray: 4 4; stroke-width: 1.4 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .card { fill: #161b22 } .grid { stroke: #3d444d }
}"""


class Line(NamedTuple):
    """A series: measured, with marks, or dashed, for what theory says."""

    name: str  # in the legend; none where empty
    points: list[tuple[float, float]]
    colour: int = 0  # place in COLOURS
    dashed: bool = False


class Axis(NamedTuple):
    label: str
    log: bool = True


def page(panels: list[str], legend_rows: int = 4, columns: int = 2) -> str:
    """Sets panels side by side, legends of `legend_rows` x 2 lines under them: a whole SVG file."""
    step = HEIGHT + 17 * legend_rows
    width, height = WIDTH * min(columns, len(panels)), step * math.ceil(len(panels) / columns)
    placed = [
        f'<g transform="translate({WIDTH * (n % columns)} {step * (n // columns)})">{panel}</g>'
        for n, panel in enumerate(panels)
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}"><style>{STYLE}</style><clipPath id="plot"><path d="M{LEFT} {TOP}H'
        f'{RIGHT}V{BOTTOM}H{LEFT}z"/></clipPath><rect class="card" width="100%" height="100%" '
        f'rx="8"/>{"".join(placed)}</svg>\n'
    )


def panel(title: str, x_axis: Axis, y_axis: Axis, lines: list[Line]) -> str:
    """Draws one chart. Its range is that of the measured points; dashed lines are cut there."""
    measured = [point for line in lines if not line.dashed for point in line.points]
    x_of = _Scale([x for x, _ in measured], x_axis.log, LEFT, RIGHT, 0.02)
    y_of = _Scale([y for _, y in measured], y_axis.log, BOTTOM, TOP, 0.06)
    parts = [f'<text class="title" x="{LEFT}" y="24">{escape(title)}</text>']
    for tick, at in _ticks(x_of):
        parts.append(f'<path class="grid" d="M{at:.1f} {TOP}V{BOTTOM}"/>')
        parts.append(f'<text class="small" x="{at:.1f}" y="{BOTTOM + 16}" text-anchor="middle">')
        parts.append(f"{tick:g}</text>")
    for tick, at in _ticks(y_of):
        parts.append(f'<path class="grid" d="M{LEFT} {at:.1f}H{RIGHT}"/>')
        parts.append(f'<text class="small" x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">')
        parts.append(f"{tick:g}</text>")
    middle = (LEFT + RIGHT) / 2
    parts.append(
        f'<text x="{middle}" y="{BOTTOM + 34}" text-anchor="middle">{escape(x_axis.label)}'
    )
    parts.append(f'</text><text transform="translate(14 {(TOP + BOTTOM) / 2}) rotate(-90)" ')
    parts.append(f'text-anchor="middle">{escape(y_axis.label)}</text>')
    parts += [_draw(line, x_of, y_of) for line in lines]
    named = [line for line in lines if line.name]
    for n, line in enumerate(named):
        x, y = LEFT + 180 * (n % 2), BOTTOM + 56 + 17 * (n // 2)
        dashed = " dashed" if line.dashed else ""
        parts.append(
            f'<path class="line{dashed}" stroke="{COLOURS[line.colour]}" d="M{x} {y}h18"/>'
        )
        parts.append(f'<text class="small" x="{x + 24}" y="{y + 4}">{escape(line.name)}</text>')
    return "".join(parts)


def _draw(line: Line, x_of, y_of) -> str:
    places = [(x_of(x), y_of(y)) for x, y in line.points]
    path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    colour, dashed = COLOURS[line.colour], " dashed" if line.dashed else ""
    marks = [] if line.dashed else [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3"/>' for x, y in places]
    return (
        f'<path class="line{dashed}" clip-path="url(#plot)" stroke="{colour}" d="{path}"/>'
        f'<g fill="{colour}">{"".join(marks)}</g>'
    )


class _Scale:
    """Maps values to pixels, with some room around them."""

    def __init__(self, values, log, start, end, room):
        self.log = log
        low, high = (math.log10(value) if log else value for value in (min(values), max(values)))
        if not log:
            low = min(low, 0)  # lengths of bars and lines are compared from 0
        extra = room * (high - low) or 0.5
        self.low, self.high = low - extra * (log or low < 0), high + extra
        self.start, self.end = start, end

    def __call__(self, value):
        # What cannot be shown on a logarithmic axis is shown at its start.
        at = (math.log10(value) if value > 0 else self.low) if self.log else value
        return self.start + (at - self.low) / (self.high - self.low) * (self.end - self.start)


def _ticks(scale):
    """Round values with their places: powers of 2 or 10 on a logarithmic axis, else 1, 2, 5."""
    low, high = scale.low, scale.high
    if scale.log:
        step = math.log10(2) if high - low < 2.4 else 1
        if step < 1 and (high - low) / step > 7:
            step *= 2
        values = [10 ** (step * n) for n in range(math.ceil(low / step), int(high // step) + 1)]
    else:
        rough = (high - low) / 5
        size = 10 ** math.floor(math.log10(rough))
        step = next(size * m for m in (1, 2, 5, 10) if size * m >= rough)
        values = [step * n for n in range(math.ceil(low / step), int(high // step) + 1)]
    return [
        (float(f"{value:.3g}") if value < 1 else round(value, 2), scale(value)) for value in values
    ]
