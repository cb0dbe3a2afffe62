"""Line charts as SVG files, drawn with matplotlib (the extra "figures")."""

import io
import math
import re
import sys
from pathlib import Path
from typing import NamedTuple

try:
    import matplotlib
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
except ImportError:
    sys.exit("error: charts need matplotlib: pip install matplotlib")

PANEL = (4.6, 3.3)  # inches
INK, GRID, PAPER = "#24292f", "#d0d7de", "#ffffff"
DARK = {INK: "#e6edf3", GRID: "#3d444d", PAPER: "#161b22"}  # for readers in dark mode
STYLE = {
    "svg.fonttype": "none",  # text stays text, not outlines
    "svg.hashsalt": "keras-transformer",  # makes the files reproducible
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "sans-serif"],
    "axes.grid": True,
    "axes.titlesize": "medium",
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "legend.fontsize": "small",
    "legend.frameon": False,
    "axes.spines.left": False,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.spines.bottom": False,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "text.color": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "figure.facecolor": PAPER,
    "axes.facecolor": PAPER,
    "grid.color": GRID,
}


class Line(NamedTuple):
    """One series in a chart: measured points, or a dashed line for the theory."""

    name: str  # in the legend; "" leaves it out
    points: list[tuple[float, float]]
    colour: int = 0  # index among matplotlib's ten default colours
    dashed: bool = False


class Panel(NamedTuple):
    """One chart. Its logarithmic x axis has ticks at the measured points."""

    title: str
    x_label: str
    y_label: str
    lines: list[Line]
    log_y: bool = True


def draw(path: Path, panels: list[Panel]) -> None:
    """Writes the panels, two per row, to one SVG file for light and dark pages."""
    columns = min(2, len(panels))
    rows = math.ceil(len(panels) / columns)
    with matplotlib.rc_context(STYLE):
        figure = Figure((PANEL[0] * columns, PANEL[1] * rows), layout="constrained")
        places = figure.subplots(rows, columns, squeeze=False).flat
        for axes, panel in zip(places, panels, strict=False):
            _draw_panel(axes, panel)
        file = io.StringIO()
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    rules = "".join(
        f'[style*="{name}: {light}"] {{ {name}: {dark} !important }}\n'
        for light, dark in DARK.items()
        for name in ("fill", "stroke")
    )
    style = f"<style>@media (prefers-color-scheme: dark) {{\n{rules}}}</style>\n <defs>"
    # Two decimals are enough for coordinates; numbers in text, which end at a "<", are kept.
    svg = re.sub(r"(\.\d\d)\d+(?![\d<])", r"\1", file.getvalue())
    path.write_text(re.sub(r"\s*\n\s*", "\n", svg).replace("<defs>", style, 1), encoding="utf-8")


def _draw_panel(axes, panel: Panel) -> None:
    measured = [line for line in panel.lines if not line.dashed]
    axes.set(title=panel.title, xlabel=panel.x_label, ylabel=panel.y_label)
    axes.set_xscale("log")
    axes.set_xticks(sorted({x for line in measured for x, _ in line.points}))
    if panel.log_y:
        y = [y for line in measured for _, y in line.points]
        if max(y) < 50 * min(y):
            axes.set_yscale("log", base=2)
            axes.yaxis.set_major_locator(LogLocator(2, (1, 1.5)))
        else:
            axes.set_yscale("log", base=10)
            axes.yaxis.set_major_locator(LogLocator(10))
    for line in measured:
        _plot(axes, line, marker="o", ms=4)
    # Only the measured lines determine the range of the axes.
    axes.set(xlim=(axes.get_xlim()[0], None), ylim=(axes.get_ylim()[0] if panel.log_y else 0, None))
    for line in panel.lines:
        if line.dashed:
            _plot(axes, line, ls="--", lw=1)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.legend(ncols=2, loc="upper left", bbox_to_anchor=(0, -0.2), borderaxespad=0)


def _plot(axes, line: Line, **look) -> None:
    x, y = zip(*line.points, strict=True)
    axes.plot(x, y, color=f"C{line.colour}", label=line.name or None, **look)
