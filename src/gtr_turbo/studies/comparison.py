"""What a study's tables say, as numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from gtr_turbo.studies.results import RunResult, StudyResults
from gtr_turbo.studies.statistics import (
    Difference,
    Estimate,
    difference,
    improvement_prob,
    interquartile,
    mean_over_seeds,
    success,
)

MIN_PAIRS: Final = 2
"""Seeds that a comparison with the baseline needs."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Against:
    """An arm beside the baseline, over the seeds that both have."""

    difference: Difference
    improvement: Estimate
    """Probability that a run of the arm beats a run of the baseline."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a run of an arm took, on average."""

    num_updates: int
    env_steps: int
    minutes: float
    start_minutes: float
    """Minutes of `minutes` that the supervised start took."""
    step_milliseconds: float | None
    """Wall clock per environment step: the median over the updates of all runs."""
    num_tokens: float
    num_corrector_tokens: float
    money: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ArmRow:
    """One arm of a comparison."""

    arm: str
    seeds: tuple[int, ...]
    rates: tuple[float, ...]
    """Agent's success of each seed."""
    initial: Estimate | None
    agent: Estimate | None
    teacher: Estimate | None
    interquartile: Estimate | None
    """Interquartile mean of the agent's success."""
    against: Against | None
    """None for the baseline itself, and without common seeds."""
    pass_at: Mapping[int, Estimate]
    """k → chance that one of k tries solves a hand; empty when hands were played once."""
    cost: Cost


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """All arms of a study that have a finished run."""

    baseline: str
    rows: Sequence[ArmRow]
    missing: Sequence[str]


def compare_arms(results: StudyResults) -> Comparison:
    """Return the comparison of a study's arms, in the order of its file."""
    rows = [_row(results, arm) for arm in results.arms]
    return Comparison(baseline=results.baseline, rows=rows, missing=results.missing)


def _row(results: StudyResults, arm: str) -> ArmRow:
    rates = results.rates(arm, "agent")
    found = {who: results.outcomes(arm, who) for who in ("initial", "agent", "teacher")}
    estimates = {who: None if table is None else success(table) for who, table in found.items()}
    return ArmRow(
        arm=arm,
        seeds=results.seeds(arm),
        rates=() if rates is None else tuple(rates.tolist()),
        initial=estimates["initial"],
        agent=estimates["agent"],
        teacher=estimates["teacher"],
        interquartile=None if rates is None else interquartile(rates[:, None]),
        against=_against(results, arm),
        pass_at=_pass_at(results.arms[arm]),
        cost=_cost(results.arms[arm]),
    )


def _against(results: StudyResults, arm: str) -> Against | None:
    seeds = sorted(set(results.seeds(arm)) & set(results.seeds(results.baseline)))
    if arm == results.baseline or len(seeds) < MIN_PAIRS:
        return None
    own, other = (results.outcomes(name, "agent", seeds) for name in (arm, results.baseline))
    if own is None or other is None:
        return None
    improvement = improvement_prob(own.mean(axis=1), other.mean(axis=1))
    return Against(difference=difference(own, other), improvement=improvement)


def _pass_at(runs: Sequence[RunResult]) -> dict[int, Estimate]:
    found = [run.samples["pass_at"] for run in runs if run.samples is not None]
    if len(found) < len(runs) or not found:
        return {}
    ks = sorted(set.intersection(*(set(map(int, rates)) for rates in found)))
    return {k: mean_over_seeds(np.array([rates[str(k)] for rates in found])) for k in ks}


def _cost(runs: Sequence[RunResult]) -> Cost:
    count = len(runs)
    steps = [each for run in runs for each in run.step_milliseconds]
    return Cost(
        num_updates=runs[0].summary["updates"],
        env_steps=runs[0].summary["env_steps"],
        minutes=sum(run.minutes for run in runs) / count,
        start_minutes=sum(run.start_minutes for run in runs) / count,
        step_milliseconds=float(np.median(steps)) if steps else None,
        num_tokens=sum(run.num_tokens for run in runs) / count,
        num_corrector_tokens=sum(run.num_corrector_tokens for run in runs) / count,
        money=sum(run.cost for run in runs) / count,
    )
