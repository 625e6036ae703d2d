from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import gtr_turbo.envs
from gtr_turbo.envs import make_task
from gtr_turbo.envs.gym import GYM_IDS, TaskEnv, register_gym_environments
from gtr_turbo.errors import ConfigError, TaskError


@pytest.mark.parametrize("gym_id", sorted(GYM_IDS))
@pytest.mark.parametrize(
    "rules",
    [{}, {"picture": "compact"}, {"unreadable_reply": "random_action", "max_steps": 3}],
    ids=["default", "compact", "lineage"],
)
def test_gymnasiums_checker_has_nothing_to_say(gym_id: str, rules: dict[str, Any]) -> None:
    assert gtr_turbo.envs.TASKS
    env = gymnasium.make(gym_id, **rules)
    check_env(env.unwrapped)  # warnings are errors in this suite
    env.close()


def test_spaces() -> None:
    env = gymnasium.make("gtr_turbo/Points24-v0")
    assert isinstance(env.action_space, gymnasium.spaces.Discrete)
    assert env.action_space.n == 17
    assert env.observation_space.shape == (300, 300, 3)
    assert env.observation_space.dtype == np.uint8
    small = gymnasium.make("gtr_turbo/EZPoints-v0", picture="compact")
    assert isinstance(small.action_space, gymnasium.spaces.Discrete)
    assert small.action_space.n == 13
    assert small.observation_space.shape == (28, 56, 3)


def test_a_game_is_won_through_gymnasium() -> None:
    env = TaskEnv("ezpoints")
    picture, info = env.reset(seed=3)
    first, second = (str(value) for value in info["values"])
    sign = "+" if sum(info["values"]) == 12 else "*"
    assert info["solvable"]
    assert info["formula"] == []
    done: list[tuple[float, bool, bool]] = []
    for word in (first, sign, second, "="):
        picture, reward, terminated, truncated, info = env.step(env.action_names.index(word))
        done.append((reward, terminated, truncated))
    assert done == [(0, False, False)] * 3 + [(10, True, False)]
    assert info["success"]
    assert info["legal"]
    assert info["formula"] == [first, sign, second]
    assert picture.shape == (300, 300, 3)


def test_a_number_line_is_walked_through_gymnasium() -> None:
    env = TaskEnv("numberline", max_position=30, min_distance=9)
    assert env.action_names == ("-", "+")
    _, info = env.reset(seed=1)
    distance = abs(info["target"] - info["current"])
    rewards: list[float] = []
    terminated = False
    while not terminated:
        action = int(info["target"] > info["current"])
        _, reward, terminated, truncated, info = env.step(action)
        rewards.append(reward)
        assert not truncated
    assert rewards == [0] * (distance - 1) + [1]
    assert info == {
        "current": info["target"],
        "target": info["target"],
        "solvable": True,
        "legal": True,
        "success": True,
    }


def test_blackjack_through_gymnasium_tells_what_is_shown() -> None:
    env = TaskEnv("blackjack")
    assert env.action_names == ("stand", "hit")
    for seed in range(20):
        _, info = env.reset(seed=seed)
        assert len(info["dealer"]) == 1
        assert len(info["player"]) == 2
        assert info["usable_ace"] == any(name.startswith("A") for name in info["player"])
        _, reward, terminated, _, info = env.step(0)
        assert terminated
        assert len(info["dealer"]) >= 2
        assert info["success"] == (reward == 1)


def test_an_illegal_action_is_told() -> None:
    env = TaskEnv("ezpoints")
    _, info = env.reset(seed=0)
    unused = next(name for name in env.action_names if name not in map(str, info["values"]))
    _, reward, _, _, info = env.step(np.int64(env.action_names.index(unused)))
    assert (reward, info["legal"], info["success"]) == (-1, False, False)


def test_the_same_seed_deals_the_tasks_hand() -> None:
    env, task = TaskEnv("points24"), make_task("points24", {}, 0)
    picture, _ = env.reset(seed=11)
    assert np.array_equal(picture, task.reset(11).picture)


def test_later_resets_follow_from_the_seed() -> None:
    hands = []
    for env in (TaskEnv("points24"), TaskEnv("points24")):
        env.reset(seed=5)
        hands.append([env.reset()[1]["cards"] for _ in range(4)])
    assert hands[0] == hands[1]
    assert len({tuple(hand) for hand in hands[0]}) == 4


def test_rendering() -> None:
    env = TaskEnv("points24", render_mode="rgb_array")
    picture, _ = env.reset(seed=0)
    shown = env.render()
    assert shown is not None
    assert np.array_equal(shown, picture)
    silent = TaskEnv("points24")
    silent.reset(seed=0)
    assert silent.render() is None
    with pytest.raises(ConfigError, match="got 'human'"):
        TaskEnv("points24", render_mode="human")


def test_actions_outside_the_space_are_refused() -> None:
    env = TaskEnv("points24")
    env.reset(seed=0)
    for action in (17, -1):
        with pytest.raises(TaskError, match="outside 0 … 16"):
            env.step(action)


def test_unknown_rules_are_refused() -> None:
    with pytest.raises(ConfigError, match='no rule named "deel"'):
        TaskEnv("points24", deel="deck")


def test_registering_twice_changes_nothing() -> None:
    before = dict(gymnasium.registry)
    register_gym_environments()
    assert dict(gymnasium.registry) == before
