import warnings
from typing import Any

import numpy as np
import pytest

from gtr_turbo.envs import check_task, make_task
from gtr_turbo.envs.check import EXPERT_LAWS, LAWS
from gtr_turbo.envs.gymnasium_task.task import GymnasiumTask
from gtr_turbo.envs.players import ExpertPlayer, play_episode
from gtr_turbo.errors import ConfigError, TaskError
from tests.envs.gymnasium_task.corridor import LENGTH, name

PLAIN = name()
ANSI = {"picture": "ansi"}
WORDS: dict[str, Any] = {"action_names": ["back", "on"]}


def corridor(variant: str = "", **rules: Any) -> GymnasiumTask:
    task = make_task(name(variant), rules, 0)
    assert isinstance(task, GymnasiumTask)
    return task


@pytest.mark.parametrize(
    ("variant", "rules"),
    [
        ("", {"prompt": "compact", "picture_size": [28, 56], "history": 2} | WORDS),
        ("Pixels", {"unreadable_reply": "random_action"}),
        ("Masked", ANSI | {"max_steps": 5}),
    ],
)
def test_a_corridor_keeps_every_law(variant: str, rules: dict[str, Any]) -> None:
    assert check_task(lambda seed: make_task(name(variant), rules, seed)).num_solvable > 0


def test_without_an_expert_the_other_laws_hold() -> None:
    report = check_task(
        lambda seed: make_task(name("Text"), {"max_steps": 4}, seed), with_expert=False
    )
    assert set(report.laws) == set(LAWS) - EXPERT_LAWS


def test_toy_text_keeps_every_law_without_pygame() -> None:
    rules = ANSI | {"kwargs": ["is_slippery=false", 'desc=["SFF", "HFG"]'], "max_steps": 6}
    report = check_task(lambda seed: make_task("gym:FrozenLake-v1", rules, seed))
    assert report.num_solvable == report.num_episodes
    assert report.num_turns == 3 * report.num_episodes


@pytest.mark.parametrize(("gym_id", "num_turns"), [("CliffWalking-v1", 13), ("Taxi-v4", None)])
def test_the_other_tables_are_solved(gym_id: str, num_turns: int | None) -> None:
    task = make_task(f"gym:{gym_id}", ANSI, 0)
    played = play_episode(task, ExpertPlayer(0), 0)
    assert (played.success, played.num_illegal) == (True, 0)
    assert num_turns in (None, played.num_turns)


def test_an_episode_is_won_by_words() -> None:
    task = corridor(**WORDS)
    start = task.reset(4)
    at = int(start.picture[0, :, 0].argmax()) // 20
    assert task.episode_kind == f"from {at}"
    results = [task.step('{"thoughts": "", "action": "On"}') for _ in range(LENGTH - 1 - at)]
    assert all(result.legal for result in results)
    assert [result.rewards["task"] for result in results] == [*[0.0] * (len(results) - 1), 1.0]
    result = results[-1]
    assert (result.terminated, result.truncated, result.success) == (True, False, True)


def test_an_end_without_reward_is_no_success() -> None:
    task = corridor()
    task.reset(0)
    while not (result := task.step(task.write_action("0"))).terminated:
        pass
    assert not result.success
    keyed = corridor(success_threshold=5.0, success_key="won")
    keyed.reset(0)
    while not (result := keyed.step(keyed.write_action("1"))).terminated:
        pass
    assert result.success


def test_what_the_environment_forbids_leaves_the_state_alone() -> None:
    task = corridor("Masked", illegal_reward=-3.0, history=9)
    seed = next(s for s in range(99) if task.reset(s) and task.episode_kind == "from 1")
    before = task.reset(seed)
    assert task.admissible_actions == ("1",)
    result = task.step(task.write_action("0"))
    assert (result.legal, result.rewards["task"], result.terminated) == (False, -3.0, False)
    assert np.array_equal(result.observation.picture, before.picture)
    assert '"0" (illegal)' in result.observation.prompt
    assert task.step(task.write_action("1")).legal
    assert task.admissible_actions == ("0", "1")


def test_every_step_counts_towards_the_limit_an_illegal_one_too() -> None:
    task = corridor(max_steps=3)
    task.reset(0)
    ends = [task.step("nothing").truncated for _ in range(3)]
    assert ends == [False, False, True]


@pytest.mark.parametrize(("variant", "limit"), [("", 12), ("Untabled", 100)])
def test_the_limit_is_the_environments_own_or_ours(variant: str, limit: int) -> None:
    task = corridor(variant)
    task.reset(0)
    count = 0
    while True:
        count += 1
        if task.step("nothing").truncated:
            break
    assert count == limit


def test_an_unreadable_reply_can_be_replaced_by_chance() -> None:
    task = corridor(unreadable_reply="random_action")
    task.reset(0)
    result = task.step("nothing")
    assert (result.random_action, result.legal, result.parsed.action) == (True, False, None)


def test_written_actions_are_passed_on() -> None:
    task = corridor("Text")
    task.reset(0)
    assert task.admissible_actions == ()
    assert task.step(task.write_action("go on")).legal
    task.reset(0)
    long = task.step(task.write_action("x" * 21))
    assert (long.legal, long.parsed.action) == (False, None)
    listed = corridor("Text", action_names=["go on", "go back"])
    listed.reset(0)
    assert listed.admissible_actions == ("go on", "go back")
    assert listed.step(listed.write_action("GO ON")).parsed.action == "go on"


def test_an_environment_that_its_seed_does_not_decide_is_found_out() -> None:
    task = corridor("Unseeded")
    task.reset(3)
    with pytest.raises(TaskError, match=r"CorridorUnseeded-v0 .* from the seed 3: the seed does"):
        task.restore(task.state())


def test_a_snapshot_of_another_task_is_refused() -> None:
    task = corridor()
    task.reset(0)
    with pytest.raises(TaskError, match="can't be restored into"):
        corridor("Masked").restore(task.state())


def test_what_cannot_be_won_is_not_solvable() -> None:
    walled = corridor(kwargs=["reachable=false"])
    walled.reset(0)
    assert not walled.solvable
    short = corridor(max_steps=1)
    kinds = {(short.reset(s) and short.episode_kind, short.solvable) for s in range(30)}
    assert kinds == {("from 1", False), ("from 2", False), ("from 3", True)}


def test_without_an_expert_nothing_is_demonstrated() -> None:
    task = corridor("Untabled")
    task.reset(0)
    assert task.solvable  # nothing is known, so no episode is left out
    with pytest.raises(TaskError, match="has no expert") as caught:
        task.demonstrate(np.random.default_rng(0))
    assert caught.value.hint is not None
    assert "sft.num_steps 0" in caught.value.hint


def test_names_must_fit_the_actions() -> None:
    with pytest.raises(ConfigError, match="holds 3 names, but there are 2 actions"):
        corridor(action_names=["a", "b", "c"])


def test_nothing_is_printed_and_nothing_warned(capsys: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        task = corridor()
        task.reset(0)
        task.step(task.write_action("1"))
    assert capsys.readouterr().out == ""


def test_the_lake_is_drawn_with_pygame() -> None:
    pytest.importorskip("pygame", reason="needs the extra gym (pygame)")
    task = make_task("gym:FrozenLake-v1", {"kwargs": ["is_slippery=false"]}, 0)
    start = task.reset(0).picture
    assert start.shape == (256, 256, 3)
    assert not np.array_equal(start, task.step(task.write_action("down")).observation.picture)


def test_minigrid_missions_and_its_bot() -> None:
    pytest.importorskip("minigrid", reason="needs the extra gym (minigrid)")
    task = make_task("gym:minigrid:BabyAI-GoToLocal-v0", {"max_steps": 40}, 0)
    assert task.reset(0).prompt.startswith("Go to ")
    assert task.solvable
    trace = task.demonstrate(np.random.default_rng(0))
    assert "My mission is to go to" in trace[0].reply
    task.reset(0)
    results = [task.step(turn.reply) for turn in trace]
    assert results[-1].success
    task.reset(0)
    wrong = task.demonstrate(np.random.default_rng(0), mistake=True)
    task.reset(0)
    assert not any(task.step(turn.reply).success for turn in wrong)
