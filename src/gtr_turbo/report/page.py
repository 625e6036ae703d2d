"""`report.html`: one file that holds the whole story of a run and loads nothing from outside."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gtr_turbo.core.files import write_text_atomically
from gtr_turbo.report.console import duration
from gtr_turbo.report.curves import charts
from gtr_turbo.report.gallery import gallery
from gtr_turbo.report.markup import Html, element, join, style_sheet
from gtr_turbo.report.records import RunRecord, read_run

REPORT_FILE = "report.html"
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""The browser is told to run no script and to fetch nothing, whatever a model has written."""
ROWS = {"initial": "Before (initial)", "agent": "Agent", "teacher": "Teacher"}


def write_report(run_dir: Path) -> Path:
    """Write `report.html` from what the run directory holds, and return its path.

    The run may be unfinished. Raises CheckpointError when `metrics.jsonl` is damaged or the disk is
    full.
    """
    path = run_dir / REPORT_FILE
    write_text_atomically(path, page(run_dir, read_run(run_dir)))
    return path


def page(run_dir: Path, record: RunRecord) -> Html:
    """Return the whole page."""
    name = run_dir.resolve().name
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", f"{name}: GTR-Turbo run"),
        element("style", style_sheet("charts", "report")),
    )
    links = {
        "result": "Result",
        "curves": "Curves",
        "episodes": "Episodes",
        "config": "Configuration",
    }
    body = element(
        "body",
        element("h1", name),
        element("p", _status(record), class_="soft"),
        element("nav", *(element("a", text, href=f"#{place}") for place, text in links.items())),
        element("h2", "Result", id="result"),
        result_table(record.summary),
        facts(record),
        element("h2", "Curves", id="curves"),
        charts(record),
        element("h2", "Episodes", id="episodes"),
        gallery(run_dir, record.episodes),
        element("h2", "Configuration", id="config"),
        element("pre", record.config, class_="config"),
    )
    return join([Html("<!doctype html>\n"), element("html", head, body, lang="en"), "\n"])


def _status(record: RunRecord) -> str:
    last = record.metrics[-1]["update"] if record.metrics else 0
    if record.summary is None:
        return f"Under way, or stopped before its end: {last} updates so far."
    return f"Finished after {record.summary.get('updates', last)} updates."


def result_table(summary: Mapping[str, Any] | None) -> Html:
    """Return initial, agent and teacher side by side, intervals drawn on one scale."""
    if summary is None:
        return element("p", "The final evaluation has not been made yet.", class_="empty")
    heads = ("", "success", "95 % interval", "0 % to 100 %", "return", "episodes")
    rows = [
        element(
            "tr",
            element("td", name),
            element("td", f"{result['success_rate']:.1%}"),
            element("td", f"{result['ci95'][0]:.1%} to {result['ci95'][1]:.1%}"),
            element("td", _span(who, result), class_="span"),
            element("td", f"{result['return']:.2f}"),
            element("td", f"{result['episodes']:,}"),
        )
        for who, name in ROWS.items()
        if (result := summary.get(who))
    ]
    table = element(
        "table",
        element(
            "thead",
            element(
                "tr", *(element("th", h, class_="span" if "100" in h else None) for h in heads)
            ),
        ),
        element("tbody", *rows),
    )
    return element("div", table, class_="scroll")


def _span(who: str, result: Mapping[str, Any]) -> Html:
    """Return an interval and its middle on a line from 0 to 1."""
    low, high = (10 + 280 * end for end in result["ci95"])
    middle = 10 + 280 * result["success_rate"]
    scale = element("line", class_="grid", x1=10, x2=290, y1=9, y2=9)
    parts = [
        element("line", class_="whisker", x1=round(low, 1), x2=round(high, 1), y1=9, y2=9),
        element("circle", cx=round(middle, 1), cy=9, r=4),
    ]
    return element(
        "svg",
        element("g", scale, class_="axes"),
        element("g", *parts, class_=f"series evaluated {who}"),
        viewBox="0 0 300 18",
        aria_hidden="true",
    )


def facts(record: RunRecord) -> Html:
    """Return the sizes of the run and the name of its weights."""
    summary = record.summary or {}
    last = record.metrics[-1] if record.metrics else {}
    shown = {
        "updates": summary.get("updates", last.get("update")),
        "environment steps": summary.get("env_steps", last.get("env_steps")),
        "wall time": duration(summary["wall_seconds"]) if "wall_seconds" in summary else None,
        "teacher": last.get("teacher_fingerprint"),
        "weights, sha256": (summary.get("agent") or {}).get("weights_sha256"),
    }
    pairs = [
        element("div", element("dt", name), element("dd", _fact(value)))
        for name, value in shown.items()
        if value is not None
    ]
    return element("dl", *pairs, class_="facts")


def _fact(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
