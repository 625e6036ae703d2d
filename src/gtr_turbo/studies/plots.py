"""The curves of a study: every arm's mean over its seeds, update by update."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, final

from gtr_turbo.metrics import METRICS
from gtr_turbo.report.charts import Format, Series, line_chart, percent, short
from gtr_turbo.report.curves import SHARE
from gtr_turbo.report.markup import Html, element
from gtr_turbo.studies.results import (
    Point,
    RunResult,
    StudyResults,
    evaluation_curve,
    metric_curve,
)
from gtr_turbo.studies.statistics import mean_over_seeds

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


PLOTS: Final = (
    Plot(title="Success in training", metric="success_rate", form=percent, is_share=True),
    Plot(title="Distance from the start: agent", metric="agent_distance"),
    Plot(title="Distance from the start: teacher", metric="teacher_distance"),
    Plot(title="Distance between agent and teacher", metric="agent_teacher_distance"),
    Plot(title="Guidance KL", metric="guidance_kl"),
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


def overview(results: StudyResults) -> Html:
    """Return the success on the panel of every arm's agent, and of every arm's teacher."""
    figures = [
        _figure(
            f"Success on the panel: {who}",
            _all_arms(results, lambda runs, who=who: evaluation_curve(runs, who)),
            "Mean over seeds.",
            form=percent,
            is_share=True,
        )
        for who in ("agent", "teacher")
    ]
    return element("div", *figures, class_="charts outcome")


def arm_charts(results: StudyResults) -> Html:
    """Return a chart per arm: its agent and its teacher with bands, and the baseline's agent."""
    figures = [
        _figure(arm, _one_arm(results, arm), "", form=percent, is_share=True)
        for arm in results.arms
    ]
    return element("div", *figures, class_="charts")


def metric_charts(results: StudyResults) -> Html:
    """Return the logged numbers that tell arms apart, where they were logged."""
    figures: list[Html] = []
    for plot in PLOTS:
        lines = _all_arms(results, lambda runs, plot=plot: metric_curve(runs, plot.metric))
        if any(line.known for line in lines):
            note = METRICS[plot.metric]
            figures.append(_figure(plot.title, lines, note, form=plot.form, is_share=plot.is_share))
    return element("div", *figures, class_="charts")


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


def _figure(
    title: str, lines: Sequence[Series], note: str, *, form: Format, is_share: bool
) -> Html:
    chart = line_chart(title, lines, form=form, y_range=SHARE if is_share else None)
    legend = _legend({line.name: f"series {line.kind}" for line in lines})
    head = element("div", element("h3", title), legend, class_="head")
    return element("figure", element("figcaption", head, element("p", note)), chart)


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
