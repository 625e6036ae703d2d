"""Exact values of formulas that are given as lists of tokens.

Grammar: numbers 1 to 13, ``+ - * /`` with the usual precedence, left to right, and brackets. There
is no sign, no implied product, no power and no floor division, and two neighbouring numbers don't
join to a longer one. Arithmetic is rational, so 8 / (3 - 8 / 3) is 24 and not nearly 24.
"""

from collections.abc import Sequence
from fractions import Fraction

NUMBERS = tuple(str(value) for value in range(1, 14))
"""Every number that a card can stand for; above 10 only where face cards keep their rank."""
OPERATORS = ("+", "-", "*", "/")
BRACKETS = ("(", ")")
EQUALS = "="
BLANK = " "
"""What the lineage's rules append to the formula for an illegal action."""

MAX_TOKENS = 1_000
"""Longer formulas have no value: it bounds the work that a hostile caller can ask for."""

_NUMBER_VALUES = {token: Fraction(int(token)) for token in NUMBERS}
_PRECEDENCE = {"+": 1, "-": 1, "*": 2, "/": 2}


def precedence(operator: str) -> int:
    """Return how tightly an operator binds: 1 for ``+ -``, 2 for ``* /``."""
    return _PRECEDENCE[operator]


def evaluate(tokens: Sequence[str]) -> Fraction | None:
    """Return the exact value of a formula, or None when the tokens don't spell one.

    None stands for a broken grammar, an unknown token, a division by zero and more than
    `MAX_TOKENS` tokens alike. The work is linear in the number of tokens and uses no recursion.

    >>> evaluate(["8", "/", "(", "3", "-", "8", "/", "3", ")"])
    Fraction(24, 1)
    >>> evaluate(["1", "2"]) is None
    True
    """
    if not 0 < len(tokens) <= MAX_TOKENS:
        return None
    values: list[Fraction] = []
    waiting: list[str] = []
    wants_operand = True
    for token in tokens:
        if wants_operand:
            if token in _NUMBER_VALUES:
                values.append(_NUMBER_VALUES[token])
                wants_operand = False
            elif token == "(":
                waiting.append(token)
            else:
                return None
        elif token in _PRECEDENCE:
            if not _apply_while_tighter(values, waiting, _PRECEDENCE[token]):
                return None
            waiting.append(token)
            wants_operand = True
        elif token != ")" or not _close_bracket(values, waiting):
            return None
    if wants_operand or not _apply_while_tighter(values, waiting, 1) or waiting:
        return None
    return values[0]


def _apply_while_tighter(values: list[Fraction], waiting: list[str], level: int) -> bool:
    """Apply waiting operators that bind at least as tightly as `level`; False: a zero divisor."""
    while waiting and waiting[-1] != "(" and _PRECEDENCE[waiting[-1]] >= level:
        right = values.pop()
        operator = waiting.pop()
        if operator == "/" and right == 0:
            return False
        values[-1] = combine(values[-1], operator, right)
    return True


def _close_bracket(values: list[Fraction], waiting: list[str]) -> bool:
    """Apply what stands in the innermost open bracket and remove it; False when that fails."""
    if not _apply_while_tighter(values, waiting, 1) or not waiting:
        return False
    waiting.pop()
    return True


def combine(left: Fraction, operator: str, right: Fraction) -> Fraction:
    """Return ``left operator right``; the caller keeps zero away from a division."""
    if operator == "+":
        return left + right
    if operator == "-":
        return left - right
    if operator == "*":
        return left * right
    return left / right
