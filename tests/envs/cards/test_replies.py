"""What is particular to the card games' replies; tests/envs/test_replies.py has the rest."""

import json
from pathlib import Path
from typing import Any

import pytest

from gtr_turbo.envs.cards.replies import REPLY_KEYS, parse_reply, write_reply
from gtr_turbo.envs.points24 import ACTIONS
from gtr_turbo.envs.replies import Reason

CASES = Path(__file__).parents[2] / "cases" / "points24_replies.json"
REPLIES = json.loads(CASES.read_text(encoding="utf-8"))

GOOD = '{"cards": ["2H", "JS"], "formula": "1+", "thoughts": "x", "action": "2"}'


def as_reply(**changes: Any) -> str:
    return json.dumps(json.loads(GOOD) | changes)


def verdict(text: str) -> tuple[str | None, bool, str | None]:
    parsed = parse_reply(text, ACTIONS)
    return parsed.action, parsed.valid_format, parsed.reason


@pytest.mark.parametrize("case", REPLIES, ids=lambda case: (case["note"] or case["reply"])[:40])
def test_given_replies(case: dict[str, Any]) -> None:
    action, valid_format, reason = verdict(case["reply"])
    assert action == case["action"]
    assert (reason is None) == (action is not None and valid_format)
    if (case["note"] or "").startswith("cut off"):
        assert not valid_format


KINDS: list[tuple[str, str | None, bool, Reason | None]] = [
    (GOOD, "2", True, None),
    (GOOD.replace("formula", "current formula"), "2", True, None),
    (GOOD.replace("{", '{"current formula": "", '), "2", False, Reason.REPEATED_KEYS),
    (GOOD.replace('"formula"', '"mood"'), "2", False, Reason.MISSING_KEYS),
    (GOOD.replace('"cards"', '"hand"'), "2", False, Reason.MISSING_KEYS),
    ('{"action": "2"}', "2", False, Reason.MISSING_KEYS),
    ('{"action": "99"', None, False, Reason.UNKNOWN_ACTION),
    (as_reply(action=2), "2", True, None),
    (as_reply(action="10 "), "10", True, None),
    (as_reply(action="÷"), "/", True, None),
    (as_reply(action="×"), "*", True, None),
    (as_reply(action="−"), "-", True, None),
    (as_reply(action="1 0"), None, True, Reason.UNKNOWN_ACTION),
    (as_reply(action="2+"), None, True, Reason.UNKNOWN_ACTION),
    (as_reply(action="02"), None, True, Reason.UNKNOWN_ACTION),
    (as_reply(action=-2), None, True, Reason.UNKNOWN_ACTION),
    (as_reply(action=2.0), None, True, Reason.NOT_TEXT),
    (as_reply(action="\N{FULLWIDTH DIGIT TWO}"), None, True, Reason.UNKNOWN_ACTION),
    (as_reply(action="Ⅱ"), None, True, Reason.UNKNOWN_ACTION),
]


@pytest.mark.parametrize(("text", "action", "valid_format", "reason"), KINDS)
def test_each_kind_of_reply(
    text: str, action: str | None, valid_format: bool, reason: Reason | None
) -> None:
    assert verdict(text) == (action, valid_format, reason)


@pytest.mark.parametrize("compact", [False, True])
@pytest.mark.parametrize("action", ACTIONS)
def test_what_is_written_can_be_read(action: str, compact: bool) -> None:
    text = write_reply(
        cards=["10D", "JS"], formula="10-", thoughts='so "x" × y', action=action, compact=compact
    )
    assert verdict(text) == (action, True, None)
    assert tuple(json.loads(text)) == REPLY_KEYS


def test_the_two_ways_of_writing() -> None:
    parts = {"cards": ["7", "5"], "formula": "7+", "thoughts": "7+5=12", "action": "5"}
    spaced = '{"cards": ["7", "5"], "formula": "7+", "thoughts": "7+5=12", "action": "5"}'
    assert write_reply(**parts, compact=False) == spaced
    tight = '{"cards":["7","5"],"formula":"7+","thoughts":"7+5=12","action":"5"}'
    assert write_reply(**parts, compact=True) == tight
