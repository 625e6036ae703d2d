import itertools
import re
from xml.etree import ElementTree

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gtr_turbo.report.charts import MAX_BARS, Frame, Series, line_chart, stacked_bars, ticks


def series(*values: float | None, **more: object) -> Series:
    updates = tuple(range(1, len(values) + 1))
    return Series(name="agent", kind="agent", updates=updates, values=values, **more)  # type: ignore[arg-type]


def test_the_frame_maps_corners_to_corners() -> None:
    frame = Frame(width=400, height=200, x_range=(0, 10), y_range=(0, 1))
    assert (frame.x(0), frame.y(0)) == (46, 170)
    assert (frame.x(10), frame.y(1)) == (390, 10)
    assert (frame.x(5), frame.y(0.5)) == (218, 90)
    assert frame.y(7.0) == 10  # a value outside stays on the edge


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.0, 1.0, [0.0, 0.25, 0.5, 0.75, 1.0]),
        (0.0, 0.93, [0.0, 0.25, 0.5, 0.75, 1.0]),
        (-3.0, 7.0, [-5.0, -2.5, 0.0, 2.5, 5.0, 7.5]),
        (0.0011, 0.0039, [0.001, 0.002, 0.003, 0.004]),
        (1000.0, 3000.0, [1000.0, 1500.0, 2000.0, 2500.0, 3000.0]),
    ],
)
def test_ticks_are_round_and_cover_the_range(
    low: float, high: float, expected: list[float]
) -> None:
    assert ticks(low, high, 4) == expected


def test_a_chart_is_well_formed_and_says_its_ends_in_words() -> None:
    chart = line_chart("Entropy", [series(0.75, 0.5, 0.25)])
    root = ElementTree.fromstring(chart)
    assert root.tag == "svg"
    assert root.get("aria-label") == "Entropy: agent from 0.75 at update 1 to 0.25 at update 3"
    assert len(root.findall(".//circle")) == 3
    assert next(tip.text for tip in root.iter("title")) == "agent, update 1: 0.75"


def test_a_missing_value_breaks_the_line() -> None:
    chart = line_chart("KL", [series(None, 1.0, 2.0, None, 3.0, 4.0)])
    path = ElementTree.fromstring(chart).find(".//path")
    assert path is not None
    assert re.sub(r"[^ML]", "", path.get("d") or "") == "MLML"


def test_intervals_are_drawn_where_they_are_known() -> None:
    chart = line_chart("x", [series(0.5, 0.6, intervals=((0.4, 0.6), None))], y_range=(0.0, 1.0))
    lines = ElementTree.fromstring(chart).findall(".//line[@class='whisker']")
    assert [(line.get("y1"), line.get("y2")) for line in lines] == [("106.0", "74.0")]


def test_a_band_lies_between_the_ends_of_the_intervals() -> None:
    spans = ((0.4, 0.6), None, (0.5, 0.9))
    line = series(0.5, 0.6, 0.7, intervals=spans, is_band=True)
    root = ElementTree.fromstring(line_chart("x", [line], y_range=(0.0, 1.0)))
    band = root.find(".//path[@class='band']")
    assert band is not None
    # Along the upper ends of updates 1 and 3, and back along the lower ones.
    assert band.get("d") == "M46.0 74.0 L390.0 26.0 L390.0 90.0 L46.0 106.0 Z"
    assert root.findall(".//line[@class='whisker']") == []


@pytest.mark.parametrize("lines", [[], [series()], [series(None, None)]])
def test_nothing_to_draw_is_said(lines: list[Series]) -> None:
    assert "no value yet" in line_chart("x", lines)


@given(
    low=st.floats(-1e12, 1e12),
    width=st.floats(0, 1e12),
    count=st.integers(2, 12),
)
@example(low=0.0, width=5.9e-13, count=4)  # the explained variance of a critic's first update
@example(low=0.0, width=5e-324, count=4)
@example(low=1.0, width=1e-15, count=4)
def test_ticks_rise_and_cover_any_range(low: float, width: float, count: int) -> None:
    places = ticks(low, low + width, count)
    assert all(first < second for first, second in itertools.pairwise(places))
    assert 2 <= len(places) <= count + 3
    slack = 1e-9 * (places[-1] - places[0])
    assert places[0] <= low + slack
    assert places[-1] >= low + width - slack


@pytest.mark.parametrize("values", [(0.0,), (5.0,), (5.0, 5.0, 5.0), (-2.0, -2.0), (1e-12, 1e-12)])
def test_constant_and_single_values_have_a_range(values: tuple[float, ...]) -> None:
    assert ElementTree.fromstring(line_chart("x", [series(*values)])).tag == "svg"


def test_many_updates_keep_their_line_and_few_marks() -> None:
    root = ElementTree.fromstring(line_chart("x", [series(*[k / 7 for k in range(5000)])]))
    assert len(root.findall(".//circle")) <= 150
    assert (root.find(".//path").get("d") or "").count("L") == 4999  # type: ignore[union-attr]


def test_bars_stack_to_their_sum() -> None:
    root = ElementTree.fromstring(stacked_bars("Time", ("act", "improve"), [[3.0, 1.0]]))
    low, high = (
        (float(r.get("y") or 0), float(r.get("height") or 0)) for r in root.findall(".//rect")
    )
    # 0 … 4 seconds on 160 units: 40 units a second, upwards from 170.
    assert low == (50.0, 120.0)
    assert high == (10.0, 40.0)
    assert root.get("aria-label") == "Time: act 75%, improve 25%"


def test_many_updates_are_averaged_into_few_bars() -> None:
    root = ElementTree.fromstring(stacked_bars("Time", ("act",), [[2.0]] * 1000))
    bars = root.findall(".//rect")
    assert 100 <= len(bars) <= MAX_BARS
    assert len({bar.get("height") for bar in bars}) == 1


def test_no_update_has_no_bars() -> None:
    assert "no value yet" in stacked_bars("Time", ("act",), [])
