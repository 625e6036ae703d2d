"""The charts of a run: which numbers stand together, and what is healthy."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from gtr_turbo.metrics import METRICS
from gtr_turbo.report.charts import (
    Format,
    Interval,
    Series,
    line_chart,
    percent,
    short,
    stacked_bars,
)
from gtr_turbo.report.markup import Html, element, join
from gtr_turbo.report.records import RunRecord

SHARE: Interval = (0.0, 1.0)
EVALUATED = {
    "initial": ("before", "initial evaluated"),
    "agent": ("agent, panel", "agent evaluated"),
    "teacher": ("teacher, panel", "teacher evaluated"),
}
"""Who was evaluated → name in the legend, style."""
PHASES = ("teach", "act", "guide", "credit", "improve", "remember")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """A small chart of one or two metrics."""

    title: str
    metrics: tuple[str, ...]
    form: Format = short
    y_range: Interval | None = None
    always: bool = True
    """Whether it is drawn without a value too; otherwise only in runs that have the numbers."""


CURVES: tuple[Curve, ...] = (
    Curve(title="Guidance KL", metrics=("guidance_kl",)),
    Curve(title="Weight of guidance", metrics=("guidance_weight",), always=False),
    Curve(title="Entropy", metrics=("entropy",)),
    Curve(title="Clip fraction", metrics=("clip_fraction",), form=percent),
    Curve(title="Approximate KL of the update", metrics=("approx_kl",)),
    Curve(title="Explained variance of the critic", metrics=("explained_variance",)),
    Curve(
        title="Well-formed replies, legal actions",
        metrics=("valid_format_rate", "legal_rate"),
        form=percent,
        y_range=SHARE,
    ),
    Curve(title="Length of thought and reply", metrics=("thought_tokens", "reply_tokens")),
    Curve(
        title="Different thoughts",
        metrics=("distinct_thought_share",),
        form=percent,
        y_range=SHARE,
    ),
    Curve(
        title="Sameness of thoughts",
        metrics=("self_bleu", "shared_thought_rate"),
        form=percent,
        y_range=SHARE,
        always=False,
    ),
    Curve(
        title="Distance from the start",
        metrics=("agent_distance", "teacher_distance"),
        always=False,
    ),
    Curve(title="Loss of imitation", metrics=("imitation_loss",), always=False),
    Curve(title="Guard", metrics=("guard_alarms", "guard_resets"), always=False),
    Curve(title="Cost of the corrector", metrics=("corrector_cost",), always=False),
    Curve(title="Gradient norm", metrics=("grad_norm",)),
)
WORST_SHOWN = -1.0
"""A fresh critic can explain less than nothing by any amount; below this the curve is cut."""


def charts(record: RunRecord) -> Html:
    """Return all charts of a run."""
    outcome = element(
        "div",
        outcome_chart(record, "Success rate", "success_rate", percent, SHARE),
        outcome_chart(record, "Return", "return", short, None),
        class_="charts outcome",
    )
    small = [
        small_chart(record.metrics, curve)
        for curve in CURVES
        if curve.always or _has_numbers(record.metrics, curve)
    ]
    return join([outcome, element("div", *small, time_chart(record.metrics), class_="charts")])


def outcome_chart(
    record: RunRecord, title: str, key: str, form: Format, y_range: Interval | None
) -> Html:
    """Return a large chart of training and of each evaluation, with its intervals."""
    lines = [_training(record.metrics, key, "training episodes", "training")]
    lines += [_evaluated(evaluations(record), who, key) for who in EVALUATED]
    lines = [line for line in lines if line.known]
    chart = line_chart(title, lines, form=form, y_range=y_range, size=(560, 260))
    note = "Training episodes follow the training rules and sample at the training temperature; the"
    note += " panel is fixed. Whiskers: 95 % intervals."
    return _figure(title, chart, _legend(lines), note)


def small_chart(metrics: Sequence[Mapping[str, Any]], curve: Curve) -> Html:
    """Return one curve with its current value and its healthy range."""
    styles = ("agent", "second")
    lines = [
        _training(metrics, name, name, style)
        for name, style in zip(curve.metrics, styles, strict=False)
    ]
    y_range = curve.y_range
    values = [value for line in lines for _, value in line.known]
    if "explained_variance" in curve.metrics and values:
        y_range = (max(min(*values, 0.0), WORST_SHOWN), max(*values, 0.0) or 1.0)
    chart = line_chart(curve.title, lines, form=curve.form, y_range=y_range)
    latest = ", ".join(curve.form(line.known[-1][1]) for line in lines if line.known)
    legend = _legend(lines) if len(lines) > 1 else element("span", latest, class_="legend")
    return _figure(curve.title, chart, legend, " ".join(METRICS[name] for name in curve.metrics))


def _has_numbers(metrics: Sequence[Mapping[str, Any]], curve: Curve) -> bool:
    return any(line.get(name) is not None for line in metrics for name in curve.metrics)


def time_chart(metrics: Sequence[Mapping[str, Any]]) -> Html:
    """Return the seconds of the six steps, stacked."""
    rows = [[_seconds(line.get(f"seconds_{name}")) for name in PHASES] for line in metrics]
    chart = stacked_bars("Seconds per update", PHASES, rows)
    totals = [sum(column) for column in zip(*rows, strict=True)] or [0.0] * len(PHASES)
    whole = sum(totals) or 1.0
    swatches = [
        element(
            "span",
            element("svg", element("rect", class_=f"layer-{k}", width=22, height=10)),
            f"{name} {total / whole:.0%}",
        )
        for k, (name, total) in enumerate(zip(PHASES, totals, strict=True))
    ]
    legend = element("span", *swatches, class_="legend")
    return _figure("Seconds per update", chart, legend, "The six steps of an update, in order.")


def evaluations(record: RunRecord) -> list[Mapping[str, Any]]:
    """Return the evaluations in order; those of the summary where no others were kept."""
    found = [line for line in record.evaluations if isinstance(line.get("update"), int)]
    who_has = {line.get("who") for line in found}
    for who in EVALUATED:
        result = (record.summary or {}).get(who)
        if result and who not in who_has:
            update = 0 if who == "initial" else (record.summary or {})["updates"]
            found.append({"update": update, "who": who, **result})
    return sorted(found, key=lambda line: line["update"])


def _evaluated(lines: Sequence[Mapping[str, Any]], who: str, key: str) -> Series:
    mine = [line for line in lines if line.get("who") == who]
    name, style = EVALUATED[who]
    intervals = [line.get("ci95") if key == "success_rate" else None for line in mine]
    return Series(
        name=name,
        kind=style,
        updates=tuple(line["update"] for line in mine),
        values=tuple(line.get(key) for line in mine),
        intervals=tuple((span[0], span[1]) if span else None for span in intervals),
    )


def _training(metrics: Sequence[Mapping[str, Any]], key: str, name: str, style: str) -> Series:
    return Series(
        name=name,
        kind=style,
        updates=tuple(line["update"] for line in metrics),
        values=tuple(line.get(key) for line in metrics),
    )


def _seconds(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _legend(lines: Sequence[Series]) -> Html:
    """Return a line of the series' style before each name."""
    swatches = [
        element(
            "span",
            element(
                "svg",
                element(
                    "g",
                    element("path", d="M0 5 L22 5"),
                    element("circle", cx=11, cy=5, r=3),
                    class_=f"series {line.kind}",
                ),
                viewBox="0 0 22 10",
                aria_hidden="true",
            ),
            line.name,
        )
        for line in lines
    ]
    return element("span", *swatches, class_="legend")


def _figure(title: str, chart: Html, legend: Html, note: str) -> Html:
    head = element("div", element("h3", title), legend, class_="head")
    return element("figure", element("figcaption", head, element("p", note)), chart)
