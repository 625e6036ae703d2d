import pytest

from gtr_turbo.envs.cards.games import longest_formula
from gtr_turbo.envs.cards.rules import CardRules
from gtr_turbo.envs.cards.solver import solve
from gtr_turbo.envs.ezpoints import GAME as EZPOINTS
from gtr_turbo.envs.points24 import GAME as POINTS24


def test_actions_in_the_lineages_order() -> None:
    tens = tuple(str(value) for value in range(1, 11))
    assert POINTS24.actions(CardRules()) == (*tens, "+", "-", "*", "/", "(", ")", "=")
    assert EZPOINTS.actions(CardRules()) == (*tens, "+", "*", "=")
    faces = POINTS24.actions(CardRules(face_cards_as_ten=False))
    assert len(faces) == 20
    assert faces[10:13] == ("11", "12", "13")


@pytest.mark.parametrize(("num_cards", "tokens"), [(1, 1), (2, 3), (3, 7), (4, 11)])
def test_longest_formulas(num_cards: int, tokens: int) -> None:
    assert longest_formula(num_cards) == tokens


def test_the_longest_formula_occurs_and_is_never_exceeded() -> None:
    lengths = {
        len(formula)
        for hand in [(1, 2, 3, 4), (1, 1, 8, 8), (2, 3, 5, 7), (1, 5, 5, 5)]
        for formula in solve(hand)
    }
    assert max(lengths) == 11


def test_plans_may_leave_cards_out_only_where_the_rules_say_so() -> None:
    loose = CardRules(must_use_all_cards=False, target=12)
    assert EZPOINTS.plans((6, 6), CardRules(target=12)) == [("6", "+", "6")]
    assert EZPOINTS.plans((12, 6), loose) == [("12",)]
    assert not EZPOINTS.can_win((12, 6), CardRules(target=12))
    assert EZPOINTS.can_win((12, 6), loose)


def test_the_length_limit_decides_too() -> None:
    """8/(3-8/3) is the only way for 3 3 8 8: 9 tokens and the step of the equals sign."""
    hand = (3, 3, 8, 8)
    assert POINTS24.can_win(hand, CardRules(max_steps=10))
    assert not POINTS24.can_win(hand, CardRules(max_steps=9))
    assert POINTS24.can_win(hand, CardRules(length_limit="tokens", max_tokens=9))
    assert not POINTS24.can_win(hand, CardRules(length_limit="tokens", max_tokens=8))
    assert not POINTS24.can_win((1, 1, 1, 1), CardRules())
