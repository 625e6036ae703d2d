"""Success on a fixed panel of episodes, dealt from a seed of their own that training never uses."""

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import torch

from gtr_turbo.core.config import Config
from gtr_turbo.core.passes import pass_at_k
from gtr_turbo.core.seeding import stream_seed
from gtr_turbo.envs.base import AbstractTask
from gtr_turbo.envs.registry import make_task
from gtr_turbo.errors import ConfigError
from gtr_turbo.policies.base import AbstractPolicy


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """What a policy did on the panel."""

    success_rate: float
    ci95: tuple[float, float]
    """Wilson's 95 % interval of the success rate over episodes."""
    mean_return: float
    """Undiscounted task reward per episode."""
    num_episodes: int
    solvable_success_rate: float | None
    """Success on the episodes that can be won at all; None when there is none."""
    num_solvable: int
    by_kind: Mapping[str, tuple[int, int]]
    """Sort of episode → (episodes that were solved, episodes), sorted by name."""
    panel_sha256: str
    """Hash of the panel's first states: equal hashes mean the same episodes."""
    outcomes: str
    """One digit per episode in the panel's order, 1 where it was solved."""
    thoughts: Mapping[str, float | int]
    """What the task's rules find of the thoughts: name → share of the turns in which it was to be
    judged and was good; `judged`: turns about which the rules say anything."""

    def to_json(self) -> dict[str, Any]:
        """Return the numbers under the names of `summary.json`."""
        return {
            "success_rate": self.success_rate,
            "ci95": list(self.ci95),
            "return": self.mean_return,
            "episodes": self.num_episodes,
            "solvable_success_rate": self.solvable_success_rate,
            "solvable_episodes": self.num_solvable,
            "by_kind": {
                kind: {"success_rate": solved / total, "episodes": total}
                for kind, (solved, total) in self.by_kind.items()
            },
            "panel_sha256": self.panel_sha256,
            "outcomes": self.outcomes,
            "thoughts": dict(self.thoughts),
        }


def evaluate(
    policy: AbstractPolicy,
    config: Config,
    num_episodes: int | None = None,
    tick: Callable[[int, int], None] = lambda done, total: None,
    *,
    sample: int = 0,
) -> Evaluation:
    """Return the policy's success on the first `num_episodes` episodes of the panel.

    The panel depends on `evaluation.panel_seed` and the task's rules alone; training rules that end
    episodes early are off where `task.evaluation_rules` says so. Replies are sampled at
    `evaluation.temperature` from a generator that the panel seeds, so equal weights give equal
    numbers on a CPU. `evaluation.num_parallel` leaves the panel and its hash alone, but decides
    which random numbers reach which reply: under another value the success differs by chance.
    Another `sample` plays the same panel with other random numbers. `tick` is called with (episodes
    done, episodes in all).

    Raises ConfigError when `num_episodes` is less than 1.
    """
    settings = config.evaluation
    total = settings.num_episodes if num_episodes is None else num_episodes
    if total < 1:
        raise ConfigError(f"the number of episodes must be at least 1, got {total}.")
    rules = {**config.task.rules, **config.task.evaluation_rules}
    stream = ("sampler", sample) if sample else ("sampler",)
    generator = torch.Generator(_device(policy)).manual_seed(
        stream_seed(settings.panel_seed, *stream)
    )
    sampling = policy.sampling(settings.temperature, config.rollout.max_new_tokens)
    outcomes: list[_Outcome] = []
    panel = hashlib.sha256()
    for first in range(0, total, settings.num_parallel):
        numbers = range(first, min(first + settings.num_parallel, total))
        tasks = [_panel_task(config, rules, number) for number in numbers]
        for task in tasks:
            panel.update(task.observation.state_key.encode() + b"\0")
        outcomes += _play(
            policy, tasks, lambda prompts: policy.respond(prompts, sampling, generator)
        )
        tick(len(outcomes), total)
    wins = [outcome.success for outcome in outcomes]
    solvable = [outcome.success for outcome in outcomes if outcome.solvable]
    kinds = sorted({outcome.kind for outcome in outcomes})
    return Evaluation(
        success_rate=sum(wins) / total,
        ci95=wilson_interval(sum(wins), total),
        mean_return=sum(outcome.task_return for outcome in outcomes) / total,
        num_episodes=total,
        solvable_success_rate=sum(solvable) / len(solvable) if solvable else None,
        num_solvable=len(solvable),
        by_kind={kind: _count(outcomes, kind) for kind in kinds},
        panel_sha256=panel.hexdigest(),
        outcomes="".join("1" if win else "0" for win in wins),
        thoughts=_share_of_good(verdict for outcome in outcomes for verdict in outcome.verdicts),
    )


def evaluate_samples(
    policy: AbstractPolicy,
    config: Config,
    num_episodes: int | None,
    num_samples: int,
    tick: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, Any]:
    """Return the panel's numbers, with `samples` and `pass_at` when each hand is played again.

    The first sample gives the numbers that one evaluation gives; `samples` holds the outcomes of
    each, `pass_at` the chance that one of k tries solves a hand, for k = 1 up to `num_samples`.

    Raises ConfigError when a number is less than 1.
    """
    if num_samples < 1:
        raise ConfigError(f"the number of samples must be at least 1, got {num_samples}.")
    played = [
        evaluate(policy, config, num_episodes, tick, sample=sample) for sample in range(num_samples)
    ]
    found = played[0].to_json()
    if num_samples > 1:
        outcomes = [each.outcomes for each in played]
        solved = [tries.count("1") for tries in zip(*outcomes, strict=True)]
        found["samples"] = outcomes
        found["pass_at"] = {
            str(k): pass_at_k(solved, num_samples, k) for k in range(1, num_samples + 1)
        }
    return found


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Outcome:
    """How one episode of the panel went."""

    kind: str
    success: bool
    task_return: float
    solvable: bool
    verdicts: tuple[Mapping[str, bool], ...]
    """What the task's rules found of the thought of each turn."""


def _share_of_good(verdicts: Iterable[Mapping[str, bool]]) -> dict[str, float | int]:
    """Return the rate of each judgement, and in how many turns there was any."""
    num_good, num_judged = Counter[str](), Counter[str]()
    num_turns = 0
    for verdict in verdicts:
        num_turns += bool(verdict)
        num_judged.update(verdict.keys())
        num_good.update(name for name, is_good in verdict.items() if is_good)
    rates = {name: num_good[name] / num_judged[name] for name in sorted(num_judged)}
    return {**rates, "judged": num_turns}


def _count(outcomes: Sequence[_Outcome], kind: str) -> tuple[int, int]:
    own = [outcome.success for outcome in outcomes if outcome.kind == kind]
    return sum(own), len(own)


def _panel_task(config: Config, rules: dict[str, Any], number: int) -> AbstractTask:
    seed = stream_seed(config.evaluation.panel_seed, "panel", number)
    task = make_task(config.task.name, rules, seed)
    task.reset(seed)
    return task


def _play(
    policy: AbstractPolicy, tasks: Sequence[AbstractTask], respond: Callable[..., Any]
) -> list[_Outcome]:
    """Return how one episode of each task went, played side by side."""
    returns = [0.0] * len(tasks)
    wins = [False] * len(tasks)
    verdicts: list[list[Mapping[str, bool]]] = [[] for _ in tasks]
    open_tasks = list(range(len(tasks)))
    while open_tasks:
        prompts = policy.encode([tasks[index].observation for index in open_tasks])
        still_open: list[int] = []
        for index, reply in zip(open_tasks, respond(prompts), strict=True):
            verdicts[index].append(tasks[index].judge_thought(reply.text))
            result = tasks[index].step(reply.text)
            returns[index] += result.rewards["task"]
            wins[index] = wins[index] or result.success
            if not (result.terminated or result.truncated):
                still_open.append(index)
        open_tasks = still_open
    return [
        _Outcome(
            kind=task.episode_kind,
            success=win,
            task_return=value,
            solvable=task.solvable,
            verdicts=tuple(found),
        )
        for win, value, task, found in zip(wins, returns, tasks, verdicts, strict=True)
    ]


def _device(policy: AbstractPolicy) -> torch.device:
    return next(iter(policy.critic_parameters()))[1].device


Z_95 = 1.959964
"""Normal quantile of a two-sided 95 % interval."""


def wilson_interval(successes: int, total: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a rate; it stays inside [0, 1] and is sound near the ends.

    >>> [round(x, 3) for x in wilson_interval(50, 100)]
    [0.404, 0.596]
    """
    rate, square = successes / total, Z_95**2
    centre = (rate + square / (2 * total)) / (1 + square / total)
    spread = math.sqrt(rate * (1 - rate) / total + square / (4 * total**2))
    half = Z_95 * spread / (1 + square / total)
    # At 0 and 1 an end is the rate itself, which rounding could miss.
    return max(0.0, min(rate, centre - half)), min(1.0, max(rate, centre + half))
