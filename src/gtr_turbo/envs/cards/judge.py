"""Are the cards read right, is the plan right, does the action follow from it?

The rules read what stands before the action: the list of cards, and the formula in the thoughts.
Replies may say anything, so texts are cut into tokens by patterns that cannot backtrack, and values
come from the exact evaluator of formulas.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

from gtr_turbo.envs.cards.expert import right_plan
from gtr_turbo.envs.cards.formula import BRACKETS, EQUALS, NUMBERS, OPERATORS, evaluate
from gtr_turbo.envs.cards.games import CardGame
from gtr_turbo.envs.cards.hands import Hand, hand_values
from gtr_turbo.envs.cards.rules import CardRules
from gtr_turbo.envs.cards.solver import Formula

MAX_CARD_CHARACTERS: Final = 32
"""No name of a card is longer; what is longer names none."""

_CARD = re.compile(
    r"(?P<face>ACE|JACK|QUEEN|KING|10|[1-9AJQK])[ _-]?(?:OF )?"
    r"(?P<suit>HEARTS?|SPADES?|DIAMONDS?|CLUBS?|[HSDC♥♠♦♣])?"
)
_RANKS = {"ACE": 1, "A": 1, "JACK": 11, "J": 11, "QUEEN": 12, "Q": 12, "KING": 13, "K": 13}
_SUIT_SIGNS = {"♥": "H", "♠": "S", "♦": "D", "♣": "C"}
_FORMULA_SIGNS = str.maketrans("×÷−", "*/-")
_TOKEN = re.compile(r"[0-9]+|[^0-9\s]")
_SHORTEST_FORMULA = 3
"""Two numbers and an operator; a number alone is no plan."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What thoughts say about the way to the target."""

    formula: Formula
    value: str | None
    """The number behind the formula's ``=``, if there is one."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """What thoughts are held against."""

    game: CardGame
    rules: CardRules
    hand: Hand
    written: Formula
    """The formula that stands."""
    room: int
    """How many tokens may still be written before the ``=``."""


def judge_thought(fields: Mapping[str, Any], action: str | None, table: Table) -> dict[str, bool]:
    """Return what holds of a reply's thoughts, by name.

    Args:
        fields: The reply's fields; empty when it cannot be read.
        action: The action that was read in it.
        table: Where the game stands.

    Returns:
        `cards_right`: the cards that it lists are those on the table. `plan_right`: the formula in
        its thoughts continues what stands, uses the cards as the rules demand, and has the target's
        value; left out where no right plan is left to be found. `action_follows`: the action is the
        plan's next token, whether the plan is right or not; left out where there is neither a plan
        nor one to be found.
    """
    thoughts = fields.get("thoughts")
    plan = find_plan(thoughts if isinstance(thoughts, str) else "")
    rules, written = table.rules, table.written
    values = hand_values(table.hand, rules)
    judged = {"cards_right": are_cards_right(fields.get("cards"), table.hand)}
    is_right = plan is not None and is_plan_right(plan, written, values, rules)
    is_left = is_right or right_plan(table.game, rules, values, written, table.room) is not None
    if is_left:
        judged["plan_right"] = is_right
    if is_left or plan is not None:
        judged["action_follows"] = plan is not None and action == next_token(plan, written)
    return judged


def are_cards_right(named: Any, hand: Hand) -> bool:
    """Return whether `named`, what a reply lists, are the cards on the table, in any order.

    A card may be named with its suit or without; a suit that is named must be the right one.
    """
    if not isinstance(named, list) or len(named) != len(hand):
        return False
    left = list(hand)
    read = [_read_card(text) for text in named]
    for rank, suit in sorted(read, key=lambda card: card[1] is None):
        found = next((c for c in left if c.rank == rank and suit in (None, c.suit)), None)
        if found is None:
            return False
        left.remove(found)
    return True


def _read_card(text: Any) -> tuple[int, str | None]:
    """Return (rank, suit or None) of a card's name; rank 0 for what names none."""
    name = str(text).strip().upper() if isinstance(text, str | int) else ""
    match = _CARD.fullmatch(name) if len(name) <= MAX_CARD_CHARACTERS else None
    if match is None:
        return 0, None
    face, suit = match["face"], match["suit"]
    rank = _RANKS[face] if face in _RANKS else int(face)
    return rank, suit and _SUIT_SIGNS.get(suit, suit[0])


def find_plan(thoughts: str) -> Plan | None:
    """Return the plan in thoughts, or None when they hold no formula.

    It is the last formula with ``=`` and a number behind it, else the last formula of all. A number
    alone is no formula.

    >>> find_plan("My plan is 3 * 4 = 12. So far there is 3; the next token is *.")
    Plan(formula=('3', '*', '4'), value='12')
    """
    plans = _plans(thoughts)
    stated = [plan for plan in plans if plan.value is not None]
    return (stated or plans or [None])[-1]


def _plans(text: str) -> list[Plan]:
    """Return every formula in a text, in order."""
    found: list[Plan] = []
    run: list[str] = []
    tokens: list[str] = [*_TOKEN.findall(text.translate(_FORMULA_SIGNS)), "."]
    for token, following in zip(tokens, [*tokens[1:], "."], strict=True):
        if token in OPERATORS or token in BRACKETS or token.isdecimal():
            run.append(token)
            continue
        formula = _trimmed(run)
        if len(formula) >= _SHORTEST_FORMULA and evaluate(formula) is not None:
            is_value = token == EQUALS and following.isdecimal()
            found.append(Plan(formula=formula, value=following if is_value else None))
        run = []
    return found


def _trimmed(run: Sequence[str]) -> Formula:
    """Return a run of tokens without the signs and brackets that a sentence puts around it.

    >>> _trimmed(["-", "(", "3", "*", "4"])
    ('3', '*', '4')
    """
    start, end = 0, len(run)
    while start < end and run[start] in OPERATORS:
        start += 1
    while start < end and run[end - 1] in OPERATORS:
        end -= 1
    num_open = sum((token == "(") - (token == ")") for token in run[start:end])
    while num_open > 0 and start < end and run[start] == "(":
        start, num_open = start + 1, num_open - 1
    while num_open < 0 and start < end and run[end - 1] == ")":
        end, num_open = end - 1, num_open + 1
    return tuple(run[start:end])


def is_plan_right(plan: Plan, written: Formula, values: Sequence[int], rules: CardRules) -> bool:
    """Return whether a plan continues what stands, uses the right cards, and has the right value.

    A value that the thoughts themselves give it must be the target.
    """
    if plan.value not in (None, str(rules.target)) or plan.formula[: len(written)] != written:
        return False
    used, cards = Counter(t for t in plan.formula if t in NUMBERS), Counter(map(str, values))
    fits = used == cards if rules.must_use_all_cards else used <= cards
    return fits and evaluate(plan.formula) == rules.target


def next_token(plan: Plan, written: Formula) -> str | None:
    """Return the plan's next token, ``=`` where it stands already, None where it leads elsewhere.

    >>> next_token(Plan(formula=("3", "*", "4"), value=None), ("3",))
    '*'
    """
    if plan.formula[: len(written)] != written:
        return None
    return (*plan.formula, EQUALS)[len(written)]
