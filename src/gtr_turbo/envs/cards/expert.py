"""An expert that plans a whole formula, says so, and spells it token by token.

Its plans are the shortest right formulas; among those the one that takes the cards from left to
right as far as possible, so that equal tables lead to equal words. Its mistakes are formulas that
look like plans, use every card once, and have another value.
"""

from collections.abc import Sequence

import numpy as np

from gtr_turbo.envs.cards.formula import EQUALS, evaluate, precedence
from gtr_turbo.envs.cards.games import CardGame
from gtr_turbo.envs.cards.rules import CardRules
from gtr_turbo.envs.cards.solver import Formula, join

_MISTAKE_TRIES = 200
"""A random formula of two cards misses the target half of the time at worst, bar rare hands."""
_NUMBER_LEVEL = 3
_NUM_ADVISED = 5
"""Formulas that advice names: four cards can have dozens."""


def right_plan(
    game: CardGame, rules: CardRules, values: Sequence[int], written: Formula, room: int
) -> Formula | None:
    """Return the plan to follow from the formula `written` so far, or None when there is none.

    `room` is the number of tokens that may still be written before the ``=``.
    """
    plans = right_plans(game, rules, values, written, room)
    if not plans:
        return None
    return min(plans, key=lambda plan: (len(plan), _places(plan, values), plan))


def right_plans(
    game: CardGame, rules: CardRules, values: Sequence[int], written: Formula, room: int
) -> list[Formula]:
    """Return every right formula that continues what is `written` and fits into the room."""
    return [
        plan
        for plan in game.plans(tuple(values), rules)
        if plan[: len(written)] == written and len(plan) - len(written) <= room
    ]


def write_advice(rules: CardRules, plans: Sequence[Formula], reply: str) -> str:
    """Return what a solver tells a teacher: right formulas from here, and the expert's `reply`.

    `plans` are the right formulas that continue what stands; where there are none the reply is left
    out, for there is nothing right to say.
    """
    if not plans:
        return f"It is hopeless: no right formula for {rules.target} continues what stands."
    shortest = sorted(plans, key=lambda plan: (len(plan), plan))[:_NUM_ADVISED]
    formulas = ", ".join(f"{''.join(plan)}={rules.target}" for plan in shortest)
    more = "" if len(plans) <= _NUM_ADVISED else f", and {len(plans) - _NUM_ADVISED} more"
    return f"Right formulas that continue what stands: {formulas}{more}.\n{reply}"


def _places(plan: Formula, values: Sequence[int]) -> tuple[int, ...]:
    """Return which card, counted from the left, each number of a plan is taken from."""
    left = [str(value) for value in values]
    places: list[int] = []
    for token in plan:
        if token in left:
            place = left.index(token)
            left[place] = ""
            places.append(place)
    return tuple(places)


def wrong_plan(
    game: CardGame,
    rules: CardRules,
    values: Sequence[int],
    written: Formula,
    generator: np.random.Generator,
) -> Formula:
    """Return a plan that fails: cards in random order, joined by random operators.

    Where a formula stands already it is handed in as it is, or spoiled by an operator if it is
    right; so is the empty formula in the rare case of a hand without a wrong formula.
    """
    if written:
        return (*written, game.operators[0]) if evaluate(written) == rules.target else written
    for _ in range(_MISTAKE_TRIES):
        plan = _random_formula(game, values, generator)
        if evaluate(plan) != rules.target:
            return plan
    return ()


def _random_formula(
    game: CardGame, values: Sequence[int], generator: np.random.Generator
) -> Formula:
    order = generator.permutation(len(values))
    parts: list[tuple[Formula, int]] = [((str(values[i]),), _NUMBER_LEVEL) for i in order]
    while len(parts) > 1:
        place = int(generator.integers(len(parts) - 1))
        operator = game.operators[generator.integers(len(game.operators))]
        (left, left_level), (right, right_level) = parts[place], parts[place + 1]
        joined = join(left, left_level, operator, right, right_level)
        parts[place : place + 2] = [(joined, precedence(operator))]
    return parts[0][0]


def write_thoughts(rules: CardRules, plan: Formula | None, written: Formula, action: str) -> str:
    """Return what the expert thinks before an action: the whole plan, and where it stands."""
    if rules.prompt == "compact":
        return "none" if plan is None else f"{''.join(plan)}={rules.target}"
    if plan is None:
        return f"No formula of these cards can reach {rules.target} from here, so I stop."
    spelled = f"{''.join(plan)}={rules.target}"
    if action == EQUALS:
        return f"My plan {spelled} is complete, so I hand it in."
    standing = "".join(written) or "nothing"
    return f"My plan is {spelled}. So far there is {standing}; the next token is {action}."
