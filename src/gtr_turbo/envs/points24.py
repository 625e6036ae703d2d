"""Points24: four cards, target 24, operators and brackets: the paper's card game."""

from collections.abc import Sequence
from typing import Final

from gtr_turbo.core.turns import ParsedReply
from gtr_turbo.envs.cards import replies, solver
from gtr_turbo.envs.cards.entry import card_entry
from gtr_turbo.envs.cards.formula import BRACKETS, OPERATORS, evaluate
from gtr_turbo.envs.cards.games import CardGame
from gtr_turbo.envs.cards.rules import CardRules

__all__ = ["ACTIONS", "ENTRY", "GAME", "evaluate", "parse_reply", "solve"]

GAME: Final = CardGame(
    task_id="points24-v0",
    num_cards=4,
    operators=OPERATORS,
    brackets=BRACKETS,
    defaults=CardRules(),
)

ENTRY: Final = card_entry(GAME, "four cards, target 24: the paper's card game")

ACTIONS: Final = GAME.actions(GAME.defaults)
"""The 17 actions: 1 to 10, ``+ - * /``, ``( )``, ``=``."""


def solve(values: Sequence[int]) -> list[tuple[str, ...]]:
    """Return all distinct formulas that use all values and equal 24, shortest first.

    Values are those after the face-card rule. Raises ConfigError for more than four of them.
    """
    return solver.solve(values, GAME.defaults.target, GAME.operators)


def parse_reply(text: str) -> ParsedReply:
    """Return what a reply says to do under the default rules (actions 1 to 10)."""
    return replies.parse_reply(text, ACTIONS)
