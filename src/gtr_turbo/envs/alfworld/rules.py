"""The rule switches of ALFWorld's own games."""

from pathlib import Path
from typing import Annotated, Literal, final

from pydantic import BaseModel, ConfigDict, Field, field_validator

from gtr_turbo.envs.alfworld.commands import Vocabulary
from gtr_turbo.envs.household.tables import TASK_TYPES


@final
class AlfworldRules(BaseModel):
    """Everything about ALFWorld's games that can be switched."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    data_path: Path = Path()
    """Where the games are: ``alfworld-download`` makes ``~/.cache/alfworld/json_2.1.1``."""
    split: Literal["train", "valid_seen", "valid_unseen", "all"] = "train"
    """The folder in `data_path` whose games are played; `all` takes them wherever they are."""
    task_types: tuple[str, ...] = TASK_TYPES
    """Sorts of chores that are played."""
    world: Literal["text", "thor"] = "text"
    """`text`: TextWorld, with schematic pictures; `thor`: Unity, with camera pictures."""

    vocabulary: Vocabulary = "0.4"
    """Words of ALFWorld's versions: `move X to Y`, `use X`; or `put X in/on Y`, `toggle X`."""
    max_steps: Annotated[int, Field(ge=1)] = 50
    """Steps per episode; the last one truncates."""
    unreadable_reply: Literal["illegal", "random_action"] = "illegal"
    """A reply without an admissible command does nothing, or is replaced by a random one (code)."""

    reward: Literal["paper", "lineage"] = "paper"
    """`paper`: a bonus each time that more conditions of the goal hold than ever before;
    `lineage`: the share of conditions that hold, at every step (code)."""
    reward_success: float = 50.0
    """For the step that reaches the goal."""
    reward_subgoal: float = 1.0
    """Under `paper`, the bonus; under `lineage`, what all conditions are worth."""
    reward_illegal: float = -1.0
    """Added for a command that is not admissible, and for an unreadable reply."""

    prompt: Literal["full", "compact"] = "full"
    """`full`: role, task, history and template; `compact`: goal and history only."""
    text_observation: bool = False
    """Whether the prompt repeats what the engine says (RL4VLM's way)."""
    history: Annotated[int, Field(ge=0)] = 100
    """How many past actions the prompt lists, the latest ones (GTR's and GTR-Turbo's way)."""
    list_admissible: bool = True
    """Whether the prompt lists the admissible commands."""
    picture: Literal["room", "compact"] = "room"
    """`room`: 300 × 300 pixels; `compact`: a small one for tiny models. Both are schematic. In THOR
    `room` is the camera's picture, and there is no `compact`."""
    labels: bool = True
    """Whether names are written into the schematic picture `room`."""

    @field_validator("task_types")
    @classmethod
    def _check_task_types(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        if not names or not set(names) <= set(TASK_TYPES):
            raise ValueError(f"the chores are {', '.join(TASK_TYPES)}")
        return names
