"""The rule switches of the number line, and what a move does."""

from functools import cache
from typing import Annotated, Final, Literal, final

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

MINUS: Final = "-"
PLUS: Final = "+"
ACTIONS: Final = (MINUS, PLUS)
"""Every action, in the lineage's order."""
LARGEST_POSITION: Final = 99
"""Two digits are what the pictures have room for."""

_SMALLEST_LINEAGE_POSITION = 2
"""On a line of two numbers the lineage's next goal can be the start itself."""


@final
class NumberLineRules(BaseModel):
    """Everything about the number line that can be switched."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    max_position: Annotated[int, Field(ge=1, le=LARGEST_POSITION)] = 5
    """The line's largest number; the smallest is 0."""
    goal_draw: Literal["distinct", "lineage"] = "distinct"
    """`distinct`: each pair of start and goal that is allowed is equally likely; `lineage`: both
    are drawn alone, and a goal that hits the start becomes (goal + 1) mod `max_position`."""
    min_distance: Annotated[int, Field(ge=1, le=LARGEST_POSITION)] = 1
    """The goal is at least so far from the start; only under `goal_draw: distinct`."""

    unreadable_reply: Literal["illegal", "random_action"] = "illegal"
    """A reply without an action moves nothing, or is replaced by a random action, counted."""
    max_steps: Annotated[int, Field(ge=1)] | None = None
    """Steps per episode; None: twice `max_position`, the lineage's number."""
    end_at_first_penalty: bool = False
    """The first negative reward ends the episode: early truncation, for training only."""

    reward_success: float = 1.0
    """For the step that reaches the goal."""
    reward_closer: float = 0.0
    """For any other step towards the goal."""
    reward_not_closer: float = -1.0
    """For a step away from the goal, and for one that the end of the line stops."""
    reward_illegal: float = -1.0
    """For an unreadable reply."""

    picture: Literal["lineage", "compact"] = "lineage"
    """`lineage`: 300 × 300 pixels, two lines of text; `compact`: one 28 × 28 cell per number."""
    prompt: Literal["full", "compact"] = "full"
    """`full`: role, rules and template; `compact`: a few words, for tiny models."""

    advice: bool = False
    """Whether `Observation.advice` tells what the solver says, for a teacher; never the prompt."""

    @model_validator(mode="after")
    def _check_draw(self) -> "NumberLineRules":
        if self.min_distance > self.max_position:
            raise ValueError(
                f"`min_distance` is {self.min_distance}, but the line has no two numbers so far "
                f"apart: `max_position` is {self.max_position}."
            )
        if self.goal_draw == "lineage" and self.min_distance > 1:
            raise ValueError("`goal_draw: lineage` goes with `min_distance: 1` only.")
        if self.goal_draw == "lineage" and self.max_position < _SMALLEST_LINEAGE_POSITION:
            raise ValueError("`goal_draw: lineage` needs a `max_position` of 2 at least, got 1.")
        return self

    @property
    def step_limit(self) -> int:
        """The step that truncates."""
        return 2 * self.max_position if self.max_steps is None else self.max_steps


def draw_line(rules: NumberLineRules, generator: np.random.Generator) -> tuple[int, int]:
    """Return (start, goal), which differ."""
    if rules.goal_draw == "distinct":
        pairs = _pairs(rules.max_position, rules.min_distance)
        return pairs[generator.integers(len(pairs))]
    start = int(generator.integers(rules.max_position + 1))
    goal = int(generator.integers(rules.max_position + 1))
    return start, (goal + 1) % rules.max_position if goal == start else goal


def move(position: int, action: str, rules: NumberLineRules) -> int:
    """Return where an action leads; both ends of the line hold what would go beyond them."""
    step = 1 if action == PLUS else -1
    return min(max(position + step, 0), rules.max_position)


def move_reward(before: int, after: int, goal: int, rules: NumberLineRules) -> float:
    """Return what a move from `before` to `after` earns."""
    if after == goal:
        return rules.reward_success
    is_closer = abs(after - goal) < abs(before - goal)
    return rules.reward_closer if is_closer else rules.reward_not_closer


@cache
def _pairs(max_position: int, min_distance: int) -> tuple[tuple[int, int], ...]:
    """Return every allowed pair of start and goal."""
    numbers = range(max_position + 1)
    return tuple((a, b) for a in numbers for b in numbers if abs(a - b) >= min_distance)
