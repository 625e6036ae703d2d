import json

import pytest

from gtr_turbo.envs.blackjack.prompts import (
    REPLY_KEYS,
    parse_reply,
    reasoned_reply,
    write_prompt,
    write_reply,
)
from gtr_turbo.envs.blackjack.rules import BlackjackRules
from gtr_turbo.envs.cards.hands import Card
from gtr_turbo.envs.replies import Reason

SOFT = (Card(1, "H"), Card(6, "S"))
HARD = (Card(13, "H"), Card(6, "S"))


@pytest.mark.parametrize("action", ["stand", "hit"])
@pytest.mark.parametrize("compact", [False, True])
def test_what_is_written_can_be_read(action: str, compact: bool) -> None:
    text = write_reply('I say "hit"', action, compact=compact)
    parsed = parse_reply(text)
    assert (parsed.action, parsed.valid_format, parsed.reason) == (action, True, None)
    assert tuple(json.loads(text)) == REPLY_KEYS


@pytest.mark.parametrize(
    ("action", "read"),
    [
        ("Hit", "hit"),
        (" STAND ", "stand"),
        ("stick", "stand"),
        ("hit me", None),
        ("double", None),
        ("stand or hit", None),
        ("", None),
    ],
)
def test_how_actions_may_be_written(action: str, read: str | None) -> None:
    parsed = parse_reply(json.dumps({"thoughts": "", "action": action}))
    assert parsed.action == read
    assert parsed.valid_format
    assert parsed.reason == (None if read else Reason.UNKNOWN_ACTION)


def test_the_words_say_what_is_seen_and_why() -> None:
    rules = BlackjackRules()
    assert json.loads(reasoned_reply(SOFT, Card(12, "D"), "hit", rules)) == {
        "thoughts": "I have A, 6: 17 with an ace that counts 11. The dealer shows Q. "
        "One more card is worth its risk, so I hit.",
        "action": "hit",
    }
    thoughts = json.loads(reasoned_reply(HARD, Card(5, "D"), "stand", rules))["thoughts"]
    assert thoughts == (
        "I have K, 6: 16. The dealer shows 5. One more card is not worth its risk, so I stand."
    )


def test_the_few_words() -> None:
    rules = BlackjackRules(prompt="compact")
    assert reasoned_reply(SOFT, Card(1, "D"), "hit", rules) == (
        '{"thoughts":"soft 17 vs A: hit","action":"hit"}'
    )
    assert reasoned_reply(HARD, Card(5, "D"), "stand", rules) == (
        '{"thoughts":"16 vs 5: stand","action":"stand"}'
    )


def test_the_prompt_names_keys_and_actions() -> None:
    prompt = write_prompt(BlackjackRules())
    assert all(f'"{key}"' in prompt for key in REPLY_KEYS)
    assert '"stand" or "hit"' in prompt
    prompts = {write_prompt(BlackjackRules(natural=kind)) for kind in ("plain", "bonus", "wins")}
    assert len(prompts) == 3


def test_the_compact_prompt_is_short() -> None:
    assert write_prompt(BlackjackRules(prompt="compact")) == "blackjack: hit or stand"
