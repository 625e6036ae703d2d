"""From a card game to its entry in the registry: rules are read and checked here."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from pydantic import ValidationError

from gtr_turbo.envs.base import AbstractTask, TaskEntry
from gtr_turbo.envs.cards.games import CardGame
from gtr_turbo.envs.cards.rules import CardRules
from gtr_turbo.envs.cards.task import CardTask
from gtr_turbo.errors import ConfigError, nearest_hint


def card_entry(game: CardGame, summary: str) -> TaskEntry:
    """Return the registry entry of a card game."""
    return TaskEntry(
        summary=summary,
        default_rules=partial(game.defaults.model_dump, mode="json"),
        make=partial(_make_card_task, game),
    )


def _make_card_task(game: CardGame, rules: Mapping[str, Any], seed: int) -> AbstractTask:
    known = CardRules.model_fields
    for name in rules:
        if name not in known:
            raise ConfigError(
                f'there is no rule named "{name}".', hint=nearest_hint(name, known, "rules")
            )
    try:
        merged = CardRules.model_validate(game.defaults.model_dump() | dict(rules))
    except ValidationError as error:
        raise ConfigError(_first_fault(error)) from error
    return CardTask(game, merged, seed)


def _first_fault(error: ValidationError) -> str:
    """Return pydantic's first complaint in the project's form."""
    fault = error.errors(include_url=False)[0]
    message = fault["msg"].removeprefix("Value error, ")
    if not fault["loc"]:
        return message
    where = ".".join(str(part) for part in fault["loc"])
    return f"rule `{where}`: {message}, got {fault['input']!r}."
