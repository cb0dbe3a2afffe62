import itertools
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def charts(monkeypatch, request):
    monkeypatch.syspath_prepend(request.config.rootpath / "benchmarks")
    import charts

    return charts


@pytest.fixture
def drawn(charts, tmp_path):
    """Draws panels and returns the text of the file."""

    def draw(*panels):
        charts.draw(tmp_path / "chart.svg", list(panels))
        return (tmp_path / "chart.svg").read_text(encoding="utf-8")

    return draw


def marks(svg):
    """The places of the measured points, without the marks in the legend."""
    tree = ElementTree.fromstring(svg)
    uses = [use for group in tree.iter(SVG + "g") for use in group.findall(SVG + "use")]
    in_legend = {
        use
        for group in tree.iter(SVG + "g")
        if (group.get("id") or "").startswith("legend")
        for use in group.iter(SVG + "use")
    }
    return [(float(use.get("x")), float(use.get("y"))) for use in uses if use not in in_legend]


def test_powers_lie_on_a_line(charts, drawn):
    line = charts.Line("x < y & z", [(2**n, 8**n) for n in range(5)])
    svg = drawn(charts.Panel("title", "n", "time", [line]))
    places = marks(svg)
    steps = [(b[0] - a[0], b[1] - a[1]) for a, b in itertools.pairwise(places)]
    assert len(steps) == 4
    np.testing.assert_allclose(steps, [steps[0]] * 4, atol=0.03)
    assert steps[0][0] > 0 > steps[0][1]
    texts = [text.text for text in ElementTree.fromstring(svg).iter(SVG + "text")]
    assert {"title", "n", "time", "x < y & z", "1", "2", "4", "8", "16"} <= set(texts)


def test_small_values_keep_their_digits(charts, drawn):
    line = charts.Line("median", [(1, 0.001), (2, 1.0)])
    assert ">0.001</text>" in drawn(charts.Panel("title", "n", "norm", [line]))


def test_theory_does_not_stretch_the_range(charts, drawn):
    measured = charts.Line("measured", [(1, 1), (10, 100)])
    theory = charts.Line("", [(1, 1e-9), (10, 100)], dashed=True)
    panel = charts.Panel("title", "n", "time", [measured])
    assert marks(drawn(panel)) == marks(drawn(panel._replace(lines=[theory, measured])))


def test_a_linear_axis_begins_at_0_and_colours_follow_the_reader(charts, drawn):
    line = charts.Line("ours", [(10, 10), (20, 20), (40, 40)])
    panel = charts.Panel("title", "n", "memory", [line], log_y=False)
    svg = drawn(panel, panel, panel)
    (x1, y1), (x2, y2), (x4, y4) = marks(svg)[:3]
    assert x4 - x2 == pytest.approx(x2 - x1, abs=0.03)
    assert y4 - y2 == pytest.approx(2 * (y2 - y1), abs=0.03)
    assert svg.count(">0</text>") == 3
    assert "prefers-color-scheme: dark" in svg
    assert svg == drawn(panel, panel, panel)
    assert "date" not in svg
