"""What a run shows while it works: a bar for the phase, a line per update, a table at the end."""

import shlex
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, final

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from gtr_turbo.metrics import MetricValue

PHASES: dict[str, str] = {
    "sft": "learning the format from expert traces",
    "evaluate": "playing the fixed panel",
    "teach": "merging the past into a teacher",
    "act": "playing",
    "guide": "asking the teacher",
    "credit": "assigning credit",
    "improve": "improving the policy",
    "remember": "saving",
    "report": "writing the report",
}
"""Name → what is going on, in words."""

SLOW_PHASES = frozenset({"sft", "evaluate"})
"""Outside the six steps: a log file says when one of these begins."""
PLAIN_SECONDS = 30.0
"""A log file hears at least this often of a phase that takes long."""
HEADER_EVERY = 20
"""Updates between two headers: about a screen."""
MISSING = "-"

COLUMNS: tuple[tuple[str, int], ...] = (
    ("update", 7),
    ("env steps", 11),
    ("steps/s", 9),
    ("success", 9),
    ("KL", 8),
    ("clip", 7),
    ("expl.var", 10),
    ("entropy", 9),
    ("seconds", 8),
)
"""Heading and width of each column of an update's line; 78 characters in all."""


class AbstractProgress(ABC):
    """What the loop tells about itself."""

    @abstractmethod
    def phase(self, name: str) -> None:
        """Say which phase begins; one of PHASES."""

    @abstractmethod
    def step(self, done: int, total: int) -> None:
        """Say how far the phase is."""

    @abstractmethod
    def update(self, metrics: Mapping[str, MetricValue]) -> None:
        """Show a finished update's numbers."""

    @abstractmethod
    def summary_table(self, summary: Mapping[str, Any]) -> None:
        """Show how the run ended, in the form of `summary.json`."""

    @abstractmethod
    def close(self) -> None:
        """Leave the terminal as it was found."""


@final
class NullProgress(AbstractProgress):
    """Shows nothing."""

    def phase(self, name: str) -> None:
        """Show nothing."""

    def step(self, done: int, total: int) -> None:
        """Show nothing."""

    def update(self, metrics: Mapping[str, MetricValue]) -> None:
        """Show nothing."""

    def summary_table(self, summary: Mapping[str, Any]) -> None:
        """Show nothing."""

    def close(self) -> None:
        """Do nothing."""


@final
class RunProgress(AbstractProgress):
    """Shows a run on a terminal, or as plain short lines when the output is a file or a pipe."""

    def __init__(self, run_dir: Path, console: Console | None = None) -> None:
        """Take the run's directory, for the paths shown at the end, and where to write."""
        self.run_dir = run_dir
        self._console = Console(file=sys.stdout) if console is None else console
        self._bar = _bar(self._console)
        self._task = self._bar.add_task("", total=None, visible=False)
        self._phase = ""
        self._num_lines = 0
        self._last_shown = time.monotonic()

    def __enter__(self) -> "RunProgress":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def phase(self, name: str) -> None:
        """Say which phase begins; raises KeyError for a name that PHASES lacks."""
        text = PHASES[name]
        self._phase = name
        if self._console.is_interactive:
            self._bar.start()
            self._bar.reset(self._task, total=None, visible=True, description=text)
        elif name in SLOW_PHASES:
            self._say(f"{name}: {text}")

    def step(self, done: int, total: int) -> None:
        """Move the bar; a log file gets a line only when it has heard nothing for a while."""
        if self._console.is_interactive:
            self._bar.update(self._task, completed=done, total=total)
        elif time.monotonic() - self._last_shown >= PLAIN_SECONDS:
            self._say(f"{self._phase}: {done} of {total}")

    def update(self, metrics: Mapping[str, MetricValue]) -> None:
        """Show one aligned line, and now and then the header above it."""
        if self._num_lines % HEADER_EVERY == 0:
            self._say("".join(name.rjust(width) for name, width in COLUMNS))
        self._num_lines += 1
        self._say("".join(cell.rjust(width) for cell, (_, width) in zip(_cells(metrics), COLUMNS,
                                                                        strict=True)))  # fmt: skip

    def summary_table(self, summary: Mapping[str, Any]) -> None:
        """Show initial, agent and teacher side by side, and what there is to do next."""
        self.close()
        table = Table(box=box.SIMPLE, show_edge=False, pad_edge=False)
        table.add_column("")
        for heading in ("success", "95 % interval", "return", "episodes"):
            table.add_column(heading, justify="right")
        names = {"initial": "before (initial)", "agent": "agent", "teacher": "teacher"}
        for key, name in names.items():
            if summary.get(key):
                table.add_row(name, *_outcome(summary[key]))
        self._console.print(table)
        self._console.print()
        for line in self._closing_lines(summary):
            self._say(line)

    def close(self) -> None:
        """Remove the bar."""
        if self._console.is_interactive:
            self._bar.stop()

    def _closing_lines(self, summary: Mapping[str, Any]) -> list[str]:
        sha256 = (summary.get("agent") or {}).get("weights_sha256")
        return [
            f"{summary['updates']} updates, {summary['env_steps']:,} environment steps,"
            f" {duration(summary['wall_seconds'])}",
            *([f"weights  sha256 {sha256}"] if sha256 else []),
            f"report   {self.run_dir / 'report.html'}",
            f"next     gtr-turbo eval {shlex.quote(str(self.run_dir))} --episodes 500",
        ]

    def _say(self, text: str) -> None:
        """Print a line as it is: no markup is read in it, and it is never wrapped."""
        self._last_shown = time.monotonic()
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)


def _bar(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    )


def _cells(metrics: Mapping[str, MetricValue]) -> list[str]:
    """Return an update's numbers in the order of COLUMNS."""
    seconds = [
        value
        for name, value in metrics.items()
        if name.startswith("seconds_") and isinstance(value, int | float)
    ]
    return [
        _number(metrics, "update", "d"),
        _number(metrics, "env_steps", ",d"),
        _number(metrics, "env_steps_per_second", ".1f"),
        _number(metrics, "success_rate", ".1%"),
        _number(metrics, "guidance_kl", ".3f"),
        _number(metrics, "clip_fraction", ".3f").removeprefix("0"),
        _number(metrics, "explained_variance", ".3f"),
        _number(metrics, "entropy", ".3f"),
        f"{sum(seconds):.1f}" if seconds else MISSING,
    ]


def _number(metrics: Mapping[str, MetricValue], name: str, form: str) -> str:
    value = metrics.get(name)
    return format(value, form) if isinstance(value, int | float) else MISSING


def _outcome(result: Mapping[str, Any]) -> list[str]:
    low, high = result["ci95"]
    return [
        f"{result['success_rate']:.1%}",
        f"{low:.1%} to {high:.1%}",
        f"{result['return']:.2f}",
        f"{result['episodes']:,}",
    ]


def duration(seconds: float | int) -> str:
    """Return a duration in words that need no legend.

    >>> duration(3725.2)
    '1 h 02 min 05 s'
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    parts = [f"{hours} h"] if hours else []
    parts += [f"{minutes:02d} min" if hours else f"{minutes} min"] if hours or minutes else []
    parts += [f"{rest:02d} s" if parts else f"{rest} s"]
    return " ".join(parts)
