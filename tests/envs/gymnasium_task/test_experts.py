from typing import Any

import gymnasium
import numpy as np
import pytest

from gtr_turbo.envs import make_task
from gtr_turbo.envs.gymnasium_task.experts import TableExpert, find_expert
from gtr_turbo.envs.gymnasium_task.rules import GymnasiumRules
from gtr_turbo.envs.players import MistakenPlayer, measure
from tests.envs.gymnasium_task.corridor import LENGTH, Corridor


def expert_at(state: int, **options: Any) -> TableExpert:
    inner = Corridor(**options)
    inner.s = state
    return TableExpert(inner, 0.0)


@pytest.mark.parametrize("state", [1, 2, 3])
def test_the_shortest_way_is_taken(state: int) -> None:
    expert = expert_at(state)
    assert expert.choose() == 1
    num_steps = LENGTH - 1 - state
    assert expert.can_win(num_steps)
    assert not expert.can_win(num_steps - 1)


def test_nothing_wins_where_the_goal_is_walled_off() -> None:
    assert not expert_at(2, reachable=False).can_win(10**6)


def test_slipping_costs_time_not_the_way() -> None:
    expert = expert_at(2, slip=0.5)
    assert expert.choose() == 1
    assert expert.can_win(2)


def test_the_mistake_heads_for_the_pit() -> None:
    assert [expert_at(s).choose_wrongly(np.random.default_rng(0)) for s in (1, 2, 3)] == [0, 0, 0]


def test_a_mistake_on_slippery_ice_never_wins() -> None:
    found = measure(
        lambda seed: make_task("gym:FrozenLake-v1", {"picture": "ansi"}, seed),
        MistakenPlayer(0),
        5,
        seed=0,
    )
    assert found.success_rate == 0.0


def test_value_iteration_reaches_the_known_optimum_on_slippery_ice() -> None:
    # The best policy without a discount wins 82.4 % of endless episodes, and about 74 % in 100
    # steps, which is Gymnasium's own figure for the optimum (in its registration).
    lake: Any = gymnasium.make("FrozenLake-v1").unwrapped
    expert = TableExpert(lake, 0.0)
    transition = np.zeros((16, 16))
    win = np.zeros(16)
    for state in range(16):
        lake.s = state
        for chance, after, reward, end in lake.P[state][expert.choose()]:
            win[state] += chance * reward
            if not end:
                transition[state, after] += chance
    value = np.zeros(16)
    for _ in range(100):
        value = win + transition @ value
    assert value[0] == pytest.approx(0.74, abs=0.01)


def test_who_has_an_expert() -> None:
    assert isinstance(find_expert(Corridor(), GymnasiumRules()), TableExpert)
    assert find_expert(Corridor(variant="untabled"), GymnasiumRules()) is None
    assert find_expert(Corridor(), GymnasiumRules(success_key="won")) is None
