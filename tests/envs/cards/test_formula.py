import json
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gtr_turbo.envs.cards.formula import MAX_TOKENS, NUMBERS, evaluate

CASES = Path(__file__).parents[2] / "cases" / "points24_formulas.json"
FORMULAS = json.loads(CASES.read_text(encoding="utf-8"))["formulas"]

ORACLE_LEVELS = {"+": 0, "-": 0, "*": 1, "/": 1}


@pytest.mark.parametrize("case", FORMULAS, ids=lambda case: "".join(case["tokens"])[:30] or "empty")
def test_given_formulas(case: dict[str, Any]) -> None:
    expected = None if case["value"] is None else Fraction(case["value"])
    assert evaluate(case["tokens"]) == expected


@pytest.mark.parametrize(
    "text",
    [
        "+", "-", "(", ")", "( )", "7 (", "( 7", "7 )", "7 8", "+ 7", "- 7", "7 * - 2", "( - 7 )",
        "7 / 0", "0", "14", "01", "007", "1.5", "1e3", "\N{FULLWIDTH DIGIT SEVEN}", "seven",
        "7 ^ 2", "7 ** 2", "7 // 2",
        "7 =", "7 / ( 3 - 3 )", "7 / ( 3 - 3 ) / ( 3 - 3 )", "( 7 / ( 3 - 3 ) ) * ( 3 - 3 )",
        "( 7 + ) 3", "( 7 ) ( 3 )", "( 7 ) 3",
    ],
)  # fmt: skip
def test_what_has_no_value(text: str) -> None:
    assert evaluate(text.split()) is None


def test_a_blank_is_no_token() -> None:
    assert evaluate(["7", " ", "+", "1"]) is None


@pytest.mark.parametrize(
    "tokens",
    [
        ["("] * 600,
        ["("] * 300 + [")"] * 300,
        ["("] * 300 + ["7"] + [")"] * 299,
        ["7", "+"] * 400,
        ["13", "*"] * 400 + ["13"],
        ["7"] * 100_000,
        ["("] * 10_000_000,
    ],
    ids=["open", "empty", "unbalanced", "unfinished", "large", "long", "huge"],
)
def test_hostile_input_costs_little(tokens: list[str]) -> None:
    seconds = []
    for _ in range(5):
        start = time.process_time()
        evaluate(tokens)
        seconds.append(time.process_time() - start)
    assert (
        min(seconds) < 0.1
    )  # about 1 ms without this suite's type checks; more than linear: many seconds


def test_deep_brackets_are_exact_up_to_the_bound() -> None:
    deep = (MAX_TOKENS - 1) // 2
    assert evaluate(["("] * deep + ["7"] + [")"] * deep) == 7
    assert evaluate(["("] * (deep + 1) + ["7"] + [")"] * (deep + 1)) is None


class Refused(Exception):
    pass


def oracle(tokens: list[str]) -> Fraction:
    """Recursive descent: sum of products of atoms. Raises Refused where the grammar does."""
    value, rest = oracle_level(tokens, 0)
    if rest:
        raise Refused
    return value


def oracle_level(tokens: list[str], level: int) -> tuple[Fraction, list[str]]:
    if level == 2:
        return oracle_atom(tokens)
    value, tokens = oracle_level(tokens, level + 1)
    while tokens and ORACLE_LEVELS.get(tokens[0]) == level:
        sign, (other, tokens) = tokens[0], oracle_level(tokens[1:], level + 1)
        if sign == "/" and other == 0:
            raise Refused
        values = {
            "+": value + other,
            "-": value - other,
            "*": value * other,
            "/": value / (other or 1),
        }
        value = values[sign]
    return value, tokens


def oracle_atom(tokens: list[str]) -> tuple[Fraction, list[str]]:
    if tokens and tokens[0] == "(":
        value, rest = oracle_level(tokens[1:], 0)
        if rest[:1] != [")"]:
            raise Refused
        return value, rest[1:]
    if tokens and tokens[0].isdigit():
        return Fraction(int(tokens[0])), tokens[1:]
    raise Refused


def oracle_or_none(tokens: list[str]) -> Fraction | None:
    try:
        return oracle(tokens)
    except Refused:
        return None


well_formed = st.recursive(
    st.sampled_from(NUMBERS).map(lambda number: [number]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*/"), inner).map(lambda t: [*t[0], t[1], *t[2]]),
        inner.map(lambda tokens: ["(", *tokens, ")"]),
    ),
    max_leaves=8,
)


@given(well_formed)
@settings(max_examples=300, deadline=None)
def test_well_formed_formulas_agree_with_a_recursive_reader(tokens: list[str]) -> None:
    assert evaluate(tokens) == oracle_or_none(tokens)


@given(st.lists(st.sampled_from([*NUMBERS, *"+-*/()"]), max_size=9))
@settings(max_examples=500, deadline=None)
def test_random_tokens_agree_with_a_recursive_reader(tokens: list[str]) -> None:
    assert evaluate(tokens) == oracle_or_none(tokens)
