import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gtr_turbo.envs.cards.replies import REPLY_KEYS, parse_reply, write_reply
from gtr_turbo.envs.points24 import ACTIONS
from gtr_turbo.envs.replies import MAX_CHARACTERS, MAX_DEPTH, Reason

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
    (f"```json\n{GOOD}\n```", "2", True, None),
    (f"```\n{GOOD}```", "2", True, None),
    (f"\n {GOOD}\t", "2", True, None),
    (GOOD.replace("formula", "current formula"), "2", True, None),
    (as_reply(action=2), "2", True, None),
    (as_reply(action="÷"), "/", True, None),
    (as_reply(mood="fine"), "2", True, None),
    (f"Sure! {GOOD}", "2", False, Reason.TEXT_AROUND),
    (f"{GOOD} {GOOD}", "2", False, Reason.TEXT_AROUND),
    (f"```json\n{GOOD}\n``` done", "2", False, Reason.TEXT_AROUND),
    (f"[{GOOD}]", "2", False, Reason.TEXT_AROUND),
    ('{"action": "2"}', "2", False, Reason.MISSING_KEYS),
    (GOOD.replace('"formula"', '"mood"'), "2", False, Reason.MISSING_KEYS),
    (GOOD.replace("{", '{"cards": [], '), "2", False, Reason.REPEATED_KEYS),
    (GOOD.replace("{", '{"current formula": "", '), "2", False, Reason.REPEATED_KEYS),
    (GOOD[:-1], "2", False, Reason.CUT_OFF),
    (GOOD[:-2], None, False, Reason.CUT_OFF),
    (GOOD[:-1] + ", }", "2", False, Reason.NOT_JSON),
    (GOOD.replace('"x"', '"line\nbreak"'), "2", False, Reason.NOT_JSON),
    (GOOD.replace('"x"', "x"), "2", False, Reason.NOT_JSON),
    (GOOD.replace('"', "'"), None, False, Reason.NO_ACTION),
    ('{"thoughts": "I was cut', None, False, Reason.NO_ACTION),
    ('{"action": "7", "thoughts": "\\"action\\": \\"8\\"', "7", False, Reason.CUT_OFF),
    ('{"action": "7", "thoughts": "", "action": "8"', None, False, Reason.TWO_ACTIONS),
    ('{"action": 1', None, False, Reason.CUT_OFF),
    ('{"action": "99"', None, False, Reason.UNKNOWN_ACTION),
    ('{"plan": {"action": "2"}}', None, False, Reason.NO_ACTION),
    ("{}", None, False, Reason.NO_ACTION),
    (as_reply(action=""), None, True, Reason.UNKNOWN_ACTION),
    (as_reply(action="10 "), "10", True, None),
    (as_reply(action="1 0"), None, True, Reason.UNKNOWN_ACTION),
    (as_reply(action="2+"), None, True, Reason.UNKNOWN_ACTION),
    (as_reply(action="02"), None, True, Reason.UNKNOWN_ACTION),
    (as_reply(action=-2), None, True, Reason.UNKNOWN_ACTION),
    (as_reply(action=2.0), None, True, Reason.NOT_TEXT),
    (as_reply(action=None), None, True, Reason.NOT_TEXT),
    (as_reply(action=False), None, True, Reason.NOT_TEXT),
    (as_reply(action={"action": "2"}), None, True, Reason.NOT_TEXT),
    (as_reply(action="\N{FULLWIDTH DIGIT TWO}"), None, True, Reason.UNKNOWN_ACTION),
    (as_reply(action="Ⅱ"), None, True, Reason.UNKNOWN_ACTION),
    (" \n\t ", None, False, Reason.EMPTY),
    ("``````", None, False, Reason.EMPTY),
    ("2", None, False, Reason.NO_OBJECT),
    ('"action": "2"', None, False, Reason.NO_OBJECT),
    ("[" * 5_000, None, False, Reason.NO_OBJECT),
    ('{"a":' * 1_000, None, False, Reason.TOO_DEEP),
    ("{" + "[" * MAX_DEPTH + "]" * MAX_DEPTH + "}", None, False, Reason.TOO_DEEP),
    ('{"a": ' + "[" * 7 + "]" * 7 + ', "action": "2"}', "2", False, Reason.MISSING_KEYS),
    ('{"thoughts": "[[[[[[[[[[[[", "action": "2"}', "2", False, Reason.MISSING_KEYS),
    ('{"action": ' + "9" * 5_000 + "}", None, False, Reason.NOT_JSON),
    (GOOD + " " * MAX_CHARACTERS, None, False, Reason.TOO_LONG),
    (GOOD + "]" * 3_000, "2", False, Reason.TEXT_AROUND),
]


@pytest.mark.parametrize(("text", "action", "valid_format", "reason"), KINDS)
def test_each_kind_of_reply(
    text: str, action: str | None, valid_format: bool, reason: Reason | None
) -> None:
    assert verdict(text) == (action, valid_format, reason)


def test_every_reason_is_in_the_table() -> None:
    assert {reason for _, _, _, reason in KINDS} == {None, *Reason}


@pytest.mark.parametrize(
    "text",
    [
        "[" * MAX_CHARACTERS,
        "{" * MAX_CHARACTERS,
        '{"' * (MAX_CHARACTERS // 2),
        "{" + '\\"' * 4_000,
        '{"' + "\\" * 8_000,
        "{" + '"action":' * 900,
        "{" + '"action": "' * 700,
        "```" * 2_700,
        "```json" + " " * 8_000,
        "{" + '"a":{},' * 1_100,
        "9" * 10_000_000,
    ],
    ids=lambda text: text[:12],
)
def test_hostile_replies_cost_little(text: str) -> None:
    seconds = []
    for _ in range(5):
        start = time.process_time()
        assert parse_reply(text, ACTIONS).action is None
        seconds.append(time.process_time() - start)
    assert (
        min(seconds) < 0.1
    )  # about 1 ms without this suite's type checks; more than linear: many seconds


@given(st.text(max_size=200))
@settings(max_examples=300, deadline=None)
def test_any_text_gets_a_verdict(text: str) -> None:
    action, valid_format, reason = verdict(text)
    assert (reason is None) == (action is not None and valid_format)


pieces = st.sampled_from(
    ['"action"', '"cards"', '"formula"', '"thoughts"', ":", ",", "{", "}", "[", "]", '"', "\\",
     '"2"', "2", '"+"', "null", "```", " ", "\n"]
)  # fmt: skip


@given(st.lists(pieces, max_size=24).map("".join))
@settings(max_examples=500, deadline=None)
def test_scraps_of_replies_get_a_verdict(text: str) -> None:
    action, valid_format, reason = verdict(text)
    assert (reason is None) == (action is not None and valid_format)
    assert action is None or action in ACTIONS
    assert not valid_format or json.loads(text.strip().strip("`").strip()) is not None


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
