"""Line and bar charts as inline SVG: no script, no font and nothing else from outside."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import final

from gtr_turbo.report.markup import Html, element

Number = float | int
"""The shape checks of the tests tell the two apart; JSON does not."""
Interval = tuple[Number, Number]
Format = Callable[[Number], str]

MAX_MARKS = 150
"""More marks than this hide the line they stand on."""
MAX_BARS = 120
"""More bars than this are thinner than a pixel on a phone; updates are then averaged."""
BAR_GAP = 0.15
"""Share of a bar's room that stays empty."""
TICK_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
SMALLEST_STEP, RELATIVE_STEP = 1e-300, 1e-12
"""Ticks are not closer than this, so that neighbours are different numbers."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One line of a chart."""

    name: str
    kind: str
    """Style class: `agent`, `teacher`, `training`, `initial`, `second`, or `arm-0` to `arm-7`, with
    `dashed` beside it where the eight colours come round again."""
    updates: tuple[int, ...]
    values: tuple[Number | None, ...]
    """One per update; None breaks the line."""
    intervals: tuple[Interval | None, ...] = ()
    """95 % interval of each value; empty when there are none."""
    is_band: bool = False
    """Whether the intervals are drawn as one band in place of whiskers."""

    @property
    def known(self) -> list[tuple[int, Number]]:
        """The points that have a value."""
        pairs = zip(self.updates, self.values, strict=True)
        return [(update, value) for update, value in pairs if value is not None]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """Where data coordinates lie in the picture, in SVG units."""

    width: int
    height: int
    x_range: Interval
    y_range: Interval
    left: int = 46
    right: int = 10
    top: int = 10
    bottom: int = 30

    def x(self, value: Number) -> float:
        """Return the horizontal place of an update."""
        low, high = self.x_range
        return round(self.left + (value - low) / (high - low) * self.inner_width, 1)

    def y(self, value: Number) -> float:
        """Return the vertical place of a value, kept inside the frame."""
        low, high = self.y_range
        share = min(max((value - low) / (high - low), 0.0), 1.0)
        return round(self.height - self.bottom - share * self.inner_height, 1)

    @property
    def inner_width(self) -> int:
        """Width of the plot without its margins."""
        return self.width - self.left - self.right

    @property
    def inner_height(self) -> int:
        """Height of the plot without its margins."""
        return self.height - self.top - self.bottom


def percent(value: Number) -> str:
    """Return a share as whole per cent.

    >>> percent(0.425)
    '42%'
    """
    return f"{value:.0%}"


def short(value: Number) -> str:
    """Return a number with three digits that matter.

    >>> short(0.01234), short(1234.5), short(0.0)
    ('0.0123', '1,234', '0')
    """
    large = 1000
    return f"{value:,.0f}" if abs(value) >= large else f"{value:.3g}"


def ticks(low: Number, high: Number, count: int) -> list[float]:
    """Return about `count` round numbers that cover [low, high], at least two.

    >>> ticks(0.0, 0.93, 4)
    [0.0, 0.25, 0.5, 0.75, 1.0]
    >>> ticks(0.0, 9.3e-14, 4)
    [0.0, 2.5e-14, 5e-14, 7.5e-14, 1e-13]
    """
    finest = max(abs(low), abs(high)) * RELATIVE_STEP
    rough = max((high - low) / count, finest, SMALLEST_STEP)
    exponent = math.floor(math.log10(rough))
    power = 10.0**exponent
    step = next(power * factor for factor in TICK_STEPS if power * factor >= rough * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    last = max(last, first + 1)
    return [round(number * step, 12 - exponent) for number in range(first, last + 1)]


def line_chart(
    title: str,
    series: Sequence[Series],
    *,
    form: Format = short,
    y_range: Interval | None = None,
    size: tuple[int, int] = (400, 200),
) -> Html:
    """Return the lines over the updates; an empty chart says so.

    `y_range` is fixed for shares; otherwise the values decide, with zero where it is near.
    """
    known = [point for line in series for point in line.known]
    if not known:
        return element("p", "no value yet", class_="empty")
    y_ticks = ticks(*(_value_range(series) if y_range is None else y_range), 4)
    updates = [update for update, _ in known]
    low, high = min(updates), max(updates)
    frame = Frame(
        width=size[0],
        height=size[1],
        x_range=(low, high) if high > low else (low - 1, low + 1),
        y_range=(y_ticks[0], y_ticks[-1]),
    )
    return element(
        "svg",
        _axes(frame, y_ticks, form),
        *(_line(frame, line, form) for line in series),
        viewBox=f"0 0 {frame.width} {frame.height}",
        role="img",
        aria_label=_in_words(title, series, form),
    )


def stacked_bars(title: str, names: Sequence[str], rows: Sequence[Sequence[Number]]) -> Html:
    """Return one bar per update, with a layer per name; `rows[update][name]` in seconds.

    With more updates than a screen has pixels, neighbouring ones are averaged.
    """
    if not rows:
        return element("p", "no value yet", class_="empty")
    group = math.ceil(len(rows) / MAX_BARS)
    bars = [_mean_row(rows[first : first + group]) for first in range(0, len(rows), group)]
    y_ticks = ticks(0.0, max(max(sum(bar) for bar in bars), 1e-3), 4)
    frame = Frame(
        width=400,
        height=200,
        x_range=(0.5, len(rows) + 0.5),
        y_range=(y_ticks[0], y_ticks[-1]),
    )
    return element(
        "svg",
        _axes(frame, y_ticks, short),
        *(_bar(frame, index * group, len(rows), bar) for index, bar in enumerate(bars)),
        viewBox=f"0 0 {frame.width} {frame.height}",
        role="img",
        aria_label=f"{title}: {_shares(names, rows)}",
    )


def _axes(frame: Frame, y_ticks: Sequence[Number], form: Format) -> Html:
    """Return grid lines, their values and the update numbers."""
    left, right = frame.left, frame.width - frame.right
    parts: list[Html] = []
    for value in y_ticks:
        y = frame.y(value)
        zero = "zero" if value == 0.0 else "grid"
        parts.append(element("line", class_=zero, x1=left, x2=right, y1=y, y2=y))
        label = form(value)
        parts.append(element("text", label, x=left - 6, y=y + 3.5, text_anchor="end"))
    low, high = frame.x_range
    wanted = max(frame.inner_width // 70, 2)
    for value in ticks(math.ceil(low), max(math.floor(high), math.ceil(low) + 1), wanted):
        if value == round(value) and low <= value <= high:
            number = f"{round(value):,}"
            x, y = frame.x(value), frame.height - frame.bottom + 15
            parts.append(element("text", number, x=x, y=y, text_anchor="middle"))
    name = element("text", "update", x=2, y=frame.height - 1)
    return element("g", *parts, name, class_="axes")


def _line(frame: Frame, series: Series, form: Format) -> Html:
    """Return intervals, line and marks of one series."""
    steps: list[str] = []
    pen_is_down = False
    for update, value in zip(series.updates, series.values, strict=True):
        if value is not None:
            steps.append(f"{'L' if pen_is_down else 'M'}{frame.x(update)} {frame.y(value)}")
        pen_is_down = value is not None
    spread = [_band(frame, series)] if series.is_band else _whiskers(frame, series)
    parts = [*spread, element("path", d=" ".join(steps))]
    stride = math.ceil(len(series.known) / MAX_MARKS)
    for update, value in series.known[::stride] if series.known else []:
        tip = element("title", f"{series.name}, update {update}: {form(value)}")
        parts.append(element("circle", tip, cx=frame.x(update), cy=frame.y(value), r=3))
    return element("g", *parts, class_=f"series {series.kind}")


def _bar(frame: Frame, first: int, num_updates: int, seconds: Sequence[Number]) -> Html:
    """Return the bar of the updates from the zero-based `first` on, layer upon layer."""
    last = min(first + math.ceil(num_updates / MAX_BARS), num_updates)
    left, right = frame.x(first + 0.5 + BAR_GAP / 2), frame.x(last + 0.5 - BAR_GAP / 2)
    heights = list(accumulate(seconds, initial=0.0))
    return element(
        "g",
        *(
            element(
                "rect",
                class_=f"layer-{layer}",
                x=left,
                y=frame.y(high),
                width=round(max(right - left, 0.5), 1),
                height=round(frame.y(low) - frame.y(high), 1),
            )
            for layer, (low, high) in enumerate(pairwise(heights))
        ),
    )


def _band(frame: Frame, series: Series) -> Html:
    """Return the area between the ends of the intervals."""
    spans = zip(series.updates, series.intervals, strict=True)
    known = [(update, span) for update, span in spans if span is not None]
    there = [f"{frame.x(update)} {frame.y(span[1])}" for update, span in known]
    back = [f"{frame.x(update)} {frame.y(span[0])}" for update, span in reversed(known)]
    return element("path", class_="band", d=f"M{' L'.join([*there, *back])} Z" if known else "")


def _whiskers(frame: Frame, series: Series) -> list[Html]:
    """Return a vertical line over each interval."""
    if not series.intervals:
        return []
    spans = zip(series.updates, series.intervals, strict=True)
    return [
        element(
            "line",
            class_="whisker",
            x1=frame.x(update),
            x2=frame.x(update),
            y1=frame.y(span[0]),
            y2=frame.y(span[1]),
        )
        for update, span in spans
        if span is not None
    ]


def _value_range(series: Sequence[Series]) -> Interval:
    """Return a range that holds every value and interval, and zero when that is near."""
    values = [value for line in series for _, value in line.known]
    values += [end for line in series for span in line.intervals if span for end in span]
    low, high = min(values), max(values)
    near_zero = 0.5
    if 0 < low < near_zero * high:
        low = 0.0
    if high - low < 1e-9 * max(abs(high), 1.0):
        margin = abs(high) / 2 or 1.0
        low, high = low - margin, high + margin
    return low, high


def _in_words(title: str, series: Sequence[Series], form: Format) -> str:
    """Return what a screen reader says instead of the picture."""
    lines = [
        f"{line.name} from {form(line.known[0][1])} at update {line.known[0][0]}"
        f" to {form(line.known[-1][1])} at update {line.known[-1][0]}"
        for line in series
        if line.known
    ]
    return f"{title}: {'; '.join(lines)}"


def _mean_row(rows: Sequence[Sequence[Number]]) -> list[Number]:
    return [sum(column) / len(rows) for column in zip(*rows, strict=True)]


def _shares(names: Sequence[str], rows: Sequence[Sequence[Number]]) -> str:
    """Return each layer's share of the total, in words."""
    totals = [sum(column) for column in zip(*rows, strict=True)]
    whole = sum(totals) or 1.0
    return ", ".join(f"{n} {percent(t / whole)}" for n, t in zip(names, totals, strict=True))
