from typing import Any

import pytest
from pydantic import ValidationError

from gtr_turbo.envs.cards.rules import CardRules
from gtr_turbo.envs.rules import read_rules
from gtr_turbo.errors import ConfigError


def test_defaults_are_the_papers() -> None:
    rules = CardRules()
    assert (rules.target, rules.max_steps, rules.ranks) == (24, 20, tuple(range(1, 14)))
    assert (rules.illegal_action, rules.length_limit, rules.deal) == (
        "unchanged",
        "steps",
        "with_replacement",
    )
    assert (rules.reward_success, rules.reward_failure, rules.reward_illegal) == (10, -1, -1)
    assert rules.must_use_all_cards
    assert rules.face_cards_as_ten
    assert not rules.only_solvable
    assert not rules.end_at_first_penalty
    assert rules.unreadable_reply == "illegal"


def test_rules_are_frozen() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        CardRules().target = 12  # pyright: ignore[reportAttributeAccessIssue]


def test_lists_are_read_as_ranks() -> None:
    rules = read_rules(CardRules(target=12), {"ranks": [1, 2], "prompt": "compact"})
    assert rules == CardRules(target=12, ranks=(1, 2), prompt="compact")


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"target": 0}, r"rule `target`: .*greater than or equal to 1, got 0\."),
        ({"max_steps": 0}, r"rule `max_steps`"),
        ({"ranks": [0]}, r"rule `ranks\.0`: .* got 0\."),
        ({"ranks": [14]}, r"rule `ranks\.0`"),
        ({"ranks": [3, 3]}, r"`ranks` must be distinct and at least one, got \[3, 3\]\."),
        ({"ranks": []}, r"must be distinct and at least one, got \[\]"),
        ({"picture": "huge"}, r"rule `picture`: .*'table' or 'compact', got 'huge'\."),
        ({"prompt": 3}, r"rule `prompt`"),
        ({"illegal_action": "ignored"}, r"rule `illegal_action`"),
        ({"only_solvable": "perhaps"}, r"rule `only_solvable`"),
    ],
)
def test_bad_values_are_refused(rules: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_rules(CardRules(), rules)
