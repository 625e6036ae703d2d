import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gtr_turbo.envs.replies import (
    MAX_CHARACTERS,
    MAX_DEPTH,
    Reason,
    ReplyForm,
    named_fields,
    parse_reply,
    unfenced,
    whole_keys,
    write_reply,
)

ACTIONS = ("go", "stay", "2")
FORM = ReplyForm(
    keys=("place", "thoughts", "action"),
    read_action=lambda text: text.lower() if text.lower() in ACTIONS else None,
    other_keys={"current place": "place"},
)
GOOD = '{"place": ["hall", 1], "thoughts": "x", "action": "go"}'


def as_reply(**changes: Any) -> str:
    return json.dumps(json.loads(GOOD) | changes)


def verdict(text: str) -> tuple[str | None, bool, str | None]:
    parsed = parse_reply(text, FORM)
    return parsed.action, parsed.valid_format, parsed.reason


KINDS: list[tuple[str, str | None, bool, Reason | None]] = [
    (GOOD, "go", True, None),
    (f"```json\n{GOOD}\n```", "go", True, None),
    (f"```\n{GOOD}```", "go", True, None),
    (f"\n {GOOD}\t", "go", True, None),
    (GOOD.replace("place", "current place"), "go", True, None),
    (as_reply(action="GO"), "go", True, None),
    (as_reply(action=" go\t"), "go", True, None),
    (as_reply(action=2), "2", True, None),
    (as_reply(mood="fine"), "go", True, None),
    (f"Sure! {GOOD}", "go", False, Reason.TEXT_AROUND),
    (f"{GOOD} {GOOD}", "go", False, Reason.TEXT_AROUND),
    (f"```json\n{GOOD}\n``` done", "go", False, Reason.TEXT_AROUND),
    (f"[{GOOD}]", "go", False, Reason.TEXT_AROUND),
    ('{"action": "go"}', "go", False, Reason.MISSING_KEYS),
    (GOOD.replace('"place"', '"mood"'), "go", False, Reason.MISSING_KEYS),
    (GOOD.replace("{", '{"place": [], '), "go", False, Reason.REPEATED_KEYS),
    (GOOD.replace("{", '{"current place": "", '), "go", False, Reason.REPEATED_KEYS),
    (GOOD[:-1], "go", False, Reason.CUT_OFF),
    (GOOD[:-2], None, False, Reason.CUT_OFF),
    (GOOD[:-1] + ", }", "go", False, Reason.NOT_JSON),
    (GOOD.replace('"x"', '"line\nbreak"'), "go", False, Reason.NOT_JSON),
    (GOOD.replace('"x"', "x"), "go", False, Reason.NOT_JSON),
    (GOOD.replace('"', "'"), None, False, Reason.NO_ACTION),
    ('{"thoughts": "I was cut', None, False, Reason.NO_ACTION),
    ('{"action": "go", "thoughts": "\\"action\\": \\"stay\\"', "go", False, Reason.CUT_OFF),
    ('{"action": "go", "thoughts": "", "action": "stay"', None, False, Reason.TWO_ACTIONS),
    ('{"action": "go", "thoughts": "", "action": "stay"}', None, False, Reason.TWO_ACTIONS),
    ('{"action": 1', None, False, Reason.CUT_OFF),
    ('{"action": "fly"', None, False, Reason.UNKNOWN_ACTION),
    ('{"plan": {"action": "go"}}', None, False, Reason.NO_ACTION),
    ("{}", None, False, Reason.NO_ACTION),
    (as_reply(action=""), None, True, Reason.UNKNOWN_ACTION),
    (as_reply(action="go on"), None, True, Reason.UNKNOWN_ACTION),
    (as_reply(action=-2), None, True, Reason.UNKNOWN_ACTION),
    (as_reply(action=2.0), None, True, Reason.NOT_TEXT),
    (as_reply(action=None), None, True, Reason.NOT_TEXT),
    (as_reply(action=False), None, True, Reason.NOT_TEXT),
    (as_reply(action={"action": "go"}), None, True, Reason.NOT_TEXT),
    (" \n\t ", None, False, Reason.EMPTY),
    ("``````", None, False, Reason.EMPTY),
    ("go", None, False, Reason.NO_OBJECT),
    ('"action": "go"', None, False, Reason.NO_OBJECT),
    ("[" * 5_000, None, False, Reason.NO_OBJECT),
    ('{"a":' * 1_000, None, False, Reason.TOO_DEEP),
    ("{" + "[" * MAX_DEPTH + "]" * MAX_DEPTH + "}", None, False, Reason.TOO_DEEP),
    ('{"a": ' + "[" * 7 + "]" * 7 + ', "action": "go"}', "go", False, Reason.MISSING_KEYS),
    ('{"thoughts": "[[[[[[[[[[[[", "action": "go"}', "go", False, Reason.MISSING_KEYS),
    ('{"action": ' + "9" * 5_000 + "}", None, False, Reason.NOT_JSON),
    (GOOD + " " * MAX_CHARACTERS, None, False, Reason.TOO_LONG),
    (GOOD + "]" * 3_000, "go", False, Reason.TEXT_AROUND),
]


@pytest.mark.parametrize(("text", "action", "valid_format", "reason"), KINDS)
def test_each_kind_of_reply(
    text: str, action: str | None, valid_format: bool, reason: Reason | None
) -> None:
    assert verdict(text) == (action, valid_format, reason)


def test_every_reason_is_in_the_table() -> None:
    assert {reason for _, _, _, reason in KINDS} == {None, *Reason}


def test_the_longest_reply_that_is_read() -> None:
    assert verdict(GOOD + " " * (MAX_CHARACTERS - len(GOOD))) == ("go", True, None)


def test_a_form_without_other_keys() -> None:
    form = ReplyForm(keys=("action",), read_action=lambda text: text or None)
    assert parse_reply('{"action": "any words"}', form).action == "any words"
    assert parse_reply('{"action": ""}', form).reason == Reason.UNKNOWN_ACTION


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
        assert parse_reply(text, FORM).action is None
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
    ['"action"', '"place"', '"thoughts"', ":", ",", "{", "}", "[", "]", '"', "\\", '"2"', "2",
     '"go"', "null", "```", " ", "\n"]
)  # fmt: skip


@given(st.lists(pieces, max_size=24).map("".join))
@settings(max_examples=500, deadline=None)
def test_scraps_of_replies_get_a_verdict(text: str) -> None:
    action, valid_format, reason = verdict(text)
    assert (reason is None) == (action is not None and valid_format)
    assert action is None or action in ACTIONS
    assert not valid_format or json.loads(text.strip().strip("`").strip()) is not None


@given(st.dictionaries(st.text(max_size=8), st.text(max_size=20), max_size=4), st.booleans())
def test_what_is_written_can_be_read(fields: dict[str, str], compact: bool) -> None:
    fields = {"place": "hall", "thoughts": '"so"\n× {'} | fields | {"action": "stay"}
    text = write_reply(fields, compact=compact)
    assert list(json.loads(text).items()) == list(fields.items())
    if "current place" not in fields:
        assert verdict(text) == ("stay", True, None)


def test_the_two_ways_of_writing() -> None:
    fields = {"place": ["hall", 1], "thoughts": "a × b", "action": "go"}
    spaced = '{"place": ["hall", 1], "thoughts": "a × b", "action": "go"}'
    assert write_reply(fields, compact=False) == spaced
    tight = '{"place":["hall",1],"thoughts":"a × b","action":"go"}'
    assert write_reply(fields, compact=True) == tight


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        (GOOD, {"place": ["hall", 1], "thoughts": "x", "action": "go"}),
        (f"Sure:\n```json\n{GOOD}\n```", {"place": ["hall", 1], "thoughts": "x", "action": "go"}),
        ('{"current place": 1}', {"place": 1}),
        ('{"place": {"a": 1}}', {"place": (("a", 1),)}),
        ('{"place": 1, "current place": 1}', {}),
        ('{"place": 1, "place": 2}', {}),
        ('{"place": 1', {}),
        ('{"place": x}', {}),
        ("place", {}),
        ('{"place":' * (MAX_DEPTH + 1) + "1" + "}" * (MAX_DEPTH + 1), {}),
        ('{"place": "' + "x" * MAX_CHARACTERS + '"}', {}),
        ('{"place": ' + "9" * 5_000 + "}", {}),
    ],
)
def test_fields_come_under_the_names_of_the_form(text: str, fields: dict[str, Any]) -> None:
    assert named_fields(text, FORM) == fields


@pytest.mark.parametrize(
    ("text", "body"),
    [
        (f" {GOOD}\n", GOOD),
        (f"```json\n{GOOD}\n```", GOOD),
        (f"\n```JSON {GOOD}``` ", GOOD),
        (f"```{GOOD}```", GOOD),
        ("``````", ""),
        (f"```python\n{GOOD}```", f"python\n{GOOD}"),
        (f"Sure: ```{GOOD}```", f"Sure: ```{GOOD}```"),
        ("", ""),
    ],
)
def test_one_fence_is_taken_off(text: str, body: str) -> None:
    assert unfenced(text) == body


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        (GOOD, ["place", "thoughts", "action"]),
        (f"```json\n{GOOD}\n```", ["place", "thoughts", "action"]),
        ('{"action": {"action": 1}, "action": 2}', ["action", "action"]),
        ("{}", []),
        (f"Sure: {GOOD}", None),
        (f"{GOOD} {GOOD}", None),
        (GOOD[:-1], None),
        ("[1]", None),
        ("{1}", None),
        ("", None),
        ('{"a":' * (MAX_DEPTH + 1) + "1" + "}" * (MAX_DEPTH + 1), None),
        ('{"a": "' + "x" * MAX_CHARACTERS + '"}', None),
        ("[" * 100_000, None),
    ],
)
def test_the_keys_of_a_whole_object(text: str, keys: list[str] | None) -> None:
    assert whole_keys(text) == keys


@pytest.mark.parametrize("text", [text for text, _, is_valid, _ in KINDS if is_valid])
def test_what_has_a_valid_format_is_a_whole_object(text: str) -> None:
    assert whole_keys(text) is not None
