"""Advice in every task that gives it: what the expert would do, and nothing else is changed."""

import json
from typing import Any

import numpy as np
import pytest

from gtr_turbo.envs.base import AbstractTask
from gtr_turbo.envs.pool.wire import Answer, read_message, write_answer
from gtr_turbo.envs.registry import make_task

TASKS: list[tuple[str, dict[str, Any]]] = [
    ("points24", {}),
    ("ezpoints", {"prompt": "compact", "picture": "compact"}),
    ("numberline", {}),
    ("numberline", {"max_steps": 3, "prompt": "compact"}),
    ("blackjack", {}),
    ("household", {"expert": "planner", "picture": "compact", "num_scenes": 1, "max_steps": 12}),
]


def copy_of(task: AbstractTask, name: str, rules: dict[str, Any]) -> AbstractTask:
    other = make_task(name, rules, 9)
    other.restore(json.loads(json.dumps(task.state())))
    return other


def expert_line(advice: str) -> str | None:
    lines = [line for line in advice.splitlines() if line.startswith("{")]
    assert len(lines) <= 1
    return lines[0] if lines else None


@pytest.mark.parametrize(("name", "rules"), TASKS)
def test_advice_is_what_the_expert_writes_next(name: str, rules: dict[str, Any]) -> None:
    told, other = (make_task(name, rules | {"advice": on}, 0) for on in (True, False))
    num_hopeless = num_told = 0
    for seed in range(6):
        told.reset(seed)
        other.reset(seed)
        generator = np.random.default_rng(seed)
        for step in copy_of(other, name, rules).demonstrate(generator, mistake=seed % 2 == 1):
            shown, plain = told.observation, other.observation
            assert (shown.prompt, shown.state_key) == (plain.prompt, plain.state_key)
            assert (shown.picture == plain.picture).all()
            assert plain.advice == ""
            line = expert_line(shown.advice)
            if line is None:
                assert "hopeless" in shown.advice
                num_hopeless += 1
            else:
                trace = copy_of(other, name, rules).demonstrate(generator)
                assert line == trace[0].reply
                num_told += 1
            told.step(step.reply)
            other.step(step.reply)
            assert told.state() == other.state()
        assert told.observation.advice == ""
    assert num_told > 0
    assert num_hopeless > 0 or name == "blackjack"


@pytest.mark.parametrize(("name", "rules"), TASKS)
def test_advice_comes_through_from_a_worker(name: str, rules: dict[str, Any]) -> None:
    task = make_task(name, rules | {"advice": True}, 0)
    task.reset(2)
    answer = read_message(write_answer(0, task, None))
    assert isinstance(answer, Answer)
    assert answer.shown.observation.advice == task.observation.advice != ""
