"""What a study shows while it runs: bars on a terminal, short plain lines in a file."""

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, final

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from gtr_turbo.core.config import Config
from gtr_turbo.metrics import METRICS_FILE
from gtr_turbo.report.console import duration

LOOK_SECONDS: Final = 1.0
"""Time between two looks at the runs' files."""

Running = Sequence[tuple[str, Path, Config]]
"""Name, directory and configuration of the jobs under way."""


class AbstractStudyProgress(ABC):
    """What is told about a study under way."""

    @abstractmethod
    def started(self, name: str) -> None:
        """Say that a job has started."""

    @abstractmethod
    def finished(self, name: str) -> None:
        """Say that a job has finished."""

    @abstractmethod
    def failed(self, name: str, reason: str) -> None:
        """Say that a job has failed."""

    @abstractmethod
    def show(self, running: Running) -> None:
        """Show how far the jobs under way are."""


@final
class StudyProgress(AbstractStudyProgress):
    """Shows a study on a terminal, or as plain lines when the output is a file or a pipe."""

    def __init__(self, total: int, console: Console) -> None:
        """Take the number of jobs and where to write."""
        self._console, self._total = console, total
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
            transient=True,
        )
        self._all = self._bar.add_task("all", total=total)
        self._rows: dict[str, TaskID] = {}
        self._starts: dict[str, float] = {}
        self._num_settled = 0
        self._last_look = 0.0

    def __enter__(self) -> "StudyProgress":
        if self._console.is_interactive:
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._console.is_interactive:
            self._bar.stop()

    def started(self, name: str) -> None:
        """Say that a job has started."""
        self._starts[name] = time.monotonic()
        self._say(f"started   {name}")

    def finished(self, name: str) -> None:
        """Say that a job has finished, and how many are."""
        self._settle(name, f"finished  {name}")

    def failed(self, name: str, reason: str) -> None:
        """Say that a job has failed, and why."""
        self._settle(name, f"FAILED    {name}: {reason}")

    def show(self, running: Running) -> None:
        """Show a bar per job under way, in updates; nothing where there is no terminal."""
        now = time.monotonic()
        if not self._console.is_interactive or now - self._last_look < LOOK_SECONDS:
            return
        self._last_look = now
        for name in set(self._rows) - {name for name, _, _ in running}:
            self._bar.remove_task(self._rows.pop(name))
        for name, directory, config in running:
            if name not in self._rows:
                self._rows[name] = self._bar.add_task(name, total=config.run.num_updates)
            self._bar.update(self._rows[name], completed=num_updates(directory))

    def _settle(self, name: str, text: str) -> None:
        self._num_settled += 1
        self._bar.update(self._all, completed=self._num_settled)
        start = self._starts.get(name)
        took = "" if start is None else f", {duration(time.monotonic() - start)}"
        self._say(f"{text} ({self._num_settled} of {self._total}{took})")

    def _say(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)


def num_updates(directory: Path) -> int:
    """Return how many updates a run has logged."""
    file = directory / METRICS_FILE
    return file.read_bytes().count(b"\n") if file.is_file() else 0
