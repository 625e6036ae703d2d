import json
from collections import Counter
from fractions import Fraction
from itertools import combinations_with_replacement, permutations, product
from math import factorial
from pathlib import Path
from typing import Any

import pytest

from gtr_turbo.envs.cards.formula import evaluate
from gtr_turbo.envs.cards.solver import is_solvable, solve
from gtr_turbo.errors import ConfigError

CASES = Path(__file__).parents[2] / "cases" / "points24_formulas.json"
HANDS = json.loads(CASES.read_text(encoding="utf-8"))["hands"]
MULTISETS = list(combinations_with_replacement(range(1, 11), 4))


@pytest.mark.parametrize("case", HANDS, ids=lambda case: "-".join(map(str, case["values"])))
def test_given_hands(case: dict[str, Any]) -> None:
    formulas = solve(case["values"])
    assert bool(formulas) == case["solvable"] == is_solvable(case["values"])
    if case["example"] is not None:
        assert evaluate(case["example"]) == 24
        # The same formula without its needless brackets is found, whatever the case writes.
        numbers = [token for token in case["example"] if token.isdigit()]
        assert any([t for t in formula if t.isdigit()] == numbers for formula in formulas)


def test_exact_counts() -> None:
    """566 of the 715 multisets, 20,876 of the 28,561 ordered draws with J = Q = K = 10."""
    solvable = [hand for hand in MULTISETS if is_solvable(hand)]
    assert (len(solvable), len(MULTISETS)) == (566, 715)
    ranks_per_value = dict.fromkeys(range(1, 10), 1) | {10: 4}
    num_draws = 0
    for hand in solvable:
        orders = factorial(4)
        for times in Counter(hand).values():
            orders //= factorial(times)
        ranks = 1
        for value in hand:
            ranks *= ranks_per_value[value]
        num_draws += orders * ranks
    assert num_draws == 20_876


def test_faces_as_eleven_to_thirteen() -> None:
    """79.18 % of the ordered draws can be solved when faces keep their rank: 22,615 of 28,561."""
    num_draws = 0
    for hand in combinations_with_replacement(range(1, 14), 4):
        if is_solvable(hand):
            orders = factorial(4)
            for times in Counter(hand).values():
                orders //= factorial(times)
            num_draws += orders
    assert round(100 * num_draws / 13**4, 2) == 79.18


@pytest.mark.parametrize("hand", MULTISETS[::29], ids=str)
def test_every_formula_is_right_and_uses_each_card_once(hand: tuple[int, ...]) -> None:
    formulas = solve(hand)
    assert len(set(formulas)) == len(formulas)
    for formula in formulas:
        assert evaluate(formula) == 24
        numbers = sorted(int(token) for token in formula if token.isdigit())
        assert tuple(numbers) == hand
    assert formulas == sorted(formulas, key=lambda tokens: (len(tokens), tokens))


def values_by_brute_force(hand: tuple[int, ...]) -> set[Fraction]:
    """Every value of a hand: join any two, in any order, until one is left."""
    reachable: set[Fraction] = set()
    stack = [tuple(Fraction(value) for value in hand)]
    while stack:
        numbers = stack.pop()
        if len(numbers) == 1:
            reachable.add(numbers[0])
        for i, j in permutations(range(len(numbers)), 2):
            rest = tuple(v for k, v in enumerate(numbers) if k not in (i, j))
            a, b = numbers[i], numbers[j]
            results = {a + b, a - b, a * b} | ({a / b} if b else set())
            stack += [(*rest, result) for result in results]
    return reachable


@pytest.mark.parametrize("hand", MULTISETS[::90], ids=str)
def test_solvability_agrees_with_brute_force(hand: tuple[int, ...]) -> None:
    assert is_solvable(hand) == (24 in values_by_brute_force(hand))


def flat_formulas(hand: tuple[int, ...], target: int) -> set[tuple[str, ...]]:
    """Formulas without any bracket, by trying every order and every operator."""
    found: set[tuple[str, ...]] = set()
    for order in permutations(map(str, hand)):
        for signs in product("+-*/", repeat=len(hand) - 1):
            tokens = [order[0]]
            for sign, number in zip(signs, order[1:], strict=True):
                tokens += [sign, number]
            if evaluate(tokens) == target:
                found.add(tuple(tokens))
    return found


@pytest.mark.parametrize("hand", [(1, 2, 3, 4), (3, 3, 8, 8), (4, 6, 6, 8), (2, 5, 10, 10)])
def test_all_formulas_without_brackets_are_found(hand: tuple[int, ...]) -> None:
    found = {formula for formula in solve(hand) if "(" not in formula}
    assert found == flat_formulas(hand, 24)


def test_brackets_stand_only_where_they_matter() -> None:
    assert solve([3, 3, 8, 8]) == [("8", "/", "(", "3", "-", "8", "/", "3", ")")]
    for formula in solve([1, 5, 5, 5]):
        for start, token in enumerate(formula):
            if token == "(":
                depth, end = 1, start + 1
                while depth:
                    depth += {"(": 1, ")": -1}.get(formula[end], 0)
                    end += 1
                bare = [t for k, t in enumerate(formula) if k not in (start, end - 1)]
                assert evaluate(bare) != 24 or formula[start - 1] in "-/*"


def test_other_targets_and_operators() -> None:
    assert solve([7, 5], 12, "+*") == [("5", "+", "7"), ("7", "+", "5")]
    assert solve([2, 6], 12, "+*") == [("2", "*", "6"), ("6", "*", "2")]
    assert solve([2, 7], 12, "+*") == []
    assert solve([12], 12) == [("12",)]
    assert solve([11], 12) == []
    assert is_solvable([12], 12)
    assert not is_solvable([11], 12)
    assert is_solvable([2, 6], 12, "*")
    assert not is_solvable([2, 6], 12, "+")


def test_the_answer_does_not_share_its_cache() -> None:
    solve([1, 2, 3, 4]).clear()
    assert len(solve([1, 2, 3, 4])) > 0


@pytest.mark.parametrize("values", [[], [1, 2, 3, 4, 5], [0, 1, 2, 3], [14, 1, 1, 1], [-1]])
def test_hands_that_are_none(values: list[int]) -> None:
    with pytest.raises(ConfigError, match="one to four values from 1 to 13"):
        solve(values)
    with pytest.raises(ConfigError, match="one to four values"):
        is_solvable(values)
