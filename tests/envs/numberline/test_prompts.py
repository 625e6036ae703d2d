import json
from typing import Any

import pytest

from gtr_turbo.envs.numberline.prompts import (
    REPLY_KEYS,
    judge_thought,
    parse_reply,
    reasoned_reply,
    write_prompt,
    write_reply,
)
from gtr_turbo.envs.numberline.rules import NumberLineRules
from gtr_turbo.envs.replies import Reason


@pytest.mark.parametrize("action", ["-", "+"])
@pytest.mark.parametrize("compact", [False, True])
def test_what_is_written_can_be_read(action: str, compact: bool) -> None:
    text = write_reply("3", "5", 'so "3" < 5', action, compact=compact)
    parsed = parse_reply(text)
    assert (parsed.action, parsed.valid_format, parsed.reason) == (action, True, None)
    assert tuple(json.loads(text)) == REPLY_KEYS


@pytest.mark.parametrize(
    ("text", "action", "reason"),
    [
        (
            '{"current_number": 3, "target_number": 5, "thoughts": "", "action": "+"}',
            "+",
            None,
        ),
        ('{"current": 3, "target": 5, "thoughts": "", "action": " − "}', "-", None),
        ('{"current": 3, "target": 5, "thoughts": "", "action": "--"}', None, "UNKNOWN_ACTION"),
        ('{"current": 3, "target": 5, "thoughts": "", "action": -1}', None, "UNKNOWN_ACTION"),
        ('{"current": 3, "thoughts": "", "action": "+"}', "+", "MISSING_KEYS"),
        (
            '{"current": 3, "current number": 3, "target": 5, "thoughts": "", "action": "+"}',
            "+",
            "REPEATED_KEYS",
        ),
        ('{"current number": "3", "thoughts": "up", "action": "+"', "+", "CUT_OFF"),
    ],
)
def test_other_spellings(text: str, action: str | None, reason: str | None) -> None:
    parsed = parse_reply(text)
    assert parsed.action == action
    assert parsed.reason == (None if reason is None else Reason[reason])


def test_the_experts_words() -> None:
    rules = NumberLineRules()
    assert json.loads(reasoned_reply(3, 12, rules)) == {
        "current number": "3",
        "target number": "12",
        "thoughts": "The current number is 3 and the target is 12. "
        "3 is less than 12, so I add one.",
        "action": "+",
    }
    assert json.loads(reasoned_reply(12, 3, rules))["thoughts"].endswith(
        "12 is greater than 3, so I take one away."
    )


def test_the_experts_few_words() -> None:
    rules = NumberLineRules(prompt="compact")
    assert reasoned_reply(7, 10, rules) == (
        '{"current number":"7","target number":"10","thoughts":"7<10","action":"+"}'
    )
    assert '"7>0","action":"-"' in reasoned_reply(7, 0, rules)


def test_the_prompt_names_keys_and_actions() -> None:
    prompt = write_prompt(NumberLineRules(max_position=42))
    assert "from 0 to 42" in prompt
    assert all(f'"{key}"' in prompt for key in REPLY_KEYS)
    assert '"-" or "+"' in prompt


def test_the_compact_prompt_is_short() -> None:
    assert write_prompt(NumberLineRules(prompt="compact")) == "0 to 5: move to the target"


# -- the judge of thoughts ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("current", "target", "action", "numbers_right", "follows"),
    [
        ("2", "5", "+", True, True),
        (2, 5, "+", True, True),
        ("2", "5", "-", True, False),
        ("5", "2", "-", False, True),  # read the wrong way round, and followed
        ("2", "4", "+", False, True),
        ("2", "2", "+", False, False),
        ("two", "5", "+", False, False),
        ("2", None, "+", False, False),
        (True, "5", "+", False, False),
        ("2", "9" * 5000, "+", False, False),
        ("2", "5", "*", True, False),
    ],
)
def test_thoughts_are_judged_by_the_numbers_that_they_name(
    current: Any, target: Any, action: str, numbers_right: bool, follows: bool
) -> None:
    named = {"current number": current, "target number": target}
    reply = json.dumps({**named, "thoughts": "", "action": action})
    expected = {"numbers_right": numbers_right, "action_follows": follows}
    assert judge_thought(reply, 2, 5) == expected


@pytest.mark.parametrize("reply", ["", "{", "[]", '{"action": "+"}'])
def test_replies_without_numbers_are_not_right(reply: str) -> None:
    assert judge_thought(reply, 2, 5) == {"numbers_right": False, "action_follows": False}
