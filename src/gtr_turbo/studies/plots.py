"""The curves of a study: every arm's mean over its seeds, update by update."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, final

from gtr_turbo.metrics import METRICS
from gtr_turbo.report.charts import Format, Series, line_chart, percent, short
from gtr_turbo.report.curves import SHARE
from gtr_turbo.report.markup import Html, element, style_sheet
from gtr_turbo.studies.results import (
    Point,
    RunResult,
    StudyResults,
    evaluation_curve,
    metric_curve,
)
from gtr_turbo.studies.statistics import mean_over_seeds

CHART_SIZE: Final = (400, 200)
"""Of a chart, in SVG units."""
NUM_COLOURS: Final = 8
"""Arms beyond it get the same colours again, dashed."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """A chart of one logged number, one line per arm."""

    title: str
    metric: str
    form: Format = short
    is_share: bool = False


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A chart with what stands around it."""

    name: str
    """Of its file, without the ending."""
    title: str
    lines: Sequence[Series]
    note: str = ""
    form: Format = short
    is_share: bool = False


PLOTS: Final = (
    Plot(title="Success in training", metric="success_rate", form=percent, is_share=True),
    Plot(title="Distance from the start: agent", metric="agent_distance"),
    Plot(title="Distance from the start: teacher", metric="teacher_distance"),
    Plot(title="Distance between agent and teacher", metric="agent_teacher_distance"),
    Plot(title="Guidance KL", metric="guidance_kl"),
    Plot(title="Weight of guidance", metric="guidance_weight"),
    Plot(title="Entropy", metric="entropy"),
    Plot(title="Length of the thought", metric="thought_tokens"),
    Plot(title="Different thoughts", metric="distinct_thought_share", form=percent, is_share=True),
    Plot(title="Well-formed replies", metric="valid_format_rate", form=percent, is_share=True),
)


def style(number: int) -> str:
    """Return the style class of the arm that comes so many-th in its study.

    >>> style(1), style(9)
    ('arm-1', 'arm-1 dashed')
    """
    return f"arm-{number % NUM_COLOURS}" + (" dashed" if number >= NUM_COLOURS else "")


def overview(results: StudyResults) -> list[Figure]:
    """Return the success on the panel of every arm's agent, and of every arm's teacher."""
    return [
        Figure(
            name=f"success-{who}",
            title=f"Success on the panel: {who}",
            lines=_all_arms(results, lambda runs, who=who: evaluation_curve(runs, who)),
            note="Mean over seeds.",
            form=percent,
            is_share=True,
        )
        for who in ("agent", "teacher")
    ]


def arm_charts(results: StudyResults) -> list[Figure]:
    """Return a chart per arm: its agent and its teacher with bands, and the baseline's agent."""
    return [
        Figure(
            name=f"arm-{arm}",
            title=arm,
            lines=_one_arm(results, arm),
            form=percent,
            is_share=True,
        )
        for arm in results.arms
    ]


def metric_charts(results: StudyResults) -> list[Figure]:
    """Return the logged numbers that tell arms apart, where they were logged."""
    figures: list[Figure] = []
    for plot in PLOTS:
        lines = _all_arms(results, lambda runs, plot=plot: metric_curve(runs, plot.metric))
        if any(line.known for line in lines):
            figures.append(
                Figure(
                    name=plot.metric.replace("_", "-"),
                    title=plot.title,
                    lines=lines,
                    note=METRICS[plot.metric],
                    form=plot.form,
                    is_share=plot.is_share,
                )
            )
    return figures


def picture_files(results: StudyResults) -> dict[str, str]:
    """Return file name → a picture that stands alone (SVG), for each chart that has a line."""
    figures = [*overview(results), *metric_charts(results), *arm_charts(results)]
    return {f"{figure.name}.svg": _alone(figure) for figure in figures if figure.lines}


def _all_arms(
    results: StudyResults, curve: Callable[[Sequence[RunResult]], list[Point]]
) -> list[Series]:
    lines = [
        _series(arm, style(number), curve(runs), is_band=False)
        for number, (arm, runs) in enumerate(results.arms.items())
    ]
    return [line for line in lines if line.known]


def _one_arm(results: StudyResults, arm: str) -> list[Series]:
    runs = results.arms[arm]
    lines = [
        _series("agent", "agent", evaluation_curve(runs, "agent"), is_band=True),
        _series("teacher", "teacher", evaluation_curve(runs, "teacher"), is_band=True),
    ]
    base = results.arms.get(results.baseline, ())
    if arm != results.baseline and base:
        points = evaluation_curve(base, "agent")
        lines.append(_series(results.baseline, "training", points, is_band=False))
    return [line for line in lines if line.known]


def _series(name: str, kind: str, points: Sequence[Point], *, is_band: bool) -> Series:
    means = [mean_over_seeds(point.values) if is_band else None for point in points]
    spans = tuple(None if mean is None else (mean.low, mean.high) for mean in means)
    return Series(
        name=name,
        kind=kind,
        updates=tuple(point.update for point in points),
        values=tuple(float(point.values.mean()) for point in points),
        intervals=spans if is_band else (),
        is_band=is_band,
    )


def figure_html(figure: Figure) -> Html:
    """Return a figure of a page: title, legend, note and chart."""
    legend = _legend({line.name: f"series {line.kind}" for line in figure.lines})
    head = element("div", element("h3", figure.title), legend, class_="head")
    caption = element("figcaption", head, element("p", figure.note))
    return element("figure", caption, _chart(figure))


def _chart(figure: Figure) -> Html:
    y_range = SHARE if figure.is_share else None
    return line_chart(
        figure.title, figure.lines, form=figure.form, y_range=y_range, size=CHART_SIZE
    )


def _alone(figure: Figure) -> str:
    """Return title, legend and chart as one picture, its style inside."""
    (width, chart_height), head, line = CHART_SIZE, 22, 16
    top = head + line * len(figure.lines)
    height = top + chart_height
    names = [
        element(
            "g",
            element("path", d=f"M10 {head + line * row + 4} h22"),
            element("text", entry.name, x=38, y=head + line * row + 8),
            class_=f"series {entry.kind}",
        )
        for row, entry in enumerate(figure.lines)
    ]
    picture = element(
        "svg",
        element("style", style_sheet("charts")),
        element("rect", width=width, height=height, style="fill: var(--paper)"),
        element("text", figure.title, x=10, y=15),
        *names,
        element("svg", _chart(figure), y=top, width=width, height=chart_height),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width} {height}",
        font_family="sans-serif",
    )
    return f"{picture}\n"


def _legend(classes: Mapping[str, str]) -> Html:
    swatches = [
        element(
            "span",
            element(
                "svg",
                element("g", element("path", d="M0 5 L22 5"), class_=kind),
                viewBox="0 0 22 10",
                aria_hidden="true",
            ),
            name,
        )
        for name, kind in classes.items()
    ]
    return element("span", *swatches, class_="legend")
