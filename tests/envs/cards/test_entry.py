import pytest

from gtr_turbo.envs.cards.entry import card_entry, make_card_task
from gtr_turbo.envs.cards.rules import CardRules
from gtr_turbo.envs.ezpoints import GAME
from gtr_turbo.errors import ConfigError


def test_an_entry_makes_the_game() -> None:
    entry = card_entry(GAME, "a game")
    assert entry.summary == "a game"
    task = entry.make({"max_steps": 7}, 3)
    assert task.task_id == "ezpoints-v0"
    assert make_card_task(GAME, {"max_steps": 7}, 3).rules.max_steps == 7


def test_default_rules_are_json_and_make_the_same_rules() -> None:
    rules = card_entry(GAME, "a game").default_rules()
    assert rules["ranks"] == [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]
    assert set(rules) == set(CardRules.model_fields)
    assert make_card_task(GAME, rules, 0).rules == GAME.defaults


def test_rules_are_checked() -> None:
    with pytest.raises(ConfigError, match='no rule named "traget"'):
        make_card_task(GAME, {"traget": 12}, 0)
    with pytest.raises(ConfigError, match="can be won"):
        make_card_task(GAME, {"max_steps": 2, "only_solvable": True}, 0)
