import itertools
import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest


@pytest.fixture
def svg_chart(monkeypatch, request):
    monkeypatch.syspath_prepend(request.config.rootpath / "benchmarks")
    import svg_chart

    return svg_chart


def marks(svg):
    tree = ElementTree.fromstring(svg)  # well-formed, or this raises
    circles = tree.iter("{http://www.w3.org/2000/svg}circle")
    return [(float(circle.get("cx")), float(circle.get("cy"))) for circle in circles]


def test_powers_lie_on_a_line(svg_chart):
    line = svg_chart.Line("x < y & z", [(2**n, 8**n) for n in range(5)])
    panel = svg_chart.panel("title", svg_chart.Axis("n"), svg_chart.Axis("time"), [line])
    places = marks(svg_chart.page([panel]))
    steps = [(b[0] - a[0], b[1] - a[1]) for a, b in itertools.pairwise(places)]
    assert len(steps) == 4
    np.testing.assert_allclose(steps, [steps[0]] * 4, atol=0.25)  # of a tenth of a pixel each
    assert steps[0][0] > 0 > steps[0][1]


def test_ticks_are_round_and_where_their_values_are(svg_chart):
    line = svg_chart.Line("", [(0, 0), (40, 30), (20, 10)])
    axes = (svg_chart.Axis("n", log=False), svg_chart.Axis("BLEU", log=False))
    svg = svg_chart.page([svg_chart.panel("title", *axes, [line])])
    places = marks(svg)
    ticks = re.findall(r'<text class="small" x="([\d.]+)" y="268" .*?>([\d.]+)</text>', svg)
    assert [value for _, value in ticks] == ["0", "10", "20", "30", "40"]
    assert abs(float(ticks[2][0]) - places[2][0]) < 0.1  # 20
    assert places[2][1] == pytest.approx(places[0][1] * 2 / 3 + places[1][1] / 3, abs=0.2)


def test_theory_does_not_stretch_the_range(svg_chart):
    measured = svg_chart.Line("measured", [(1, 1), (10, 100)])
    theory = svg_chart.Line("theory", [(1, 1e-9), (10, 100)], dashed=True)
    axes = (svg_chart.Axis("n"), svg_chart.Axis("time"))
    alone = svg_chart.panel("title", *axes, [measured])
    both = svg_chart.panel("title", *axes, [measured, theory])
    assert marks(svg_chart.page([alone])) == marks(svg_chart.page([both]))
