from collections import Counter

import numpy as np
import pytest

from gtr_turbo.envs.cards.expert import right_plan, write_thoughts, wrong_plan
from gtr_turbo.envs.cards.formula import evaluate
from gtr_turbo.envs.cards.rules import CardRules
from gtr_turbo.envs.ezpoints import GAME as EZPOINTS
from gtr_turbo.envs.points24 import GAME as POINTS24

RULES = CardRules()
TWELVE = EZPOINTS.defaults


@pytest.mark.parametrize(
    ("values", "plan"),
    [
        ((7, 5), "7 + 5"),
        ((5, 7), "5 + 7"),
        ((2, 6), "2 * 6"),
        ((6, 6), "6 + 6"),
        ((10, 2), "10 + 2"),
    ],
)
def test_small_plans_take_the_cards_from_left_to_right(values: tuple[int, ...], plan: str) -> None:
    assert right_plan(EZPOINTS, TWELVE, values, (), 4) == tuple(plan.split())


def test_the_shortest_plan_is_preferred() -> None:
    """1 2 3 4: 1*2*3*4 needs no bracket and keeps the order, (1+2+3)*4 is longer."""
    assert right_plan(POINTS24, RULES, (1, 2, 3, 4), (), 19) == tuple("1*2*3*4")
    assert right_plan(POINTS24, RULES, (4, 3, 2, 1), (), 19) == tuple("4*3*2*1")


def test_a_plan_goes_on_from_what_is_written() -> None:
    written = ("(", "1")
    plan = right_plan(POINTS24, RULES, (1, 2, 3, 4), written, 17)
    assert plan is not None
    assert plan[:2] == written
    assert evaluate(plan) == 24
    assert right_plan(POINTS24, RULES, (1, 2, 3, 4), ("1", "-", "4", "/"), 15) is None


def test_a_plan_fits_into_the_room() -> None:
    assert right_plan(POINTS24, RULES, (1, 2, 3, 4), (), 7) is not None
    assert right_plan(POINTS24, RULES, (1, 2, 3, 4), (), 6) is None
    assert right_plan(POINTS24, RULES, (1, 1, 1, 1), (), 19) is None


def test_a_plan_may_leave_cards_out_where_the_rules_allow_it() -> None:
    loose = CardRules(target=12, must_use_all_cards=False)
    assert right_plan(POINTS24, loose, (4, 9, 3, 1), (), 19) == ("4", "*", "3")


def test_mistakes_use_every_card_once_and_miss() -> None:
    generator = np.random.default_rng(0)
    shapes = set()
    for _ in range(300):
        plan = wrong_plan(POINTS24, RULES, (1, 2, 3, 4), (), generator)
        assert Counter(token for token in plan if token.isdigit()) == Counter("1234")
        assert evaluate(plan) != 24
        shapes.add(tuple("n" if token.isdigit() else token for token in plan))
    assert len(shapes) > 50


def test_mistakes_of_the_small_game_are_both_orders_of_the_other_operator() -> None:
    generator = np.random.default_rng(0)
    plans = {wrong_plan(EZPOINTS, TWELVE, (7, 5), (), generator) for _ in range(50)}
    assert plans == {("7", "*", "5"), ("5", "*", "7")}


def test_a_hand_without_a_wrong_formula_gives_the_empty_plan() -> None:
    """2 + 2 = 2 * 2 = 4."""
    rules = CardRules(target=4)
    assert wrong_plan(EZPOINTS, rules, (2, 2), (), np.random.default_rng(0)) == ()


def test_a_mistake_from_what_is_written_spoils_it() -> None:
    generator = np.random.default_rng(0)
    assert wrong_plan(EZPOINTS, TWELVE, (7, 5), ("7",), generator) == ("7",)
    right = ("7", "+", "5")
    assert wrong_plan(EZPOINTS, TWELVE, (7, 5), right, generator) == (*right, "+")


def test_compact_thoughts_are_the_plan() -> None:
    rules = CardRules(prompt="compact", target=12)
    plan = ("7", "+", "5")
    assert write_thoughts(rules, plan, (), "7") == "7+5=12"
    assert write_thoughts(rules, plan, plan, "=") == "7+5=12"
    assert write_thoughts(rules, None, (), "=") == "none"


def test_full_thoughts_tell_plan_place_and_next_token() -> None:
    plan = ("7", "+", "5")
    first = write_thoughts(TWELVE, plan, (), "7")
    later = write_thoughts(TWELVE, plan, ("7", "+"), "5")
    last = write_thoughts(TWELVE, plan, plan, "=")
    assert "7+5=12" in first
    assert "nothing" in first
    assert "next token is 7" in first
    assert "there is 7+" in later
    assert "next token is 5" in later
    assert "complete" in last
    assert "No formula" in write_thoughts(TWELVE, None, (), "=")
