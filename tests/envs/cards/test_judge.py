"""The rule-based judge of thoughts, on replies that were read by eye, and on hostile ones."""

import json
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gtr_turbo.envs.cards.hands import Card, Hand
from gtr_turbo.envs.cards.judge import (
    Plan,
    Table,
    are_cards_right,
    find_plan,
    is_plan_right,
    judge_thought,
    next_token,
)
from gtr_turbo.envs.cards.rules import CardRules
from gtr_turbo.envs.points24 import GAME as POINTS24
from gtr_turbo.envs.registry import make_task
from gtr_turbo.envs.replies import MAX_CHARACTERS

HAND: Hand = (Card(1, "S"), Card(10, "D"), Card(11, "H"), Card(2, "C"))
GOOD: Hand = (Card(10, "H"), Card(7, "S"), Card(4, "D"), Card(4, "C"))
"""(10 − 7) × (4 + 4) = 24."""
RIGHT = "(10-7)*(4+4)"


def tokens(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def table(hand: Hand = GOOD, written: str = "", room: int = 19, **rules: Any) -> Table:
    return Table(
        game=POINTS24, rules=CardRules(**rules), hand=hand, written=tokens(written), room=room
    )


def fields(thoughts: Any, cards: Any = ("10H", "7S", "4D", "4C")) -> dict[str, Any]:
    return {"cards": list(cards), "formula": "", "thoughts": thoughts}


# -- cards --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "named",
    [
        ["AS", "10D", "JH", "2C"],
        ["2C", "JH", "10D", "AS"],
        ["A", "10", "J", "2"],
        ["A", "10D", "J", "2C"],
        ["Ace of Spades", "10 of diamonds", "Jack of Hearts", "2 of clubs"],
        ["A♠", "10♦", "J♥", "2♣"],
        ["ace", "10-D", "jack_h", " 2c "],
        [1, 10, "J", 2],
    ],
)
def test_cards_are_read_in_any_order_and_spelling(named: list[Any]) -> None:
    assert are_cards_right(named, HAND)


@pytest.mark.parametrize(
    "named",
    [
        None,
        "AS 10D JH 2C",
        {"first": "AS"},
        (("a", "AS"),),
        [],
        ["AS", "10D", "JH"],
        ["AS", "10D", "JH", "2C", "2C"],
        ["AS", "10D", "JH", "3C"],
        ["AS", "10D", "JD", "2C"],  # another suit
        ["AS", "AS", "JH", "2C"],
        ["AS", "10D", "10", "2C"],  # a jack counts ten, but it is not a ten
        ["AS", "10D", 11, "2C"],
        ["AS", "10D", True, "2C"],
        ["AS", "10D", 10.0, "2C"],
        ["AS", "10D", ["JH"], "2C"],
        ["AS", "10D", "JH or QH", "2C"],
        ["AS", "10D", "J" * 40, "2C"],
        ["", "", "", ""],
    ],
)
def test_other_cards_are_not_right(named: Any) -> None:
    assert not are_cards_right(named, HAND)


def test_two_cards_of_a_rank_are_told_apart_by_the_suit_that_is_named() -> None:
    hand = (Card(4, "D"), Card(4, "C"))
    assert are_cards_right(["4", "4D"], hand)
    assert are_cards_right(["4C", "4D"], hand)
    assert not are_cards_right(["4D", "4D"], hand)
    assert not are_cards_right(["4", "4H"], hand)


# -- plans --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("thoughts", "formula", "value"),
    [
        ("3*4=12", "3 * 4", "12"),
        ("My plan is 3*4=12. So far there is 3; the next token is *.", "3 * 4", "12"),
        ("My plan (10-7)*(4+4)=24 is complete, so I hand it in.", "( 10 - 7 ) * ( 4 + 4 )", "24"),
        ("3 × 4 = 12, so it is done", "3 * 4", "12"),
        ("8 ÷ 2 − 1", "8 / 2 - 1", None),
        ("first 3+4=7, no; 3*4=12, yes", "3 * 4", "12"),
        ("3*4=12, and so far (3+1)", "3 * 4", "12"),
        ("so far (3+1), then (3+1)*2", "( 3 + 1 ) * 2", None),
        ("the plan (3*4=12) holds", "3 * 4", "12"),
        ("- 3*4, that's it -", "3 * 4", None),
        ("I get 3*4=", "3 * 4", None),
        ("3*4=twelve", "3 * 4", None),
    ],
)
def test_the_plan_is_the_last_formula_that_has_a_value(
    thoughts: str, formula: str, value: str | None
) -> None:
    assert find_plan(thoughts) == Plan(formula=tokens(formula), value=value)


@pytest.mark.parametrize(
    "thoughts",
    [
        "",
        "none",
        "No formula of these cards can reach 24 from here, so I stop.",
        "The cards are 10, 7, 4 and 4.",
        "12",
        "3*",
        "3 4",
        "14*2=28",  # no card is 14
        "5/(3-3)=0",
        "3**4=81",
        "²*³=6",
        "٣*٤=١٢",
    ],
)
def test_thoughts_without_a_formula_have_no_plan(thoughts: str) -> None:
    assert find_plan(thoughts) is None


@pytest.mark.parametrize(
    ("formula", "value", "written", "is_right"),
    [
        ("( 10 - 7 ) * ( 4 + 4 )", "24", "", True),
        ("( 10 - 7 ) * ( 4 + 4 )", None, "( 10 -", True),
        ("( 10 - 7 ) * ( 4 + 4 )", "24", "( 10 - 7 ) * ( 4 + 4 )", True),
        ("( ( 10 - 7 ) ) * ( 4 + 4 )", "24", "( ( 10", True),
        ("( 10 - 7 ) * ( 4 + 4 )", "24", "7", False),
        ("( 10 - 7 ) * ( 4 + 4 )", "25", "", False),
        ("10 - 7 * 4 + 4", "24", "", False),
        ("4 * 7 - 4", "24", "", False),  # the ten is left
        ("6 * 4", "24", "", False),  # no six on the table
    ],
)
def test_a_right_plan_continues_what_stands_and_has_the_value(
    formula: str, value: str | None, written: str, is_right: bool
) -> None:
    plan = Plan(formula=tokens(formula), value=value)
    assert is_plan_right(plan, tokens(written), (10, 7, 4, 4), CardRules()) == is_right


def test_a_plan_may_leave_cards_out_where_the_rules_say_so() -> None:
    loose = CardRules(must_use_all_cards=False)
    plan = Plan(formula=tokens("4 * 7 - 4"), value="24")
    assert is_plan_right(plan, (), (10, 7, 4, 4), loose)
    twice = Plan(formula=tokens("10 + 10 + 4"), value=None)
    assert not is_plan_right(twice, (), (10, 7, 4, 4), loose)


@pytest.mark.parametrize(
    ("written", "expected"), [("", "("), ("( 10", "-"), ("( 10 - 7 )", "="), ("7", None)]
)
def test_the_next_token_of_a_plan(written: str, expected: str | None) -> None:
    plan = Plan(formula=tokens("( 10 - 7 )"), value=None)
    assert next_token(plan, tokens(written)) == expected


# -- all three ----------------------------------------------------------------------------------


def test_a_good_thought() -> None:
    assert judge_thought(fields(f"My plan is {RIGHT}=24."), "(", table()) == {
        "cards_right": True,
        "plan_right": True,
        "action_follows": True,
    }


def test_each_fault_shows_alone() -> None:
    plan = f"My plan is {RIGHT}=24."
    good = judge_thought(fields(plan), "(", table())
    misread = judge_thought(fields(plan, ("10H", "7S", "4D", "5C")), "(", table())
    assert misread == good | {"cards_right": False}
    other = judge_thought(fields("My plan is 10-7*4+4=24."), "10", table())
    assert other == good | {"plan_right": False}
    astray = judge_thought(fields(plan), "10", table())
    assert astray == good | {"action_follows": False}
    silent = judge_thought(fields(""), "(", table())
    assert silent == good | {"plan_right": False, "action_follows": False}
    unread = judge_thought({}, None, table())
    assert unread == dict.fromkeys(good, False)


def test_where_nothing_can_be_right_nothing_is_wrong() -> None:
    """After 4 * no right formula of 10 7 4 4 is left; nor is one where there is no room for it."""
    lost = judge_thought(fields("No formula can reach 24 from here."), "=", table(written="4 *"))
    assert lost == {"cards_right": True}
    cramped = judge_thought(fields("No way."), "=", table(room=5))
    assert cramped == {"cards_right": True}
    stubborn = judge_thought(fields("4*10-7-4=29"), "10", table(written="4 *"))
    assert stubborn == {"cards_right": True, "action_follows": True}


@pytest.mark.parametrize("thoughts", [None, 7, ["3*4=12"], {"plan": RIGHT}, True])
def test_thoughts_that_are_no_text_plan_nothing(thoughts: Any) -> None:
    assert not judge_thought(fields(thoughts), "(", table())["plan_right"]


@pytest.mark.parametrize("name", ["points24", "ezpoints"])
@pytest.mark.parametrize("prompt", ["full", "compact"])
def test_experts_are_right_and_their_mistakes_follow_a_wrong_plan(name: str, prompt: str) -> None:
    task = make_task(name, {"only_solvable": True, "prompt": prompt}, 0)
    chance = np.random.default_rng(0)
    for mistake in (False, True):
        for _ in range(5):
            task.reset()
            start = task.state()
            trace = task.demonstrate(chance, mistake=mistake)
            task.restore(start)
            for turn in trace:
                judged = task.judge_thought(turn.reply)
                assert judged["cards_right"]
                assert judged["action_follows"], turn.reply
                assert judged.get("plan_right", False) != mistake, turn.reply
                task.step(turn.reply)


# -- hostile texts ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "(" * MAX_CHARACTERS,
        "(" * (MAX_CHARACTERS // 2) + ")" * (MAX_CHARACTERS // 2),
        "1+" * (MAX_CHARACTERS // 2),
        "9" * MAX_CHARACTERS,
        "3*4=" * (MAX_CHARACTERS // 4),
        "3*4=12 " * (MAX_CHARACTERS // 7),
        "1/(1-1)" * (MAX_CHARACTERS // 7),
        " " * MAX_CHARACTERS,
        "__import__('os')*4=12",
        "\x00\ud800\uffff",
    ],
    ids=range(10),
)
def test_hostile_thoughts_take_no_time(text: str) -> None:
    start = time.perf_counter()
    judged = judge_thought(fields(text, [text] * 4), text, table())
    assert time.perf_counter() - start < 1.0
    assert not any(judged.values())


@given(st.text(max_size=200), st.text(max_size=20))
def test_any_text_is_judged(thoughts: str, card: str) -> None:
    task = make_task("ezpoints", {}, 0)
    task.reset()
    reply = json.dumps({"cards": [card], "formula": "", "thoughts": thoughts, "action": "1"})
    for text in (reply, thoughts):
        assert set(task.judge_thought(text)) <= {"cards_right", "plan_right", "action_follows"}
