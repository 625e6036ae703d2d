import json

import numpy as np
import pytest

from gtr_turbo.envs.cards.entry import make_card_task
from gtr_turbo.envs.points24 import GAME as POINTS24
from tests.envs.cards.test_task import play, rewards, say, task_with


def test_advice_names_right_formulas_and_what_the_expert_would_write() -> None:
    task = task_with((5, 7), advice=True)
    told, reply = task.observation.advice.splitlines()
    assert told == "Right formulas that continue what stands: 5+7=12, 7+5=12."
    assert reply == task_with((5, 7)).demonstrate(np.random.default_rng(0))[0].reply
    play(task, "7")
    told, reply = task.observation.advice.splitlines()
    assert told == "Right formulas that continue what stands: 7+5=12."
    assert json.loads(reply)["action"] == "+"
    play(task, "+ 5")
    assert json.loads(task.observation.advice.splitlines()[1])["action"] == "="


def test_advice_names_five_formulas_at_most() -> None:
    told = task_with((4, 4, 10, 10), advice=True).observation.advice.splitlines()[0]
    assert told.count("=24") <= 5
    many = task_with((1, 2, 3, 4), advice=True).observation.advice.splitlines()[0]
    assert many.count("=24") == 5
    assert ", and " in many
    assert many.endswith(" more.")


@pytest.mark.parametrize("actions", ["5 5", "7 7", "5 *", "5 7"])
def test_advice_says_when_nothing_can_be_won(actions: str) -> None:
    task = task_with((5, 7), advice=True)
    play(task, actions)
    expected = "It is hopeless: no right formula for 12 continues what stands."
    right = actions in ("5 5", "7 7")  # an illegal number leaves the formula as it is
    assert (task.observation.advice == expected) != right


def test_advice_ends_with_the_episode() -> None:
    task = task_with((5, 7), advice=True)
    play(task, "5 =")
    assert task.observation.advice == ""


def test_advice_changes_nothing_else() -> None:
    told, other = (make_card_task(POINTS24, {"advice": on}, seed=3) for on in (True, False))
    for _ in range(10):
        first, second = told.reset(), other.reset()
        assert (first.prompt, first.state_key) == (second.prompt, second.state_key)
        assert (first.picture == second.picture).all()
        assert second.advice == ""
        assert told.state() == other.state()
        reply = other.demonstrate(np.random.default_rng(0), mistake=True)[0].reply
        told.step(reply)


@pytest.mark.parametrize(
    ("values", "actions", "rewarded"),
    [
        ((5, 7), "5 + 7 =", [0, 0, 0, 10]),
        ((5, 7), "5 *", [0, -1]),
        ((5, 7), "5 + 5 7 =", [0, 0, -1, 0, 10]),
        ((5, 7), "+", [-1]),
        ((1, 1, 1, 1), "1", [-1]),
        ((1, 1, 1, 1), "=", [-1]),
    ],
)
def test_a_hopeless_turn_ends_the_episode_where_the_rules_say_so(
    values: tuple[int, ...], actions: str, rewarded: list[float]
) -> None:
    task = task_with(values, end_when_hopeless=True)
    results = play(task, actions)
    assert rewards(results) == rewarded
    assert results[-1].terminated
    assert not any(result.terminated for result in results[:-1])
    assert results[-1].success == (rewarded[-1] == 10)


def test_a_formula_that_does_not_fit_any_more_is_hopeless_and_a_step_limit_is_not() -> None:
    task = task_with((5, 7), end_when_hopeless=True, max_steps=4)
    (result,) = [task.step(say("9"))]
    assert result.terminated, "three steps are left, four are needed"
    assert result.rewards["task"] == -1
    task = task_with((5, 7), end_when_hopeless=True, max_steps=1)
    (result,) = [task.step(say("9"))]
    assert (result.terminated, result.truncated) == (False, True)


def test_nothing_is_hopeless_by_default() -> None:
    assert not play(task_with((1, 1, 1, 1)), "1 1 1")[-1].terminated
