"""A comparison as Markdown and as CSV."""

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

from gtr_turbo.studies.comparison import ArmRow, Comparison
from gtr_turbo.studies.results import StudyResults
from gtr_turbo.studies.statistics import Estimate, smallest_p

NOTHING: Final = "–"
FEW_SEEDS: Final = (
    "An interval over seeds alone is too narrow where these are few: with five it covers 82 to 89 %"
    " in place of 95, with ten 92 to 95, and with one it says nothing."
)
"""Coverage of `mean_over_seeds`, `interquartile` and `improvement_prob`, simulated."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TextTable:
    """A table of texts under a title."""

    title: str
    note: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]


def tables(comparison: Comparison) -> list[TextTable]:
    """Return success, the comparison with the baseline, costs, and pass@k where it was measured."""
    made = [success_table(comparison), baseline_table(comparison)]
    if any(row.pass_at for row in comparison.rows):
        made.append(pass_table(comparison))
    return [table for table in [*made, cost_table(comparison)] if table.rows]


def success_table(comparison: Comparison) -> TextTable:
    """Return who solved how much of the panel."""
    return TextTable(
        title="Success",
        note="Share of the panel that is solved, in %; in brackets bootstrap 95 % intervals over"
        f" seeds and hands. IQM: interquartile mean over seeds, interval over seeds. {FEW_SEEDS}",
        heads=("arm", "seeds", "start", "agent", "IQM", "teacher", "agent, seed by seed"),
        rows=[
            (
                row.arm,
                str(len(row.seeds)),
                in_percent(row.initial),
                in_percent(row.agent),
                in_percent(row.interquartile),
                in_percent(row.teacher),
                ", ".join(f"{100 * rate:.1f}" for rate in row.rates),
            )
            for row in comparison.rows
        ],
    )


def baseline_table(comparison: Comparison) -> TextTable:
    """Return each arm beside the baseline."""
    pairs = [(row, row.against) for row in comparison.rows]
    found = [(row, against) for row, against in pairs if against is not None]
    counts = {against.difference.num_seeds for _, against in found}
    floors = ", ".join(f"{smallest_p(count):.2g} of {count} seeds" for count in sorted(counts))
    return TextTable(
        title=f"Against {comparison.baseline}",
        note="Agent's success minus the baseline's, in points, paired by seed and hand, bootstrap"
        " 95 % interval. p: two-sided sign-flip test over seeds, not corrected for the number of"
        f" arms; its smallest possible value is {floors}. P(better): probability that a run beats"
        " one of the baseline, interval over seeds.",
        heads=("arm", "pairs", "difference", "p", "P(better)"),
        rows=[
            (
                row.arm,
                str(against.difference.num_seeds),
                in_percent(against.difference.estimate, "+.1f"),
                f"{against.difference.p_value:.3g}",
                spread(against.improvement, ".2f"),
            )
            for row, against in found
        ],
    )


def pass_table(comparison: Comparison) -> TextTable:
    """Return the chance that one of k tries solves a hand."""
    ks = sorted({k for row in comparison.rows for k in row.pass_at})
    return TextTable(
        title="pass@k",
        note="Chance that one of k tries solves a hand of the panel, in %: unbiased estimate, mean"
        f" and bootstrap 95 % interval over seeds. {FEW_SEEDS}",
        heads=("arm", *(f"pass@{k}" for k in ks)),
        rows=[
            (row.arm, *(in_percent(row.pass_at.get(k)) for k in ks))
            for row in comparison.rows
            if row.pass_at
        ],
    )


def cost_table(comparison: Comparison) -> TextTable:
    """Return what a run of each arm took."""
    own = [row.cost.step_milliseconds for row in comparison.rows if row.arm == comparison.baseline]
    base = own[0] if own else None
    return TextTable(
        title="Cost",
        note="Means over runs. Minutes on the clock, beside the other runs of the study; the"
        " supervised start counts for each run, also where runs shared it. Milliseconds per"
        " environment step: median over all updates, evaluations left out; in brackets as a"
        f" multiple of {comparison.baseline}'s. Tokens: sampled by the agent in training; corrector"
        " tokens: its questions and answers.",
        heads=("arm", "updates", "environment steps", "minutes", "of these start", "ms per step",
               "tokens", "corrector tokens", "cost"),
        rows=[
            (
                row.arm,
                str(row.cost.num_updates),
                f"{row.cost.env_steps:,}",
                f"{row.cost.minutes:.1f}",
                f"{row.cost.start_minutes:.1f}",
                _per_step(row.cost.step_milliseconds, base),
                f"{row.cost.num_tokens:,.0f}",
                f"{row.cost.num_corrector_tokens:,.0f}",
                f"{row.cost.money:.2f}",
            )
            for row in comparison.rows
        ],
    )  # fmt: skip


def _per_step(milliseconds: float | None, base: float | None) -> str:
    if milliseconds is None:
        return NOTHING
    ratio = "" if base is None else f" ({milliseconds / base:.2f})"
    return f"{milliseconds:.1f}{ratio}"


def markdown(name: str, question: str, comparison: Comparison) -> str:
    """Return a comparison as a Markdown page."""
    parts = [f"# {name}", question] if question else [f"# {name}"]
    for table in tables(comparison):
        lines = [_line(table.heads), "|---" * len(table.heads) + "|", *map(_line, table.rows)]
        parts += [f"## {table.title}", table.note, "\n".join(lines)]
    if comparison.missing:
        parts.append(f"Not finished: {', '.join(comparison.missing)}.")
    return "\n\n".join(parts) + "\n"


def arms_csv(comparison: Comparison) -> str:
    """Return one line per arm, every number with its interval."""
    found: dict[str, Callable[[ArmRow], Estimate | None]] = {
        "start": lambda row: row.initial,
        "agent": lambda row: row.agent,
        "iqm": lambda row: row.interquartile,
        "teacher": lambda row: row.teacher,
        "difference": lambda row: row.against and row.against.difference.estimate,
        "improvement_prob": lambda row: row.against and row.against.improvement,
    }
    heads = ["arm", "seeds", *(f"{n}{end}" for n in found for end in ("", "_low", "_high"))]
    heads += ["p_value", "minutes", "step_milliseconds", "tokens", "corrector_tokens", "cost"]
    rows: list[list[Any]] = []
    for row in comparison.rows:
        cells: list[Any] = [row.arm, len(row.seeds)]
        for get in found.values():
            estimate = get(row)
            cells += [estimate.value, estimate.low, estimate.high] if estimate else [None] * 3
        cells += [row.against and row.against.difference.p_value, row.cost.minutes]
        cells += [row.cost.step_milliseconds, row.cost.num_tokens]
        cells += [row.cost.num_corrector_tokens, row.cost.money]
        rows.append(cells)
    return _csv(heads, rows)


def runs_csv(results: StudyResults) -> str:
    """Return one line per finished run."""
    heads = ["arm", "seed", "updates", "env_steps", "start", "agent", "teacher", "agent_return"]
    heads += ["minutes", "tokens", "corrector_tokens", "cost", "weights_sha256"]
    rows: list[list[Any]] = []
    for run in (run for runs in results.arms.values() for run in runs):
        summary = run.summary
        rates = [
            (summary.get(who) or {}).get("success_rate") for who in ("initial", "agent", "teacher")
        ]
        cells = [run.arm, run.seed, summary["updates"], summary["env_steps"], *rates]
        cells += [summary["agent"]["return"], run.minutes, run.num_tokens]
        cells += [run.num_corrector_tokens, run.cost, summary["agent"].get("weights_sha256")]
        rows.append(cells)
    return _csv(heads, rows)


def in_percent(estimate: Estimate | None, form: str = ".1f") -> str:
    """Return a share and its interval in per cent.

    >>> in_percent(Estimate(0.5, 0.4, 0.6)), in_percent(None)
    ('50.0 (40.0 – 60.0)', '–')
    """
    if estimate is None:
        return NOTHING
    scaled = Estimate(100 * estimate.value, 100 * estimate.low, 100 * estimate.high)
    return spread(scaled, form)


def spread(estimate: Estimate, form: str) -> str:
    """Return a number and its interval.

    >>> spread(Estimate(0.5, 0.4, 0.6), ".2f")
    '0.50 (0.40 – 0.60)'
    """
    return f"{estimate.value:{form}} ({estimate.low:{form}} – {estimate.high:{form}})"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _csv(heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(heads)
    writer.writerows([["" if cell is None else cell for cell in row] for row in rows])
    return file.getvalue()
