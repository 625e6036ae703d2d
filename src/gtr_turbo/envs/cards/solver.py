"""Every formula of a hand that gives the target, by exact exhaustive search.

A hand is cut into two parts in every possible way; each part is solved once and remembered by its
sorted values. For the whole hand only those pairs are joined that give the target, because the
right part's value follows from the left one's.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache, lru_cache

from gtr_turbo.envs.cards.formula import NUMBERS, OPERATORS, combine, precedence
from gtr_turbo.errors import ConfigError

Formula = tuple[str, ...]
Values = tuple[int, ...]

MAX_CARDS = 4
_NUMBER_LEVEL = 3
"""A lone number binds tighter than any operator, so it never needs brackets."""

_Parts = dict[Fraction, dict[Formula, int]]
"""value → formulas of that value → how tightly the formula's loosest operator binds."""


def solve(
    values: Sequence[int], target: int = 24, operators: Sequence[str] = OPERATORS
) -> list[Formula]:
    """Return all distinct formulas that use every value once and equal `target`.

    Brackets stand only where the value would change without them. Shorter formulas come first,
    equally long ones in alphabetical order. The list is empty when there is none.

    Raises ConfigError for more than four values, or a value outside 1 to 13.

    >>> solve([7, 5], target=12)
    [('5', '+', '7'), ('7', '+', '5')]
    """
    return list(_solve(_checked(values), target, tuple(operators)))


def is_solvable(
    values: Sequence[int], target: int = 24, operators: Sequence[str] = OPERATORS
) -> bool:
    """Return whether `solve` would find anything, without writing the formulas down."""
    return _is_solvable(_checked(values), target, tuple(operators))


def _checked(values: Sequence[int]) -> Values:
    hand = tuple(sorted(int(value) for value in values))
    if not 1 <= len(hand) <= MAX_CARDS or hand[0] < 1 or hand[-1] > len(NUMBERS):
        raise ConfigError(f"a hand holds one to four values from 1 to 13, got {list(values)}.")
    return hand


@lru_cache(maxsize=4096)
def _solve(hand: Values, target: int, operators: tuple[str, ...]) -> tuple[Formula, ...]:
    if len(hand) == 1:
        return ((str(hand[0]),),) if hand[0] == target else ()
    found: set[Formula] = set()
    for left, operator, right in _joins(hand, target, operators):
        for left_tokens, left_level in left.items():
            for right_tokens, right_level in right.items():
                found.add(join(left_tokens, left_level, operator, right_tokens, right_level))
    return tuple(sorted(found, key=lambda tokens: (len(tokens), tokens)))


@lru_cache(maxsize=4096)
def _is_solvable(hand: Values, target: int, operators: tuple[str, ...]) -> bool:
    if len(hand) == 1:
        return hand[0] == target
    return any(
        _needed(left_value, operator, target) in _reachable(right_hand, operators)
        for left_hand, right_hand in _splits(hand)
        for left_value in _reachable(left_hand, operators)
        for operator in operators
    )


@cache
def _reachable(hand: Values, operators: tuple[str, ...]) -> frozenset[Fraction]:
    """Return every value that the whole (part of a) hand can take."""
    if len(hand) == 1:
        return frozenset((Fraction(hand[0]),))
    return frozenset(
        combine(left_value, operator, right_value)
        for left_hand, right_hand in _splits(hand)
        for left_value in _reachable(left_hand, operators)
        for right_value in _reachable(right_hand, operators)
        for operator in operators
        if operator != "/" or right_value != 0
    )


def _joins(
    hand: Values, target: int, operators: tuple[str, ...]
) -> Iterator[tuple[dict[Formula, int], str, dict[Formula, int]]]:
    """Yield the (left formulas, operator, right formulas) whose join equals the target."""
    for left_hand, right_hand in _splits(hand):
        left_parts = _parts(left_hand, operators)
        right_parts = _parts(right_hand, operators)
        for left_value, left in left_parts.items():
            for operator in operators:
                needed = _needed(left_value, operator, target)
                right = None if needed is None else right_parts.get(needed)
                if right is not None:
                    yield left, operator, right


def _needed(left: Fraction, operator: str, target: int) -> Fraction | None:
    """Return the right operand that makes ``left operator right`` the (positive) target."""
    if operator == "+":
        return target - left
    if operator == "-":
        return left - target
    if left == 0:
        return None
    return target / left if operator == "*" else left / target


@cache
def _parts(hand: Values, operators: tuple[str, ...]) -> _Parts:
    """Return what `_reachable` does, each value with all its formulas."""
    if len(hand) == 1:
        return {Fraction(hand[0]): {(str(hand[0]),): _NUMBER_LEVEL}}
    parts: _Parts = {}
    for left_hand, right_hand in _splits(hand):
        for left_value, left in _parts(left_hand, operators).items():
            for right_value, right in _parts(right_hand, operators).items():
                for operator in operators:
                    if operator == "/" and right_value == 0:
                        continue
                    formulas = parts.setdefault(combine(left_value, operator, right_value), {})
                    for left_tokens, left_level in left.items():
                        for right_tokens, right_level in right.items():
                            joined = join(
                                left_tokens, left_level, operator, right_tokens, right_level
                            )
                            formulas[joined] = precedence(operator)
    return parts


@cache
def _splits(hand: Values) -> tuple[tuple[Values, Values], ...]:
    """Return the distinct ways to cut a hand into an ordered pair of two parts."""
    pairs: set[tuple[Values, Values]] = set()
    for chosen in range(1, 2 ** len(hand) - 1):
        left = tuple(v for i, v in enumerate(hand) if chosen >> i & 1)
        right = tuple(v for i, v in enumerate(hand) if not chosen >> i & 1)
        pairs.add((left, right))
    return tuple(sorted(pairs))


def join(
    left: Formula, left_level: int, operator: str, right: Formula, right_level: int
) -> Formula:
    """Return the tokens of ``left operator right`` with brackets only where the value needs them.

    A level is how tightly a part's loosest operator binds (`precedence`), 3 for a number.
    """
    level = precedence(operator)
    if left_level < level:
        left = ("(", *left, ")")
    if right_level < level or (right_level == level and operator in "-/"):
        right = ("(", *right, ")")
    return (*left, operator, *right)
