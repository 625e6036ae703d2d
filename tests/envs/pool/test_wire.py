import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gtr_turbo.envs.pool import wire
from gtr_turbo.envs.pool.wire import (
    MAX_FRAME_BYTES,
    Answer,
    Failure,
    frame,
    read_message,
    split_frame,
    write_answer,
    write_failure,
)
from gtr_turbo.envs.registry import make_task
from gtr_turbo.errors import TaskError
from tests.envs.pool.pools import GAME, RULES, known, reply

TASK = make_task(GAME, RULES, 3)
TASK.reset()


def answer_of(payload: bytes) -> Answer:
    said = read_message(payload)
    assert isinstance(said, Answer)
    return said


def test_an_answer_comes_through_bit_by_bit() -> None:
    task = make_task(GAME, RULES, 7)
    task.reset()
    opened = answer_of(write_answer(4, task, None))
    assert (opened.index, opened.task_id, opened.result) == (4, task.task_id, None)
    assert opened.state == json.loads(json.dumps(task.state()))
    for number in range(6):
        result = task.step(reply(number))
        is_over = result.terminated or result.truncated
        if is_over:
            task.reset()
        found = answer_of(write_answer(4, task, result))
        assert found.result is not None
        assert known(found.result) == known(result)
        assert found.shown.seed == task.episode_seed
        assert (found.shown.observation.picture == task.observation.picture).all()
        assert found.shown.observation.prompt == task.observation.prompt
        same = found.shown.observation is found.result.observation
        assert same != is_over, "a picture is sent twice only where an episode ended"


def test_text_that_is_no_unicode_and_floats_come_through() -> None:
    result = TASK.step("no idea")
    TASK.reset()
    strange = replace(
        result,
        parsed=replace(result.parsed, reason="\ud800\n\x00"),
        rewards={"task": 0.1 + 0.2, "other": -0.0},
    )
    found = answer_of(write_answer(0, TASK, strange)).result
    assert found is not None
    assert found.parsed.reason == "\ud800\n\x00"
    assert repr(dict(found.rewards)) == repr(dict(strange.rewards))


def test_a_failure_comes_through() -> None:
    said = read_message(write_failure(2, "exception", "a\nb", None))
    assert said == Failure(index=2, kind="exception", text="a\nb", hint=None)


def test_frames_are_taken_apart_however_they_arrive() -> None:
    payloads = [b"", b"a", bytes(1000)]
    stream = b"".join(frame(payload) for payload in payloads)
    buffer = bytearray()
    found = []
    for byte in stream:
        buffer.append(byte)
        payload = split_frame(buffer)
        if payload is not None:
            found.append(payload)
    assert found == payloads
    assert not buffer


def test_sizes_are_bounded_on_both_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TaskError, match="at most"):
        split_frame(bytearray((MAX_FRAME_BYTES + 1).to_bytes(8, "big")))
    monkeypatch.setattr(wire, "MAX_FRAME_BYTES", 10)
    with pytest.raises(TaskError, match="11 bytes is longer than 10"):
        frame(bytes(11))


def changed(**values: Any) -> bytes:
    """Return a good answer with some of its values replaced."""
    head, _, pixels = write_answer(0, TASK, None).partition(b"\n")
    return json.dumps({**json.loads(head), **values}).encode() + b"\n" + pixels


GOOD_RESULT = {
    "parsed": ["+", True, None],
    "rewards": {"task": 1.0},
    "flags": [True, False, False, False, False],
}
SHOWN = {"shape": [28, 56, 3], "prompt": "", "state_key": ""}
NONSENSE = {
    "nothing": b"",
    "an empty line": b"\n",
    "null": b"null\n",
    "a list": b"[]\n",
    "deep": b"[" * 100_000,
    "a failure without words": b'{"failure": 3}\n',
    "a pickle": b"\x80\x04K\x01.",
    "a byte too many": changed() + b"x",
    "a byte too few": changed()[:-1],
    "index text": changed(index="0"),
    "index truth": changed(index=True),
    "seed": changed(seed=1.5),
    "state": changed(state=[]),
    "no picture": changed(shown=[]),
    "three pictures": changed(shown=[SHOWN] * 3),
    "flat": changed(shown=[{**SHOWN, "shape": [28, 56]}]),
    "negative": changed(shown=[{**SHOWN, "shape": [-28, -56, 3]}]),
    "huge": changed(shown=[{**SHOWN, "shape": [2**40, 2**40, 3]}]),
    "no prompt": changed(shown=[{**SHOWN, "prompt": None}]),
    "a number for a result": changed(result=7),
    "no reward": changed(result={**GOOD_RESULT, "rewards": {}}),
    "a reward of NaN": changed(result={**GOOD_RESULT, "rewards": {"task": float("nan")}}),
    "a reward of true": changed(result={**GOOD_RESULT, "rewards": {"task": True}}),
    "a reward beyond floats": changed(result={**GOOD_RESULT, "rewards": {"task": 10**400}}),
    "one flag": changed(result={**GOOD_RESULT, "flags": [True]}),
    "flags of numbers": changed(result={**GOOD_RESULT, "flags": [1, 0, 0, 0, 0]}),
    "a number for an action": changed(result={**GOOD_RESULT, "parsed": [3, True, None]}),
}


@pytest.mark.parametrize("what", NONSENSE)
def test_nonsense_is_refused(what: str) -> None:
    assert isinstance(read_message(changed(result=GOOD_RESULT)), Answer)
    with pytest.raises(TaskError, match="no answer"):
        read_message(NONSENSE[what])


@given(st.integers(0, 10_000), st.binary(max_size=8))
def test_no_damage_does_anything_but_be_read_or_refused(at: int, junk: bytes) -> None:
    good = changed(result=GOOD_RESULT)
    at %= len(good)
    try:
        said = read_message(good[:at] + junk + good[at + len(junk) :])
    except TaskError:
        return
    assert isinstance(said, Answer)
    assert np.asarray(said.shown.observation.picture).ndim == 3
