"""The rule switches of a task made from a Gymnasium environment, and what known ids are given."""

import json
from typing import Annotated, Any, Final, Literal, final

from pydantic import BaseModel, ConfigDict, Field, field_validator

from gtr_turbo.errors import ConfigError

PictureSide = Annotated[int, Field(ge=1, le=4_096)]
_OURS: Final = ("id", "render_mode", "max_episode_steps", "disable_env_checker")
"""Arguments of `gymnasium.make` that the task gives itself."""


@final
class GymnasiumRules(BaseModel):
    """Everything about such a task that can be switched."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    kwargs: tuple[str, ...] = ()
    """Arguments for `gymnasium.make`, each as ``name=value`` with a JSON value."""
    action_names: tuple[str, ...] = ()
    """A word for each numbered action, in order; for written actions a list to choose from. Empty:
    the words of known environments, else the numbers from 0."""
    max_steps: Annotated[int, Field(ge=1)] | None = None
    """Steps after which an episode is truncated; null takes the environment's own, else 100."""

    success_threshold: float = 0.0
    """A last reward above it makes a terminated episode a success."""
    success_key: str = ""
    """Key of `info` whose truth decides about success in place of the reward."""
    illegal_reward: float = -1.0
    """For an action that `info["action_mask"]` forbids, and for an unreadable reply; neither
    changes the state."""
    unreadable_reply: Literal["illegal", "random_action"] = "illegal"
    """A reply without an action is illegal, or is replaced by a random action, counted."""

    picture: Literal["auto", "observation", "rgb_array", "ansi"] = "auto"
    """Where the picture comes from: the observation, the environment's renderer, or its text,
    drawn here. `auto` takes the first of them that the environment has."""
    picture_size: tuple[PictureSide, PictureSide] | None = None
    """Height and width to which pictures are resized; null keeps them."""
    prompt: str = "full"
    """`full`, `compact` (for tiny models), or a template of your own with {instruction}, {text},
    {history} and {actions}."""
    instruction: str = ""
    """What is to be done; a mission that the environment tells goes before it."""
    history: Annotated[int, Field(ge=0, le=100)] = 0
    """How many of the last actions the prompt repeats."""

    @field_validator("kwargs")
    @classmethod
    def _check_kwargs(cls, kwargs: tuple[str, ...]) -> tuple[str, ...]:
        for pair in kwargs:
            name, equals, text = pair.partition("=")
            if not equals or not name.isidentifier() or name in _OURS:
                raise ValueError(
                    "each must be `name=value` with an argument of the environment's own"
                )
            try:
                json.loads(text)
            except (ValueError, RecursionError):
                raise ValueError(
                    f'the value of `{name}` must be JSON (true, 3, "8x8" with its quotes)'
                ) from None
        return kwargs

    @field_validator("action_names")
    @classmethod
    def _check_action_names(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        if len({name.casefold().strip() for name in names} - {""}) < len(names):
            raise ValueError("action names must be different words")
        return names

    @property
    def env_arguments(self) -> dict[str, Any]:
        """The arguments for `gymnasium.make` with their values."""
        return {pair.partition("=")[0]: json.loads(pair.partition("=")[2]) for pair in self.kwargs}


_LAKE: Final = GymnasiumRules(
    action_names=("left", "down", "right", "up"),
    instruction="Cross the frozen lake to the goal and keep off the holes.",
)
_CLIFF: Final = GymnasiumRules(
    action_names=("up", "right", "down", "left"),
    instruction="Walk to the goal in the bottom right corner and keep off the cliff.",
    success_threshold=-2.0,  # every step costs 1, the last one too
)
_TAXI: Final = GymnasiumRules(
    action_names=("south", "north", "east", "west", "pick up", "drop off"),
    instruction="Pick the passenger up and drop the passenger off at the destination.",
)
_ROOMS: Final = GymnasiumRules(
    action_names=("left", "right", "forward", "pick up", "drop", "toggle", "done"),
)

_KNOWN: Final = {
    "FrozenLake": _LAKE,
    "CliffWalking": _CLIFF,
    "Taxi-": _TAXI,
    "MiniGrid-": _ROOMS,
    "BabyAI-": _ROOMS,
}
"""Start of an id → the rules that fit it."""


def default_rules_of(gym_id: str) -> GymnasiumRules:
    """Return the rules that an id starts from."""
    name = gym_id.rpartition(":")[2]
    fitting = [rules for start, rules in _KNOWN.items() if name.startswith(start)]
    return fitting[0] if fitting else GymnasiumRules()


def check_num_names(names: tuple[str, ...], num_actions: int) -> None:
    """Raise ConfigError unless there is a name for each action."""
    if len(names) != num_actions:
        raise ConfigError(
            f"rule `action_names` holds {len(names)} names, but there are {num_actions} actions.",
            hint="name them all in their order, or give an empty list for their numbers.",
        )
