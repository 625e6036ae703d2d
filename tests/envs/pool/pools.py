"""Pools of both kinds, and replies that are played in them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from gtr_turbo.core.turns import StepResult
from gtr_turbo.envs.pool.base import AbstractPool, Fault, Outcome
from gtr_turbo.envs.pool.in_process import InProcessPool
from gtr_turbo.envs.pool.processes import ProcessPool, ProcessSettings, TaskSource
from gtr_turbo.envs.pool.wire import to_json
from gtr_turbo.envs.registry import make_task
from tests.envs.pool.faulty import FACTORY

GAME = "ezpoints"
RULES: dict[str, Any] = {"picture": "compact", "max_steps": 3, "unreadable_reply": "random_action"}
SEEDS = (11, 12, 13)


@contextmanager
def open_pool(
    kind: str,
    *,
    seeds: Sequence[int] = SEEDS,
    workers: int = 2,
    rules: dict[str, Any] | None = None,
    factory: str = FACTORY,
    **settings: Any,
) -> Iterator[AbstractPool]:
    """Open a pool, of processes that can be told to fail or in this one; close it in the end."""
    given = RULES if rules is None else rules
    pool: AbstractPool
    if kind == "in_process":
        pool = InProcessPool([make_task(GAME, given, seed) for seed in seeds])
    else:
        patience = {"step_deadline": 20.0, "start_deadline": 60.0, **settings}
        pool = ProcessPool(
            TaskSource(name=GAME, rules=given, factory=factory),
            seeds,
            ProcessSettings(num_workers=workers, **patience),
        )
    try:
        yield pool
    finally:
        pool.close()


def reply(number: int) -> str:
    """Return one of several replies: good ones, bad ones, unreadable ones."""
    texts = [
        '{"cards": [], "formula": "", "thoughts": "", "action": "+"}',
        "no idea",
        '{"cards": [], "formula": "", "thoughts": "\\ud800", "action": "\\ud800"}',
        '{"cards": [], "formula": "", "thoughts": "", "action": "="}',
        '{"cards": [], "formula": "", "thoughts": "", "action": "7"}',
    ]
    return texts[number % len(texts)]


def known(outcome: Outcome) -> Any:
    """Return an outcome as values that can be compared."""
    if isinstance(outcome, Fault):
        return "fault"
    seen = outcome.observation
    return (
        seen.picture.tobytes(), seen.picture.shape, seen.prompt, seen.state_key, outcome.parsed,
        outcome.legal, dict(outcome.rewards), outcome.terminated, outcome.truncated,
        outcome.success, outcome.random_action,
    )  # fmt: skip


def standing(pool: AbstractPool) -> list[Any]:
    """Return where each environment stands, its generators included."""
    return [
        (now.seed, now.observation.prompt, now.observation.state_key,
         now.observation.picture.tobytes(), to_json(state))
        for now, state in zip(pool.shown, pool.state(), strict=True)
    ]  # fmt: skip


def play(
    pool: AbstractPool, rounds: int, said: dict[tuple[int, int], str] | None = None
) -> list[list[Any]]:
    """Return, for each environment, what it answered in each round and where it stood then.

    `said` replaces the replies of (round, environment).
    """
    history: list[list[Any]] = [[] for _ in pool.shown]
    for number in range(rounds):
        replies = [reply(number + index) for index in range(len(history))]
        for (at, index), text in (said or {}).items():
            if at == number:
                replies[index] = text
        outcomes = pool.step(replies)
        for index, now in enumerate(standing(pool)):
            history[index].append((known(outcomes[index]), now))
    return history


def results(outcomes: Sequence[Outcome]) -> list[StepResult]:
    """Return the outcomes, none of which is a fault."""
    found = [outcome for outcome in outcomes if isinstance(outcome, StepResult)]
    assert len(found) == len(outcomes)
    return found
