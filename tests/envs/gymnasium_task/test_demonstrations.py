import json

import numpy as np

from gtr_turbo.envs import make_task
from tests.envs.gymnasium_task.corridor import name

LAKE = "gym:FrozenLake-v1"
RULES = {"picture": "ansi", "kwargs": ["is_slippery=false"]}


def actions_of(task_name: str, *, mistake: bool, seed: int = 0) -> list[str]:
    task = make_task(task_name, RULES if task_name == LAKE else {}, 0)
    task.reset(seed)
    trace = task.demonstrate(np.random.default_rng(seed), mistake=mistake)
    return [json.loads(turn.reply)["action"] for turn in trace]


def test_the_right_trace_is_a_shortest_one() -> None:
    assert len(actions_of(LAKE, mistake=False)) == 6  # three down, three to the right


def test_the_wrong_trace_ends_in_a_hole_and_not_after_endless_bumps() -> None:
    assert len(actions_of(LAKE, mistake=True)) == 2  # the nearest hole is in row 2, column 2


def test_the_thoughts_say_where_and_what_follows() -> None:
    task = make_task(LAKE, RULES, 0)
    task.reset(0)
    first = json.loads(task.demonstrate(np.random.default_rng(0))[0].reply)
    assert first["thoughts"].startswith("I stand in row 1, column 1; the goal is in row 4")
    assert f"so {first['action']} comes next" in first["thoughts"]


def test_the_corridor_is_walked_on_or_back() -> None:
    assert set(actions_of(name(), mistake=False)) == {"1"}
    assert set(actions_of(name(), mistake=True)) == {"0"}
