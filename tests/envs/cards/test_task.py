import json
from typing import Any

import numpy as np
import pytest

from gtr_turbo.core.turns import StepResult
from gtr_turbo.envs.cards.entry import make_card_task
from gtr_turbo.envs.cards.hands import Card
from gtr_turbo.envs.cards.task import CardTask
from gtr_turbo.envs.ezpoints import GAME as EZPOINTS
from gtr_turbo.envs.points24 import GAME as POINTS24
from gtr_turbo.envs.replies import Reason
from gtr_turbo.errors import ConfigError, TaskError

CODE_RULES = {"illegal_action": "blank_appended", "length_limit": "tokens"}


def task_with(values: tuple[int, ...], **rules: Any) -> CardTask:
    """Return a task with these cards on the table, all hearts, put there through a snapshot."""
    game = POINTS24 if len(values) == 4 else EZPOINTS
    task = make_card_task(game, rules, seed=0)
    task.reset()
    state = task.state()
    state["episode"]["hand"] = [[value, "H"] for value in values]
    task.restore(state)
    return task


def say(action: str) -> str:
    return json.dumps({"cards": [], "formula": "", "thoughts": "", "action": action})


def play(task: CardTask, actions: str) -> list[StepResult]:
    return [task.step(say(action)) for action in actions.split()]


def rewards(results: list[StepResult]) -> list[float]:
    return [result.rewards["task"] for result in results]


def test_a_right_formula_wins() -> None:
    results = play(task_with((10, 7, 4, 4)), "( 10 - 7 ) * ( 4 + 4 ) =")
    assert rewards(results) == [0.0] * 11 + [10.0]
    assert all(result.legal and result.parsed.valid_format for result in results)
    assert [result.terminated for result in results] == [False] * 11 + [True]
    assert [result.success for result in results] == [False] * 11 + [True]
    assert not any(result.truncated for result in results)


@pytest.mark.parametrize(
    ("values", "actions"),
    [
        ((10, 7, 4, 4), "10 - 7 * 4 + 4 ="),  # another value
        ((4, 6, 1, 1), "4 * 6 ="),  # 24, but two cards are left
        ((10, 7, 4, 4), "="),  # nothing
        ((10, 7, 4, 4), "( 10 - 7 ) * ( 4 + 4 ="),  # no formula
        ((10, 7, 4, 4), "10 / ( 7 - 4 - 4 + ="),
        ((4, 6, 1, 1), "4 * 6 1 1 ="),  # juxtaposition is no product
        ((2, 4, 1, 1), "2 4 * 1 * 1 ="),  # neighbours don't join to 24
    ],
)
def test_a_wrong_formula_fails(values: tuple[int, ...], actions: str) -> None:
    last = play(task_with(values), actions)[-1]
    assert (last.rewards["task"], last.terminated, last.success, last.legal) == (
        -1,
        True,
        False,
        True,
    )


def test_exact_arithmetic_wins_where_floating_point_loses() -> None:
    assert 8 / (3 - 8 / 3) != 24
    assert play(task_with((3, 3, 8, 8)), "8 / ( 3 - 8 / 3 ) =")[-1].success


def test_face_cards_count_as_ten_or_as_their_rank() -> None:
    assert play(task_with((13, 12, 11, 4)), "10 + 10 + 4 + 10 =")[-1].rewards["task"] == -1
    task = task_with((13, 11, 5, 5), face_cards_as_ten=False)
    assert play(task, "13 + 11 + 5 - 5 =")[-1].success
    assert task_with((13, 11, 5, 5)).step(say("13")).parsed.reason == Reason.UNKNOWN_ACTION


def test_four_cards_may_be_waived() -> None:
    assert play(task_with((4, 6, 1, 1), must_use_all_cards=False), "4 * 6 =")[-1].success


def test_a_number_used_too_often_is_illegal_and_leaves_the_state() -> None:
    task = task_with((4, 4, 7, 10))
    results = play(task, "4 4 4 3 +")
    assert [result.legal for result in results] == [True, True, False, False, True]
    assert rewards(results) == [0, 0, -1, -1, 0]
    assert task.formula == ("4", "4", "+")
    assert not any(result.terminated for result in results)


def test_the_code_appends_a_blank_for_an_illegal_number() -> None:
    task = task_with((10, 7, 4, 4), illegal_action="blank_appended")
    results = play(task, "( 10 - 9 7 ) * ( 4 + 4 ) =")
    assert rewards(results) == [0, 0, 0, -1, 0, 0, 0, 0, 0, 0, 0, 0, 10]
    assert task.formula[3] == " "
    assert task.observation.prompt.count("(10- 7)*(4+4)") == 1


@pytest.mark.parametrize("blanks", ["unchanged", "blank_appended"])
def test_an_unreadable_reply_is_illegal_and_counts_as_a_step(blanks: str) -> None:
    task = task_with((10, 7, 4, 4), illegal_action=blanks, max_steps=3)
    results = [task.step(text) for text in ("", say("J"), "{")]
    assert rewards(results) == [-1, -1, -1]
    assert not any(result.legal for result in results)
    assert [result.parsed.reason for result in results] == [
        Reason.EMPTY,
        Reason.UNKNOWN_ACTION,
        Reason.NO_ACTION,
    ]
    assert task.formula == ()
    assert [result.truncated for result in results] == [False, False, True]


def test_operators_and_brackets_are_always_legal() -> None:
    results = play(task_with((10, 7, 4, 4)), ") * * ( / ( )")
    assert rewards(results) == [0] * 7
    assert all(result.legal for result in results)


def test_twenty_steps_truncate() -> None:
    results = play(task_with((10, 7, 4, 4)), "+ " * 20)
    assert [result.truncated for result in results] == [False] * 19 + [True]
    assert not any(result.terminated for result in results)


def test_the_twentieth_step_may_still_win() -> None:
    last = play(task_with((10, 7, 4, 4)), "9 " * 8 + "( 10 - 7 ) * ( 4 + 4 ) =")[-1]
    assert (last.success, last.terminated, last.truncated) == (True, True, False)


def test_the_code_allows_21_tokens_and_ends_at_the_22nd_step() -> None:
    task = task_with((10, 7, 4, 4), **CODE_RULES)
    results = play(task, "+ " * 22)
    assert rewards(results) == [0] * 21 + [-1]
    assert [result.truncated for result in results] == [False] * 21 + [True]
    assert len(task.formula) == 21
    assert not results[-1].legal


def test_the_code_refuses_even_the_equals_sign_beyond_its_length() -> None:
    task = task_with((5, 7), **CODE_RULES)
    last = play(task, "5 + 7 + + + =")[-1]
    assert (last.truncated, last.terminated, last.rewards["task"]) == (True, False, -1)


def test_unreadable_replies_end_after_300_steps_even_under_a_token_limit() -> None:
    task = task_with((10, 7, 4, 4), **CODE_RULES)
    results = [task.step("") for _ in range(300)]
    assert [result.truncated for result in results] == [False] * 299 + [True]


@pytest.mark.parametrize("first", ["9", "="])
def test_early_truncation_ends_at_the_first_penalty(first: str) -> None:
    task = task_with((10, 7, 4, 4), end_at_first_penalty=True)
    results = play(task, f"10 + {first}")
    assert (results[-1].terminated, results[-1].truncated) == (True, False)
    assert rewards(results) == [0, 0, -1]
    with pytest.raises(TaskError, match="is over"):
        task.step(say("+"))


def test_early_truncation_leaves_a_length_limit_a_truncation() -> None:
    task = task_with((5, 7), end_at_first_penalty=True, **CODE_RULES)
    last = play(task, "5 + 7 + + + +")[-1]
    assert (last.terminated, last.truncated) == (False, True)


def test_rewards_are_switches() -> None:
    rules = {"reward_success": 1.0, "reward_failure": -0.5, "reward_illegal": 0.0}
    assert rewards(play(task_with((5, 7), **rules), "9 5 + 7 =")) == [0, 0, 0, 0, 1]
    assert rewards(play(task_with((5, 7), **rules), "5 =")) == [0, -0.5]


def test_an_unreadable_reply_may_become_a_counted_random_action() -> None:
    actions = []
    for seed in range(40):
        task = make_card_task(EZPOINTS, {"unreadable_reply": "random_action"}, seed=0)
        task.reset(seed)
        result = task.step("gibberish")
        assert result.random_action
        assert not result.legal
        assert result.parsed.action is None
        actions.append((result.rewards["task"], task.formula))
        again = make_card_task(EZPOINTS, {"unreadable_reply": "random_action"}, seed=9)
        again.reset(seed)
        again.step("gibberish")
        assert again.formula == task.formula
    assert {reward for reward, _ in actions} == {0, -1}
    assert len({formula for _, formula in actions}) > 5


def test_a_readable_reply_never_becomes_a_random_action() -> None:
    task = task_with((5, 7), unreadable_reply="random_action")
    result = task.step(say("9"))
    assert not result.random_action
    assert not result.legal


def test_seeds_are_a_stream_of_their_own() -> None:
    first, second = (make_card_task(POINTS24, {}, seed=5) for _ in range(2))
    seeds = []
    for _ in range(5):
        first.reset()
        seeds.append(first.episode_seed)
        second.reset()
        second.reset(123)
        second.step("")
    assert len(set(seeds)) == 5
    other = make_card_task(POINTS24, {}, seed=6)
    other.reset()
    assert other.episode_seed not in seeds
    other.reset(seeds[3])
    first.reset(seeds[3])
    assert other.hand == first.hand


def test_only_solvable_hands() -> None:
    plain = make_card_task(POINTS24, {}, seed=0)
    picky = make_card_task(POINTS24, {"only_solvable": True}, seed=0)
    num_solvable = 0
    for seed in range(100):
        plain.reset(seed)
        picky.reset(seed)
        assert picky.solvable
        num_solvable += plain.solvable
        if plain.solvable:
            assert plain.hand == picky.hand
    assert 51 < num_solvable < 95  # 73 of 100; five standard deviations of 4.4 are 22


def test_state_keys_tell_states_apart() -> None:
    task = task_with((5, 7))
    keys = [task.observation.state_key]
    keys += [result.observation.state_key for result in play(task, "9 5 + =")]
    assert len(set(keys)) == 5
    assert keys[0] == "ezpoints-v0: 5H 7H: : 0"
    assert keys[-1] == "ezpoints-v0: 5H 7H: 5+: 4 ended"


def test_an_observation_is_made_once() -> None:
    task = task_with((5, 7))
    assert task.observation is task.observation


def test_demonstrations_follow_their_plan_and_win() -> None:
    task = task_with((10, 7, 4, 4))
    trace = task.demonstrate(np.random.default_rng(0))
    replies = [json.loads(turn.reply) for turn in trace]
    plan = "".join(reply["action"] for reply in replies)
    assert plan == "(10-7)*(4+4)="
    assert all(f"{plan}24" in reply["thoughts"] for reply in replies)
    assert [reply["formula"] for reply in replies][:3] == ["", "(", "(10"]
    assert replies[0]["cards"] == ["10H", "7H", "4H", "4H"]
    assert trace[1].observation.prompt.count('"("') == 2


def test_compact_demonstrations_are_short() -> None:
    task = task_with((5, 7), prompt="compact")
    replies = [turn.reply for turn in task.demonstrate(np.random.default_rng(0))]
    assert replies == [
        '{"cards":["5","7"],"formula":"","thoughts":"5+7=12","action":"5"}',
        '{"cards":["5","7"],"formula":"5","thoughts":"5+7=12","action":"+"}',
        '{"cards":["5","7"],"formula":"5+","thoughts":"5+7=12","action":"7"}',
        '{"cards":["5","7"],"formula":"5+7","thoughts":"5+7=12","action":"="}',
    ]


def test_a_hopeless_hand_is_handed_in_at_once() -> None:
    task = task_with((1, 1, 1, 1), prompt="compact")
    assert not task.solvable
    (turn,) = task.demonstrate(np.random.default_rng(0))
    assert turn.reply == '{"cards":["A","A","A","A"],"formula":"","thoughts":"none","action":"="}'


def test_a_demonstration_goes_on_from_the_middle() -> None:
    task = task_with((5, 7), illegal_action="blank_appended")
    play(task, "7 9")
    actions = [json.loads(t.reply)["action"] for t in task.demonstrate(np.random.default_rng(0))]
    assert actions == ["+", "5", "="]


@pytest.mark.parametrize(
    ("rules", "before", "actions"),
    [
        ({"max_steps": 5}, "9", "5+7="),
        ({"max_steps": 5}, "9 9", "="),
        ({"max_tokens": 3, **CODE_RULES}, "", "5+7="),
        ({"max_tokens": 2, **CODE_RULES}, "", "="),
        ({"max_tokens": 3, **CODE_RULES}, "9", "="),
    ],
)
def test_the_expert_minds_the_length_limit(
    rules: dict[str, Any], before: str, actions: str
) -> None:
    task = task_with((5, 7), **rules)
    play(task, before)
    trace = task.demonstrate(np.random.default_rng(0))
    assert "".join(json.loads(turn.reply)["action"] for turn in trace) == actions


def test_a_mistake_says_and_does_the_same_wrong_thing() -> None:
    generator = np.random.default_rng(0)
    for mistaken in range(20):
        task = task_with((10, 7, 4, 4))
        replies = [json.loads(t.reply) for t in task.demonstrate(generator, mistake=True)]
        plan = "".join(reply["action"] for reply in replies)
        assert plan.endswith("="), mistaken
        assert all(f"{plan}24" in reply["thoughts"] for reply in replies)
        assert sorted(r["action"] for r in replies if r["action"].isdigit()) == [
            "10",
            "4",
            "4",
            "7",
        ]


def test_a_demonstration_needs_a_running_episode() -> None:
    task = task_with((5, 7))
    task.demonstrate(np.random.default_rng(0))
    with pytest.raises(TaskError, match="takes no step"):
        task.demonstrate(np.random.default_rng(0))
    with pytest.raises(TaskError, match="takes no step"):
        task.demonstrate(np.random.default_rng(0), mistake=True)


def test_nothing_works_before_the_first_reset() -> None:
    task = make_card_task(EZPOINTS, {}, seed=0)
    for use in (
        lambda: task.observation,
        lambda: task.episode_seed,
        lambda: task.solvable,
        lambda: task.step(""),
        lambda: task.demonstrate(np.random.default_rng(0)),
    ):
        with pytest.raises(TaskError, match="has no episode yet") as caught:
            use()
        assert caught.value.hint == "call `reset()` first."


def test_a_snapshot_before_the_first_reset() -> None:
    task, other = (make_card_task(EZPOINTS, {}, seed=seed) for seed in (1, 2))
    other.reset()
    other.restore(json.loads(json.dumps(task.state())))
    with pytest.raises(TaskError, match="no episode"):
        other.step("")
    assert task.reset().state_key == other.reset().state_key
    assert task.episode_seed == other.episode_seed


def test_random_actions_continue_after_a_snapshot() -> None:
    rules = {"unreadable_reply": "random_action"}
    task = make_card_task(POINTS24, rules, seed=0)
    compared = 0
    for seed in range(10):
        task.reset(seed)
        result = task.step("")
        while not (result.terminated or result.truncated):
            copy = make_card_task(POINTS24, rules, seed=77)
            copy.restore(json.loads(json.dumps(task.state())))
            result, twin = task.step(""), copy.step("")
            assert (copy.formula, twin.rewards) == (task.formula, result.rewards)
            compared += 1
    assert compared > 30


def test_another_tasks_snapshot_is_refused() -> None:
    task, other = make_card_task(EZPOINTS, {}, 0), make_card_task(POINTS24, {}, 0)
    for state, name in ((other.state(), "'points24-v0'"), ({}, "None")):
        with pytest.raises(TaskError, match=f"a snapshot of {name} can't be restored"):
            task.restore(state)


@pytest.mark.parametrize("damage", [{"seeds": {}}, {"chance": 3}, {"episode": {"seed": 1}}])
def test_a_damaged_snapshot_is_refused_and_changes_nothing(damage: dict[str, Any]) -> None:
    task = make_card_task(EZPOINTS, {}, 0)
    task.reset()
    before = task.state()
    with pytest.raises(TaskError, match="is damaged"):
        task.restore(before | damage)
    assert task.state() == before


def test_negative_seeds_are_refused() -> None:
    for use in (lambda: make_card_task(EZPOINTS, {}, -1), lambda: task_with((5, 7)).reset(-1)):
        with pytest.raises(ConfigError, match="must not be negative, got -1"):
            use()


def test_the_table_is_laid_by_the_hand() -> None:
    task = task_with((5, 7))
    assert task.hand == (Card(5, "H"), Card(7, "H"))
    assert task.observation.picture.shape == (300, 300, 3)
    assert task_with((5, 7), picture="compact").observation.picture.shape == (28, 56, 3)
