"""What happened: pictures, parsed replies, turns and episodes. Python and numpy only.

Axes: patch = one vision patch of a picture, feature = its flattened pixels, height · width ·
channel of a picture. Nothing is added to an object after it is made.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, final

import numpy as np
from jaxtyping import Float32, Int64, UInt8


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedReply:
    """What an environment read in a reply. Bad replies are values, never exceptions."""

    action: str | None
    """The action in the task's own words, or None when none could be read."""
    valid_format: bool
    """True when the whole reply is one JSON object with every required key."""
    reason: str | None
    """Why `action` is None or the format is not valid, in a few words; None when all is well."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What an environment shows before a turn."""

    picture: UInt8[np.ndarray, "height width channel"]
    prompt: str
    """The text that goes beside the picture in the user's turn."""
    state_key: str
    """Names the state: equal keys mean equal futures (up to the environment's random numbers)."""
    advice: str = ""
    """What only a teacher may be told of this state: the solver's answer. Empty unless asked for
    by the task's rule `advice`; never part of the prompt."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StepResult:
    """What an environment answers to a reply."""

    observation: Observation
    """What is shown next; after the end, the final state."""
    parsed: ParsedReply
    legal: bool
    """True when the action could be carried out as given."""
    rewards: Mapping[str, float]
    """Reward channels by name; `task` is the environment's own reward."""
    terminated: bool
    """The task is over: nothing more can be earned."""
    truncated: bool
    """We stopped watching (a step cap): the future has a value."""
    success: bool
    """True on the turn that solves the task."""
    random_action: bool = False
    """True when an unreadable reply was replaced by a seeded random action (lineage switch)."""


def picture_hash(picture: UInt8[np.ndarray, "height width channel"]) -> str:
    """Return the sha256 of a picture's shape and pixels."""
    head = repr(picture.shape).encode()
    return hashlib.sha256(head + np.ascontiguousarray(picture).tobytes()).hexdigest()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PictureInputs:
    """One picture as the model is fed it."""

    patches: Float32[np.ndarray, "patch feature"]
    grid: tuple[int, int, int]
    """(time, rows, columns) in patches, before the merger joins them."""
    sha256: str
    """`picture_hash` of the picture as the environment made it."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """One observation, encoded: token ids with picture placeholders, and the picture."""

    token_ids: tuple[int, ...]
    position_ids: Int64[np.ndarray, "3 seq"]
    """Multimodal rotary positions (time, row, column) of each token."""
    picture: PictureInputs


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingSettings:
    """The distribution that replies are drawn from; scoring applies the same processing."""

    temperature: float
    max_new_tokens: int
    suppressed: tuple[int, ...]
    """Token ids that are never sampled (picture, video and control tokens)."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One sampled response."""

    token_ids: tuple[int, ...]
    """Exactly the sampled ids, the end-of-turn token included when it was sampled."""
    token_logprobs: Float32[np.ndarray, " seq"]
    """Behaviour log-probability of each id, nats, under `SamplingSettings`."""
    text: str
    num_thought_tokens: int
    """Tokens [0, n) are thought, the rest is action."""
    finished: bool
    """False when the token limit cut the reply."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One exchange, as it happened."""

    observation: Observation
    prompt: Prompt
    reply: Reply
    sampling: SamplingSettings
    parsed: ParsedReply
    legal: bool
    random_action: bool
    rewards: Mapping[str, float]
    terminated: bool
    truncated: bool
    success: bool
    policy_version: str
    """Fingerprint of the weights that sampled the reply."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ThoughtLabel:
    """A thought to imitate: what was shown, and the tokens that a teacher would have thought."""

    observation: Observation
    token_ids: tuple[int, ...]
    """The thought, and at least one token of an action after it, which is not imitated."""
    num_thought_tokens: int

    @staticmethod
    def of(observation: Observation, reply: Reply) -> "ThoughtLabel":
        """Return the label that a whole reply makes."""
        return ThoughtLabel(
            observation=observation,
            token_ids=reply.token_ids,
            num_thought_tokens=reply.num_thought_tokens,
        )


class EpisodeEnd(StrEnum):
    """Why a stretch of turns ended."""

    TERMINATED = "terminated"
    """The task was over: solved, failed, or ended early by a training rule."""
    TRUNCATED = "truncated"
    """A step cap was reached; the value of what followed is bootstrapped."""
    UPDATE_BOUNDARY = "update_boundary"
    """The update had its turns; the episode goes on in the next update. Bootstrapped too."""
    FAULT = "fault"
    """The environment failed: nothing of the stretch is learned from or counted as a result."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """A stretch of consecutive turns of one environment within one update."""

    turns: tuple[Turn, ...]
    task_id: str
    environment: int
    """Index of the environment that played it."""
    seed: int
    """Seed of the episode's deal."""
    end: EpisodeEnd
    next_prompt: Prompt | None
    """What came after the last turn; present unless the task terminated or failed."""
    prior_return: float = 0.0
    """Undiscounted task reward that the episode had collected before this stretch."""
    prior_turns: int = 0
    """Turns that the episode had taken before this stretch."""

    @property
    def success(self) -> bool:
        """True when the stretch solved the task."""
        return any(turn.success for turn in self.turns)

    @property
    def task_return(self) -> float:
        """Undiscounted sum of the task's rewards over the whole episode so far."""
        return self.prior_return + sum(turn.rewards["task"] for turn in self.turns)


JsonState = dict[str, Any]
"""A JSON-able snapshot: numbers, strings, lists, dicts and None."""
