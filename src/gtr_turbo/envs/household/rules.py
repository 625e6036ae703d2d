"""The rule switches of the household.

Defaults are the paper's, where it says something; where the released code of the lineage differs,
another value of the switch follows it (docs/environments.md has the table).
"""

from typing import Annotated, Literal, final

from pydantic import BaseModel, ConfigDict, Field, field_validator

from gtr_turbo.envs.household.tables import OBJECT_KINDS, RECEPTACLE_KINDS, ROOMS, TASK_TYPES

Split = Literal["train", "valid_seen", "valid_unseen"]


@final
class HouseholdRules(BaseModel):
    """Everything about the household that can be switched."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    task_types: tuple[str, ...] = TASK_TYPES
    """Sorts of goals that are dealt, each as often as the others."""
    split: Split = "train"
    """`valid_seen`: other games in the rooms of `train`; `valid_unseen`: rooms held out from it."""
    rooms: tuple[str, ...] = ROOMS
    """Kinds of rooms that are dealt, as far as the sort of goal fits them."""
    num_scenes: Annotated[int, Field(ge=1, le=30)] = 30
    """At most so many rooms of each kind; 1 is always the same room."""
    max_receptacles: Annotated[int, Field(ge=3)] = 100
    """A room keeps at most so many receptacles, those that the goal needs among them."""
    num_objects: Annotated[int, Field(ge=2, le=100)] = 30
    """A room holds at most so many objects, lamps not counted."""
    receptacle_kinds: tuple[str, ...] = RECEPTACLE_KINDS
    """Kinds of receptacles that rooms have."""
    object_kinds: tuple[str, ...] = OBJECT_KINDS
    """Kinds of objects that are dealt, lamps apart."""

    max_steps: Annotated[int, Field(ge=1)] = 50
    """The step that truncates an episode."""
    early_truncation: bool = False
    """GTR's, for training only: an episode ends with `reward_stuck` at the step that repeats one
    action for the `max_repeats`-th time in a row, or that follows on `max_actions` others."""
    max_repeats: Annotated[int, Field(ge=2)] = 5
    """Equal actions in a row that end an episode under `early_truncation`."""
    max_actions: Annotated[int, Field(ge=1)] = 40
    """Actions after which one more ends an episode under `early_truncation`."""

    reward: Literal["paper", "lineage"] = "paper"
    """`paper`: a bonus each time that more conditions of the goal hold than ever before;
    `lineage`: the share of conditions that hold, at every step (code)."""
    reward_success: float = 50.0
    """For the step that reaches the goal."""
    reward_subgoal: float = 1.0
    """Under `paper`, the bonus; under `lineage`, what all conditions are worth."""
    reward_illegal: float = -1.0
    """Added for an action that is not admissible, and for an unreadable reply."""
    reward_stuck: float = -3.0
    """The whole reward of a step that ends an episode under `early_truncation`."""

    vocabulary: Literal["0.4", "0.3"] = "0.4"
    """Words of ALFWorld's versions: `move X to Y` and `help`; or `put X in/on Y` and no `help`."""
    matching: Literal["exact", "longest"] = "exact"
    """`exact`: the action's text is a command; `longest`: the longest admissible command that it
    contains is meant."""
    idle_commands: bool = True
    """Whether `inventory`, `help` and `examine` are admissible; `look` always is."""
    unreadable_reply: Literal["illegal", "random_action"] = "illegal"
    """A reply without an admissible action changes nothing, or is replaced by a random admissible
    action (code); both are illegal."""

    prompt: Literal["full", "compact"] = "full"
    """`full`: role, task, history and template; `compact`: goal and history only."""
    text_observation: bool = False
    """Whether the prompt also tells in words what is in sight; GTR shows the picture alone."""
    history: Annotated[int, Field(ge=0)] = 100
    """How many past actions the prompt lists, the latest ones."""
    list_admissible: bool = True
    """Whether the prompt lists the admissible actions."""
    picture: Literal["room", "compact"] = "room"
    """`room`: 300 × 300 pixels; `compact`: a small one for tiny models."""
    labels: bool = True
    """Whether names are written into the picture `room`."""
    expert: Literal["planner", "search"] = "search"
    """`planner` knows where everything is; `search` only what it has seen."""
    advice: bool = False
    """Whether `Observation.advice` tells what the expert does next, for a teacher; never the
    prompt."""

    @field_validator("task_types")
    @classmethod
    def _check_task_types(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return _members(value, TASK_TYPES, "task types")

    @field_validator("rooms")
    @classmethod
    def _check_rooms(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return _members(value, ROOMS, "rooms")

    @field_validator("receptacle_kinds")
    @classmethod
    def _check_receptacles(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return _members(value, RECEPTACLE_KINDS, "kinds of receptacles")

    @field_validator("object_kinds")
    @classmethod
    def _check_kinds(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return _members(value, OBJECT_KINDS, "kinds of objects")


def _members(value: tuple[str, ...], known: tuple[str, ...], what: str) -> tuple[str, ...]:
    """Return `value` when it is a choice of `known`; raises ValueError otherwise."""
    unknown = [name for name in value if name not in known]
    if not value or unknown or len(set(value)) < len(value):
        raise ValueError(f"must be some of the {what}, each once ({', '.join(known)})")
    return value
