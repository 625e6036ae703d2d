"""EZPoints: two cards, target 12, sum or product: Points24's little sister.

Hands are dealt as in the lineage's `gym_cards/EZPoints-v0`: each can be solved. A formula needs
three tokens; like there, two more are tolerated.
"""

from typing import Final

from gtr_turbo.envs.cards.entry import card_entry
from gtr_turbo.envs.cards.games import CardGame
from gtr_turbo.envs.cards.rules import CardRules

__all__ = ["ACTIONS", "ENTRY", "GAME"]

GAME: Final = CardGame(
    task_id="ezpoints-v0",
    num_cards=2,
    operators=("+", "*"),
    brackets=(),
    defaults=CardRules(
        target=12, deal="pairs", ranks=tuple(range(2, 14)), max_steps=5, max_tokens=5
    ),
)

ENTRY: Final = card_entry(GAME, "two cards, target 12, sum or product")

ACTIONS: Final = GAME.actions(GAME.defaults)
"""The 13 actions: 1 to 10, ``+ *``, ``=``."""
