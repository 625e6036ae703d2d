"""What parent and worker say to one another, as bytes that run nothing when they are read.

A frame is its length (8 bytes, big-endian) and a payload. A payload is one line of JSON; in an
answer the pixels of its pictures follow, one picture after the other.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, final

import numpy as np

from gtr_turbo.core.turns import JsonState, Observation, ParsedReply, StepResult
from gtr_turbo.envs.base import AbstractTask
from gtr_turbo.envs.pool.base import Shown
from gtr_turbo.errors import TaskError

MAX_FRAME_BYTES = 64 * 2**20
"""Longest frame: some thirty times two large photographs; whatever claims more is nonsense."""
HEADER_BYTES = 8
_PICTURE_AXES = 3
_MOST_PICTURES = 2  # what is shown now, and the final state of an episode that ended

T = TypeVar("T")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What an environment answers to a job."""

    index: int
    """Index of the environment."""
    task_id: str
    shown: Shown
    """Where it stands after the job; a new episode where one ended."""
    state: JsonState
    """Its snapshot after the job."""
    result: StepResult | None
    """What came of a step; None after any other job."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """What a worker says in place of an answer when a task raised, or broke its contract."""

    index: int
    kind: str
    """`exception`, `garbage`, or the name of a class of error that the caller made."""
    text: str
    hint: str | None


# ----------------------------------------------------------------------------------------- frames
def frame(payload: bytes) -> bytes:
    """Return the payload behind its length. Raises TaskError when it is too long to be sent."""
    if len(payload) > MAX_FRAME_BYTES:
        raise TaskError(
            f"a message of {len(payload):,} bytes is longer than {MAX_FRAME_BYTES:,}.",
            hint="make the pictures, or the task's snapshot, smaller.",
        )
    return len(payload).to_bytes(HEADER_BYTES, "big") + payload


def split_frame(buffer: bytearray) -> bytes | None:
    """Take one whole payload from the start of `buffer` and return it; None if there is none yet.

    Raises TaskError for a length that no frame has.
    """
    if len(buffer) < HEADER_BYTES:
        return None
    length = int.from_bytes(buffer[:HEADER_BYTES], "big")
    if length > MAX_FRAME_BYTES:
        raise TaskError(f"a message claims {length:,} bytes; at most {MAX_FRAME_BYTES:,} may come.")
    end = HEADER_BYTES + length
    if len(buffer) < end:
        return None
    payload = bytes(memoryview(buffer)[HEADER_BYTES:end])
    del buffer[:end]
    return payload


def to_json(value: Any) -> bytes:
    """Return a value as one line of JSON; floats come back bit by bit."""
    return json.dumps(value, separators=(",", ":")).encode("ascii")


# ---------------------------------------------------------------------------------------- writing
def write_answer(index: int, task: AbstractTask, result: StepResult | None) -> bytes:
    """Return the payload that tells where `task` stands, and what came of a step.

    Raises TypeError or ValueError for what is no observation, no step result or no JSON.
    """
    shown = task.observation
    # Unless the episode ended, what is shown next is what the result holds: it is sent once.
    pictures = [shown] if result is None or result.observation is shown else [
        shown, result.observation
    ]  # fmt: skip
    head = {
        "index": index,
        "task_id": task.task_id,
        "seed": task.episode_seed,
        "state": task.state(),
        "shown": [_described(observation) for observation in pictures],
        "result": None if result is None else _result_values(result),
    }
    pixels = (np.ascontiguousarray(seen.picture).tobytes() for seen in pictures)
    return b"".join((to_json(head), b"\n", *pixels))


def write_failure(index: int, kind: str, text: str, hint: str | None = None) -> bytes:
    """Return the payload that tells of a failure."""
    return to_json({"index": index, "failure": kind, "text": text, "hint": hint}) + b"\n"


def _described(observation: Observation) -> dict[str, Any]:
    picture = observation.picture
    if picture.dtype != np.uint8 or picture.ndim != _PICTURE_AXES:
        raise TypeError(f"a picture of {picture.dtype} with {picture.ndim} axes is no picture")
    return {
        "shape": list(picture.shape),
        "prompt": observation.prompt,
        "state_key": observation.state_key,
        "advice": observation.advice,
    }


def _result_values(result: StepResult) -> dict[str, Any]:
    parsed = result.parsed
    return {
        "parsed": [parsed.action, parsed.valid_format, parsed.reason],
        "rewards": dict(result.rewards),
        "flags": [
            result.legal, result.terminated, result.truncated, result.success, result.random_action
        ],
    }  # fmt: skip


# ---------------------------------------------------------------------------------------- reading
def read_message(payload: bytes) -> Answer | Failure:
    """Return what a worker said. Raises TaskError for anything that is no answer."""
    end = payload.find(b"\n")
    try:
        head = json.loads(payload[:end] if end >= 0 else payload)
        if "failure" in head:
            return Failure(
                index=_typed(head["index"], int),
                kind=_typed(head["failure"], str),
                text=_typed(head["text"], str),
                hint=_optional_text(head["hint"]),
            )
        return _answer(head, payload, end + 1)
    except (LookupError, TypeError, ValueError, ArithmeticError, RecursionError) as error:
        raise TaskError(f"a worker's message is no answer ({error!r:.200}).") from error


def _answer(head: dict[str, Any], payload: bytes, start: int) -> Answer:
    observations: list[Observation] = []
    for described in head["shown"]:
        shape = tuple(_typed(length, int) for length in described["shape"])
        size = math.prod(shape)
        if len(shape) != _PICTURE_AXES or min(shape) < 1 or start + size > len(payload):
            raise ValueError(f"no picture of {shape} is in the message")
        pixels = np.frombuffer(payload, np.uint8, size, start).reshape(shape).copy()
        start += size
        observations.append(
            Observation(
                picture=pixels,
                prompt=_typed(described["prompt"], str),
                state_key=_typed(described["state_key"], str),
                advice=_typed(described["advice"], str),
            )
        )
    if start != len(payload) or not 1 <= len(observations) <= _MOST_PICTURES:
        raise ValueError(f"{len(observations)} pictures, {len(payload) - start} bytes left over")
    values = head["result"]
    return Answer(
        index=_typed(head["index"], int),
        task_id=_typed(head["task_id"], str),
        shown=Shown(observation=observations[0], seed=_typed(head["seed"], int)),
        state=_typed(head["state"], dict),
        result=None if values is None else _result(values, observations[-1]),
    )


def _result(values: Mapping[str, Any], observation: Observation) -> StepResult:
    action, valid_format, reason = values["parsed"]
    legal, terminated, truncated, success, random_action = (
        _typed(flag, bool) for flag in values["flags"]
    )
    rewards = {name: _finite(value) for name, value in _typed(values["rewards"], dict).items()}
    if "task" not in rewards:
        raise ValueError("there is no reward of the task")
    return StepResult(
        observation=observation,
        parsed=ParsedReply(
            action=_optional_text(action),
            valid_format=_typed(valid_format, bool),
            reason=_optional_text(reason),
        ),
        legal=legal,
        rewards=rewards,
        terminated=terminated,
        truncated=truncated,
        success=success,
        random_action=random_action,
    )


def _typed(value: Any, kind: type[T]) -> T:
    if type(value) is not kind:
        raise TypeError(f"{value!r:.80} is no {kind.__name__}")
    return value


def _optional_text(value: Any) -> str | None:
    return None if value is None else _typed(value, str)


def _finite(value: Any) -> float:
    if type(value) not in (int, float) or not math.isfinite(value):
        raise ValueError(f"a reward of {value!r:.80}")
    return value
