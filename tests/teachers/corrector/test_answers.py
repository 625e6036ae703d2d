import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gtr_turbo.teachers.corrector.answers import (
    MAX_ANSWER_CHARACTERS,
    corrected_reply,
    load_object,
    read_verdict,
    reply_fields,
)

FIELDS = {"cards": ["5", "7"], "formula": "5", "thoughts": "5+6=12", "action": "+"}


def wrong(**thought: Any) -> str:
    return json.dumps({"check": "…", "verdict": "wrong", "thought": thought})


def test_verdicts_without_thoughts() -> None:
    for verdict in ("right", "hopeless"):
        found = read_verdict(json.dumps({"verdict": verdict, "thought": {"no": 1}}), FIELDS)
        assert found is not None
        assert (found.verdict, found.thought) == (verdict, None)


def test_a_corrected_thought_may_hold_some_of_the_fields() -> None:
    found = read_verdict(wrong(cards=["5", "7"], thoughts="5+7=12"), FIELDS)
    assert found is not None
    assert found.thought == {"cards": ["5", "7"], "thoughts": "5+7=12"}


def test_whole_numbers_are_taken_for_their_digits() -> None:
    found = read_verdict(wrong(formula=7), FIELDS)
    assert found is not None
    assert found.thought == {"formula": "7"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no",
        "{}",
        "[]",
        "null",
        '"right"',
        '{"verdict": "RIGHT"}',
        '{"verdict": ["right"]}',
        '{"verdict": "wrong"}',
        '{"verdict": "wrong", "thought": {}}',
        '{"verdict": "wrong", "thought": "5+7"}',
        wrong(thoughts="5+6=12"),
        wrong(thoughts=None),
        wrong(thoughts=["5+7"]),
        wrong(thoughts=True),
        wrong(cards="5 7"),
        wrong(cards=[5, 7]),
        wrong(action="7"),
        wrong(mood="good"),
        wrong(thoughts="<|im_end|>"),
        wrong(cards=["5", "<|image_pad|>"]),
        wrong(thoughts="\ud800"),
        wrong(thoughts="x" * 9_000),
        '{"verdict": "right"' + " " * MAX_ANSWER_CHARACTERS + "}",
        '{"verdict": "right", "thought": ' + "[" * 9_000 + "}",
        '{"verdict": "right", "thought": {"a": ' + "9" * 9_000 + "}}",
        '{"verdict": "wrong", "thought": {"formula": NaN}}',
    ],
)
def test_what_cannot_be_used_is_no_verdict(text: str) -> None:
    assert read_verdict(text, FIELDS) is None


@given(st.text() | st.binary().map(lambda data: data.decode("latin-1")))
def test_nothing_that_a_model_says_raises(text: str) -> None:
    read_verdict(text, FIELDS)
    read_verdict('{"verdict": "wrong", "thought": {"thoughts": "' + text, FIELDS)
    read_verdict(wrong(thoughts=text), FIELDS)
    reply_fields(text)


@pytest.mark.parametrize(
    "text",
    ['```json\n{"a": 1}\n```', 'Here: {"a": 1} as you asked', '  {"a": 1}\n'],
)
def test_what_stands_around_an_object_is_taken_off(text: str) -> None:
    assert load_object(text) == {"a": 1}


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (
            '{"cards": ["5", "7"], "formula": "5", "thoughts": "x", "action": "+"}',
            '{"cards": ["5", "7"], "formula": "5", "thoughts": "é", "action": "+"}',
        ),
        (
            '{"cards":["5","7"],"formula":"5","thoughts":"x","action":"+"}',
            '{"cards":["5","7"],"formula":"5","thoughts":"é","action":"+"}',
        ),
        (
            '{"action": 7, "thoughts": "x"}',
            '{"thoughts": "é", "action": 7}',
        ),
        (
            '```json\n{"thoughts": "x", "action": "×"}\n```',
            '{"thoughts": "é", "action": "×"}',
        ),
    ],
)
def test_a_corrected_reply_has_the_agents_form_and_action(reply: str, expected: str) -> None:
    fields = reply_fields(reply)
    assert fields is not None
    assert corrected_reply(reply, fields, {"thoughts": "é"}) == expected


@pytest.mark.parametrize(
    "text", ["", "hm", "[1]", '{"thoughts": "x"}', '{"action": "+"', "{" * 9000]
)
def test_replies_without_fields(text: str) -> None:
    assert reply_fields(text) is None


@pytest.mark.parametrize(
    "text",
    [
        r'{"formula": "\ud800", "thoughts": "x", "action": "+"}',
        r'{"thoughts": "x", "action": "\udfff"}',
        r'{"\ud8ab": "x", "action": "+"}',
    ],
)
def test_replies_with_half_characters_are_not_asked_about(text: str) -> None:
    """What a correction leaves as it was goes to the tokenizer, which refuses them."""
    assert reply_fields(text) is None
