"""The comparison as one HTML page: tables, intervals, curves. It loads nothing, runs no script."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from gtr_turbo.report.markup import Html, element, join, style_sheet
from gtr_turbo.report.page import POLICY
from gtr_turbo.studies.comparison import Comparison
from gtr_turbo.studies.plots import (
    Figure,
    arm_charts,
    figure_html,
    metric_charts,
    overview,
    style,
)
from gtr_turbo.studies.results import StudyResults
from gtr_turbo.studies.statistics import Estimate
from gtr_turbo.studies.study import arms_of
from gtr_turbo.studies.tables import TextTable, tables

LINKS: Final = {
    "intervals": "Intervals",
    "tables": "Tables",
    "curves": "Curves",
    "arms": "Arm by arm",
    "numbers": "Other numbers",
    "study": "The study",
}
WIDTH: Final = 600
MARGIN: Final = 10


def study_page(results: StudyResults, comparison: Comparison, file: str) -> Html:
    """Return the whole page; `file` is the text of the study file."""
    study = results.study
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", f"{study.name}: GTR-Turbo study"),
        element("style", style_sheet("charts", "report")),
    )
    body = element(
        "body",
        element("h1", study.name),
        element("p", study.question),
        element("p", _status(comparison), class_="soft"),
        element("nav", *(element("a", text, href=f"#{place}") for place, text in LINKS.items())),
        _section("intervals", interval_table(comparison)),
        _section("tables", *(_table(table) for table in tables(comparison))),
        _section("curves", _charts(overview(results), "charts outcome")),
        _section("arms", _charts(arm_charts(results), "charts")),
        _section("numbers", _charts(metric_charts(results), "charts")),
        _section("study", _settings(arms_of(study)), element("pre", file, class_="config")),
    )
    return join([Html("<!doctype html>\n"), element("html", head, body, lang="en"), "\n"])


def interval_table(comparison: Comparison) -> Html:
    """Return the agent's and the teacher's success of each arm, all on one scale of 0 to 100 %."""
    rows: list[Html] = []
    for number, row in enumerate(comparison.rows):
        found = {"agent": row.agent, "teacher": row.teacher}
        for who, estimate in found.items():
            if estimate is not None:
                kind = style(number) if who == "agent" else "teacher"
                name = row.arm if who == "agent" else "its teacher"
                rows.append(
                    element(
                        "tr",
                        element("td", name),
                        element("td", f"{estimate.value:.1%}"),
                        element("td", _span(estimate, kind), class_="span"),
                    )
                )
    heads = ("", "success", "0 % to 100 %, with 95 % interval")
    return _whole_table(heads, rows)


def _charts(figures: Sequence[Figure], kind: str) -> Html:
    return element("div", *(figure_html(figure) for figure in figures), class_=kind)


def _status(comparison: Comparison) -> str:
    count = sum(len(row.seeds) for row in comparison.rows)
    text = f"{count} finished runs of {len(comparison.rows)} arms."
    if comparison.missing:
        text += f" Not finished: {', '.join(comparison.missing)}."
    return text


def _section(place: str, *children: Html) -> Html:
    return join([element("h2", LINKS[place], id=place), *children])


def _table(table: TextTable) -> Html:
    rows = [element("tr", *(element("td", cell) for cell in row)) for row in table.rows]
    return join(
        [
            element("h3", table.title),
            element("p", table.note, class_="soft"),
            _whole_table(table.heads, rows),
        ]
    )


def _whole_table(heads: Sequence[str], rows: Sequence[Html]) -> Html:
    head = element("thead", element("tr", *(element("th", text) for text in heads)))
    return element("div", element("table", head, element("tbody", *rows)), class_="scroll")


def _span(estimate: Estimate, kind: str) -> Html:
    """Return an interval and its middle on a line from 0 to 1."""
    inner = WIDTH - 2 * MARGIN
    low, middle, high = (
        round(MARGIN + inner * value, 1) for value in (estimate.low, estimate.value, estimate.high)
    )
    scale = element("line", class_="grid", x1=MARGIN, x2=WIDTH - MARGIN, y1=9, y2=9)
    parts = [
        element("line", class_="whisker", x1=low, x2=high, y1=9, y2=9),
        element("circle", cx=middle, cy=9, r=4),
    ]
    return element(
        "svg",
        element("g", scale, class_="axes"),
        element("g", *parts, class_=f"series evaluated {kind}"),
        viewBox=f"0 0 {WIDTH} 18",
        aria_hidden="true",
    )


def _settings(arms: Mapping[str, Mapping[str, Any]]) -> Html:
    """Return what each arm sets."""
    rows = [
        element(
            "tr",
            element("td", arm),
            element("td", ", ".join(f"{key} {value}" for key, value in own.items()) or "–"),
        )
        for arm, own in arms.items()
    ]
    return _whole_table(("arm", "fields"), rows)
