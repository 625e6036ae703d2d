import json
from typing import Any

import numpy as np
import pytest

from gtr_turbo.core.turns import StepResult
from gtr_turbo.envs.blackjack.policy import best_play
from gtr_turbo.envs.blackjack.rules import BlackjackRules, card_value, count
from gtr_turbo.envs.blackjack.task import ENTRY, BlackjackTask, make_blackjack
from gtr_turbo.envs.check import LAWS, check_task
from gtr_turbo.errors import ConfigError, TaskError


def task_with(*ranks: int, **rules: Any) -> BlackjackTask:
    """Return a task with these cards on top: two to the dealer, two to the player, the rest."""
    task = make_blackjack(rules, seed=0)
    task.reset()
    state = task.state()
    shoe = state["episode"]["shoe"]
    state["episode"]["shoe"] = [*([rank, "S"] for rank in ranks), *shoe[len(ranks) :]]
    task.restore(state)
    return task


def play(task: BlackjackTask, actions: str) -> list[StepResult]:
    return [task.step(task.write_action(action)) for action in actions.split()]


def rewards(results: list[StepResult]) -> list[float]:
    return [result.rewards["task"] for result in results]


def names(task: BlackjackTask) -> tuple[str, str]:
    """Return the player's faces and the dealer's, as far as they are shown."""
    own, other = ("".join(card.face for card in hand) for hand in (task.player, task.dealer))
    return own, other


def test_a_won_hand() -> None:
    task = task_with(6, 13, 5, 6, 12, 11)
    assert names(task) == ("56", "6")
    results = play(task, "hit stand")
    assert names(task) == ("56Q", "6KJ")
    assert rewards(results) == [0, 1]
    assert [result.terminated for result in results] == [False, True]
    assert [result.success for result in results] == [False, True]
    with pytest.raises(TaskError, match="is over"):
        play(task, "hit")


def test_a_drawn_and_a_lost_hand_are_no_success() -> None:
    for ranks, reward in (((10, 9, 12, 9), 0), ((10, 9, 12, 8), -1)):
        (result,) = play(task_with(*ranks), "stand")
        assert (result.rewards["task"], result.terminated, result.success) == (reward, True, False)
        assert result.legal


def test_more_than_21_loses_at_once() -> None:
    task = task_with(2, 3, 12, 8, 4)
    (result,) = play(task, "hit")
    assert (result.rewards["task"], result.terminated, result.success) == (-1, True, False)
    assert names(task) == ("Q84", "23")


def test_an_ace_saves() -> None:
    results = play(task_with(10, 7, 1, 6, 12, 4), "hit hit stand")
    assert rewards(results) == [0, 0, 1]


@pytest.mark.parametrize(("natural", "reward"), [("plain", 1), ("bonus", 1.5), ("wins", 1)])
def test_a_natural(natural: str, reward: float) -> None:
    (result,) = play(task_with(10, 9, 1, 13, natural=natural), "stand")
    assert rewards([result]) == [reward]
    assert result.success


def test_an_unreadable_reply_changes_nothing_and_counts() -> None:
    task = task_with(2, 3, 4, 5, max_steps=2)
    results = [task.step("hit me"), task.step('{"action": "double"}')]
    assert rewards(results) == [-1, -1]
    assert [result.truncated for result in results] == [False, True]
    assert not any(result.legal or result.terminated for result in results)
    assert names(task) == ("45", "23")


def test_an_unreadable_reply_may_become_a_counted_random_action() -> None:
    lengths = set()
    for seed in range(20):
        task = make_blackjack({"unreadable_reply": "random_action"}, seed=0)
        task.reset(seed)
        result = task.step("gibberish")
        assert result.random_action
        assert not result.legal
        assert result.parsed.action is None
        lengths.add(len(task.player))
    assert lengths == {2, 3}


def test_random_actions_leave_the_cards_alone() -> None:
    rules = {"unreadable_reply": "random_action"}
    for seed in range(20):
        task, other = make_blackjack(rules, 0), make_blackjack(rules, 0)
        task.reset(seed)
        other.reset(seed)
        task.step("gibberish")
        for _ in range(len(task.player) - 2):
            play(other, "hit")
        assert task.player == other.player


def test_early_truncation_ends_at_the_first_penalty() -> None:
    result = task_with(2, 3, 4, 5, end_at_first_penalty=True).step("")
    assert (result.terminated, result.truncated, result.success) == (True, False, False)


def test_twenty_steps_suffice_for_the_longest_hand() -> None:
    """21 aces are 21: 19 hits after the first two; the next card exceeds it in step 20."""
    task = task_with(2, 3, *(1,) * 22)
    results = play(task, "hit " * 20)
    assert rewards(results) == [0] * 19 + [-1]
    assert (results[-1].terminated, results[-1].truncated) == (True, False)


def test_rewards_are_switches() -> None:
    rules = {"reward_win": 3, "reward_draw": 1, "reward_loss": -5, "reward_natural": 4}
    assert rewards(play(task_with(10, 7, 10, 8, **rules), "stand")) == [3]
    assert rewards(play(task_with(10, 8, 10, 8, **rules), "stand")) == [1]
    assert rewards(play(task_with(10, 9, 10, 8, **rules), "stand")) == [-5]
    assert rewards([task_with(10, 9, 10, 8, reward_illegal=-0.5).step("")]) == [-0.5]


def test_both_actions_are_admissible_until_the_end() -> None:
    task = task_with(10, 9, 10, 8)
    assert task.admissible_actions == ("stand", "hit")
    play(task, "stand")
    assert task.admissible_actions == ()


def test_solvable_says_whether_the_best_play_wins() -> None:
    assert task_with(10, 7, 10, 8).solvable
    assert not task_with(10, 8, 10, 8).solvable
    assert not task_with(10, 8, 10, 6, 10).solvable  # 16 against 10 is hit
    assert task_with(10, 8, 10, 6, 5).solvable
    assert not task_with(10, 7, 10, 3, 5, max_steps=1).solvable  # it hits, and there it ends


def test_solvable_looks_from_the_start() -> None:
    task = task_with(10, 7, 10, 8, 9)
    play(task, "hit")
    assert task.solvable


def test_the_expert_plays_best_and_says_what_it_sees() -> None:
    best = best_play(BlackjackRules())
    for seed in range(60):
        task = make_blackjack({"prompt": "compact"}, 0)
        task.reset(seed)
        up_card, hits = task.dealer[0], 0
        trace = task.demonstrate(np.random.default_rng(0))
        for turn in trace:
            reply = json.loads(turn.reply)
            own = count(task.player[: 2 + hits])
            assert reply["action"] == best(own, card_value(up_card))
            seen = f"{'soft ' if own.usable_ace else ''}{own.total} vs {up_card.face}: "
            assert reply["thoughts"] == seen + reply["action"]
            hits += reply["action"] == "hit"
        assert len(task.player) == 2 + hits


def test_mistakes_differ_from_the_best_play_and_do_not_win() -> None:
    generator, num_standing = np.random.default_rng(0), 0
    for seed in range(60):
        task, expert = make_blackjack({}, 0), make_blackjack({}, 0)
        task.reset(seed)
        expert.reset(seed)
        wrong = task.demonstrate(generator, mistake=True)
        right = expert.demonstrate(np.random.default_rng(0))
        actions = [[json.loads(turn.reply)["action"] for turn in t] for t in (wrong, right)]
        best_fails = actions[0] == actions[1]
        assert not best_fails or not expert.solvable
        num_standing += actions[0][-1] == "stand"
    assert 10 < num_standing < 60


def test_a_trace_needs_a_running_episode() -> None:
    task = task_with(10, 9, 10, 8)
    play(task, "stand")
    with pytest.raises(TaskError, match="is over"):
        task.demonstrate(np.random.default_rng(0))


def test_the_entry_makes_the_task_from_its_defaults() -> None:
    rules = ENTRY.default_rules()
    assert json.loads(json.dumps(rules)) == rules
    task = ENTRY.make(rules, 0)
    assert task.task_id == "blackjack-v0"
    task.reset()
    assert task.episode_kind == "blackjack-v0"
    with pytest.raises(ConfigError, match='no rule named "naturals"'):
        ENTRY.make({"naturals": "wins"}, 0)
    with pytest.raises(ConfigError, match="must not be negative"):
        ENTRY.make({}, -1)


RULES: dict[str, dict[str, Any]] = {
    "tiny": {"picture": "compact", "prompt": "compact"},
    "book": {"natural": "wins", "reward_draw": -0.5, "max_steps": 1},
}


@pytest.mark.parametrize("rules", list(RULES))
def test_every_law_holds(rules: str) -> None:
    report = check_task(lambda seed: make_blackjack(RULES[rules], seed))
    assert report.laws == tuple(LAWS)
