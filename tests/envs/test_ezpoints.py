from itertools import product

from gtr_turbo.envs import ezpoints, make_task
from gtr_turbo.envs.cards.solver import is_solvable


def test_thirteen_actions() -> None:
    assert len(ezpoints.ACTIONS) == 13
    assert ezpoints.ACTIONS[-3:] == ("+", "*", "=")


def test_every_dealt_hand_can_be_solved() -> None:
    task = make_task("ezpoints", {}, 0)
    for seed in range(300):
        task.reset(seed)
        assert task.solvable


def test_what_can_be_solved_at_all() -> None:
    """1 … 10 times 1 … 10: sums 2+10 … 10+2 (9) and products 2·6, 3·4, 4·3, 6·2 (4)."""
    hands = [hand for hand in product(range(1, 11), repeat=2) if is_solvable(hand, 12, ("+", "*"))]
    assert len(hands) == 13
