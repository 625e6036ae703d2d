"""What the finished runs of a study left: outcomes by hand, curves, costs."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, final

import numpy as np

from gtr_turbo.errors import ConfigError
from gtr_turbo.metrics import METRICS_FILE, read_metrics
from gtr_turbo.report.records import EVALUATIONS_FILE, SUMMARY_FILE, read_lines
from gtr_turbo.studies.places import SAMPLES_FILE, StudyPlaces, has_samples, is_finished
from gtr_turbo.studies.statistics import Scores, Table
from gtr_turbo.studies.study import Study, StudyRun, arms_of, baseline_of

COST_METRIC: Final = "corrector_cost"
CORRECTOR_TOKENS: Final = ("corrector_input_tokens", "corrector_output_tokens")
SECONDS_PER_MINUTE: Final = 60


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """A finished run."""

    arm: str
    seed: int
    summary: Mapping[str, Any]
    evaluations: Sequence[Mapping[str, Any]]
    metrics: Sequence[Mapping[str, Any]]
    samples: Mapping[str, Any] | None
    """The panel with every hand played several times; None when it was not."""

    @property
    def minutes(self) -> float:
        """Wall clock of the whole run, its supervised start included even where it was shared."""
        return self.summary["wall_seconds"] / SECONDS_PER_MINUTE

    @property
    def start_minutes(self) -> float:
        """Wall clock of the supervised start alone."""
        return self.summary["phase_seconds"].get("sft", 0.0) / SECONDS_PER_MINUTE

    @property
    def step_milliseconds(self) -> tuple[float, ...]:
        """Wall clock per environment step of each update, evaluations left out."""
        return tuple(1000 / line["env_steps_per_second"] for line in self.metrics)

    @property
    def num_tokens(self) -> int:
        """Tokens that the agent sampled in training."""
        steps = [0, *(line["env_steps"] for line in self.metrics)]
        lengths = [line["reply_tokens"] for line in self.metrics]
        turns = [after - before for before, after in pairwise(steps)]
        return round(sum(n * length for n, length in zip(turns, lengths, strict=True)))

    @property
    def num_corrector_tokens(self) -> int:
        """Tokens of a corrector's questions and answers."""
        return round(sum(line.get(name) or 0 for line in self.metrics for name in CORRECTOR_TOKENS))

    @property
    def cost(self) -> float:
        """What a corrector behind an API has cost; 0 without one."""
        last = self.metrics[-1].get(COST_METRIC) if self.metrics else None
        return last or 0.0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StudyResults:
    """The finished runs of a study, arm by arm."""

    study: Study
    arms: Mapping[str, Sequence[RunResult]]
    """Arm → its finished runs by seed; arms without one are left out."""
    missing: Sequence[str]
    """Names of the runs that are not finished."""

    @property
    def baseline(self) -> str:
        """The arm that the others are compared with."""
        return baseline_of(self.study)

    def seeds(self, arm: str) -> tuple[int, ...]:
        """Return the seeds of an arm's finished runs."""
        return tuple(run.seed for run in self.arms.get(arm, ()))

    def outcomes(self, arm: str, who: str, seeds: Sequence[int] | None = None) -> Table | None:
        """Return what was solved, seeds × hands; None where a run has no such policy."""
        runs = [run for run in self.arms[arm] if seeds is None or run.seed in seeds]
        found = [(run.summary.get(who) or {}).get("outcomes") for run in runs]
        marks = [line for line in found if line is not None]
        if not marks or len(marks) < len(runs):
            return None
        return np.array([[mark == "1" for mark in line] for line in marks], dtype=np.int64)

    def rates(self, arm: str, who: str) -> Scores | None:
        """Return the success rate of each run; None where a run has no such policy."""
        table = self.outcomes(arm, who)
        return None if table is None else table.mean(axis=1)


def read_results(study: Study, runs: Sequence[StudyRun], places: StudyPlaces) -> StudyResults:
    """Return what is finished of a study.

    Raises ResumeError for a run of other settings, ConfigError when runs have other panels.
    """
    found: dict[str, list[RunResult]] = {arm: [] for arm in arms_of(study)}
    missing: list[str] = []
    for run in sorted(runs, key=lambda run: run.seed):
        directory = places.run(run.name)
        if not is_finished(directory, run):
            missing.append(run.name)
            continue
        metrics = directory / METRICS_FILE
        found[run.arm].append(
            RunResult(
                arm=run.arm,
                seed=run.seed,
                summary=json.loads((directory / SUMMARY_FILE).read_bytes()),
                evaluations=read_lines(directory / EVALUATIONS_FILE),
                metrics=read_metrics(metrics) if metrics.is_file() else [],
                samples=_samples(directory, study.samples),
            )
        )
    _refuse_other_panels([result for results in found.values() for result in results])
    arms = {arm: results for arm, results in found.items() if results}
    return StudyResults(study=study, arms=arms, missing=missing)


def _samples(directory: Path, count: int) -> dict[str, Any] | None:
    if count == 1 or not has_samples(directory, count):
        return None
    return json.loads((directory / SAMPLES_FILE).read_bytes())


def _refuse_other_panels(results: Sequence[RunResult]) -> None:
    """Refuse to compare runs that were measured on different hands."""
    panels = {result.summary["agent"]["panel_sha256"]: result for result in results}
    if len(panels) > 1:
        one, other, *_ = panels.values()
        raise ConfigError(
            f"the runs {one.arm}-seed{one.seed} and {other.arm}-seed{other.seed} were measured on"
            " different panels, so they cannot be compared.",
            hint="an arm must leave the panel's hands as they are: its seed and the task's rules.",
        )


# ------------------------------------------------------------------------------------------ curves


@final
@dataclass(frozen=True, slots=True)
class Point:
    """One number of every seed at one update."""

    update: int
    values: Scores


def evaluation_curve(results: Sequence[RunResult], who: str) -> list[Point]:
    """Return the success of agent or teacher at each update at which every run has it.

    The start's evaluation is the agent's first point.
    """
    names = ("initial", "agent") if who == "agent" else (who,)
    lines = [
        {line["update"]: line["success_rate"] for line in run.evaluations if line["who"] in names}
        for run in results
    ]
    return _common(lines)


def metric_curve(results: Sequence[RunResult], name: str) -> list[Point]:
    """Return a logged number at each update at which every run has it."""
    lines = [
        {line["update"]: line[name] for line in run.metrics if line.get(name) is not None}
        for run in results
    ]
    return _common(lines)


def _common(lines: Sequence[Mapping[int, float]]) -> list[Point]:
    updates = sorted(set.intersection(*(set(line) for line in lines))) if lines else []
    return [
        Point(update, np.array([line[update] for line in lines], dtype=np.float64))
        for update in updates
    ]
