from collections import Counter
from typing import Any

import numpy as np
import pytest

from gtr_turbo.envs.episodes import make_generator
from gtr_turbo.envs.numberline.rules import NumberLineRules, draw_line, move, move_reward
from gtr_turbo.envs.rules import read_rules
from gtr_turbo.errors import ConfigError


def test_defaults_are_the_lineages_but_for_the_draw() -> None:
    rules = NumberLineRules()
    assert (rules.max_position, rules.step_limit) == (5, 10)
    assert (rules.reward_success, rules.reward_closer, rules.reward_not_closer) == (1, 0, -1)
    assert rules.goal_draw == "distinct"
    assert not rules.end_at_first_penalty


def test_the_step_limit_follows_the_line_unless_it_is_given() -> None:
    assert NumberLineRules(max_position=30).step_limit == 60
    assert NumberLineRules(max_position=30, max_steps=7).step_limit == 7


def test_every_pair_of_different_numbers_is_equally_likely() -> None:
    """6 · 5 = 30 pairs on 0 … 5; 9,000 draws give 300 each, with a deviation of about 17."""
    generator = make_generator(0)
    drawn = Counter(draw_line(NumberLineRules(), generator) for _ in range(9_000))
    assert set(drawn) == {(a, b) for a in range(6) for b in range(6) if a != b}
    assert all(abs(number - 300) < 85 for number in drawn.values())


def test_the_lineage_moves_a_goal_that_hits_the_start() -> None:
    """From 36 equal draws (a, b): a ≠ b stays; (a, a) becomes (a, (a + 1) mod 5)."""
    generator, rules = make_generator(0), NumberLineRules(goal_draw="lineage")
    drawn = Counter(draw_line(rules, generator) for _ in range(18_000))
    expected = {(a, b): 500 for a in range(6) for b in range(6) if a != b}
    for start in range(6):
        expected[start, (start + 1) % 5] += 500
    assert expected[5, 1] == expected[4, 0] == expected[0, 1] == 1_000
    assert set(drawn) == set(expected)
    assert all(abs(drawn[pair] - expected[pair]) < 5 * expected[pair] ** 0.5 for pair in expected)


def test_goals_may_be_kept_far_away() -> None:
    generator, rules = make_generator(0), NumberLineRules(max_position=10, min_distance=9)
    drawn = {draw_line(rules, generator) for _ in range(200)}
    assert drawn == {(0, 9), (0, 10), (1, 10), (9, 0), (10, 0), (10, 1)}


def test_moves_stop_at_both_ends() -> None:
    rules = NumberLineRules(max_position=3)
    assert [move(position, "+", rules) for position in range(4)] == [1, 2, 3, 3]
    assert [move(position, "-", rules) for position in range(4)] == [0, 0, 1, 2]


@pytest.mark.parametrize(
    ("before", "after", "goal", "reward"),
    [(2, 3, 3, 1), (2, 3, 5, 0), (2, 1, 5, -1), (5, 5, 2, -1), (0, 0, 3, -1), (4, 3, 0, 0)],
)
def test_what_a_move_earns(before: int, after: int, goal: int, reward: float) -> None:
    assert move_reward(before, after, goal, NumberLineRules()) == reward


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"max_position": 0}, r"rule `max_position`: .*greater than or equal to 1, got 0\."),
        ({"max_position": 100}, r"rule `max_position`: .*less than or equal to 99, got 100\."),
        ({"max_steps": 0}, "rule `max_steps`"),
        ({"min_distance": 6}, "`min_distance` is 6, but the line has no two numbers so far apart"),
        ({"goal_draw": "lineage", "min_distance": 2}, "goes with `min_distance: 1` only"),
        ({"goal_draw": "lineage", "max_position": 1}, "needs a `max_position` of 2 at least"),
        ({"goal_draw": "far"}, "rule `goal_draw`: .*'distinct' or 'lineage', got 'far'"),
        ({"picture": "table"}, "rule `picture`"),
    ],
)
def test_bad_values_are_refused(rules: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_rules(NumberLineRules(), rules)


@pytest.mark.parametrize("max_position", [2, 3, 99])
def test_the_lineages_goal_is_never_the_start(max_position: int) -> None:
    rules = NumberLineRules(max_position=max_position, goal_draw="lineage")
    generator = np.random.default_rng(1)
    for _ in range(2_000):
        start, goal = draw_line(rules, generator)
        assert start != goal
        assert 0 <= min(start, goal) <= max(start, goal) <= max_position
