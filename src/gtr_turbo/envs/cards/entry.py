"""From a card game to a seat at it, and to its entry in the registry."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from gtr_turbo.envs.base import TaskEntry
from gtr_turbo.envs.cards.games import CardGame
from gtr_turbo.envs.cards.task import CardTask
from gtr_turbo.envs.rules import read_rules


def card_entry(game: CardGame, summary: str) -> TaskEntry:
    """Return the registry entry of a card game."""
    return TaskEntry(
        summary=summary,
        default_rules=partial(game.defaults.model_dump, mode="json"),
        make=partial(make_card_task, game),
    )


def make_card_task(game: CardGame, rules: Mapping[str, Any], seed: int) -> CardTask:
    """Return a seat at a game under its defaults, some of them overridden by `rules`.

    Raises ConfigError for an unknown rule (naming the nearest), a bad value, rules that don't go
    together, and a negative seed.
    """
    return CardTask(game, read_rules(game.defaults, rules), seed)
