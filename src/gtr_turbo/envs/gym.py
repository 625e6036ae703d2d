"""Tasks as Gymnasium environments: numbered actions, the picture as observation.

    import gymnasium, gtr_turbo.envs
    env = gymnasium.make("gtr_turbo/Points24-v0", only_solvable=True)

Rules, deals and pictures are those of `make_task`; the wrapper writes the replies.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, final

import gymnasium
import numpy as np
from gymnasium import spaces

from gtr_turbo.envs import ezpoints, points24
from gtr_turbo.envs.base import AbstractTask
from gtr_turbo.envs.blackjack.rules import count
from gtr_turbo.envs.blackjack.task import make_blackjack
from gtr_turbo.envs.cards.entry import make_card_task
from gtr_turbo.envs.cards.games import CardGame
from gtr_turbo.envs.cards.hands import hand_values
from gtr_turbo.envs.drawing import Picture
from gtr_turbo.envs.numberline.task import make_number_line
from gtr_turbo.errors import ConfigError, TaskError

_SEED_BOUND = 2**53

GYM_IDS: Final = {
    "gtr_turbo/Blackjack-v0": "blackjack",
    "gtr_turbo/EZPoints-v0": "ezpoints",
    "gtr_turbo/NumberLine-v0": "numberline",
    "gtr_turbo/Points24-v0": "points24",
}
"""Gymnasium id → name of the task."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Seat:
    """A task whose actions are numbered."""

    task: AbstractTask
    actions: tuple[str, ...]
    facts: Callable[[], dict[str, Any]]
    """Returns what `info` tells of the state, apart from `solvable`."""


@final
class TaskEnv(gymnasium.Env[Picture, np.int64]):
    """A task whose actions are indices into `action_names`.

    `info` holds `solvable`; after a step also `legal` and `success`; and of

    - the card games `cards` (names), `values` (what they count) and `formula` (the tokens so far),
    - the number line `current` and `target`,
    - blackjack `player` and `dealer` (names of the cards that are shown), `total` and `usable_ace`.

    `reset(seed=s)` starts the episode that the task makes from s; later resets without a seed
    follow from the last seed given.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 4}  # noqa: RUF012

    def __init__(self, name: str, render_mode: str | None = None, **rules: Any) -> None:
        """Raise ConfigError for rules that `make_task` would refuse, or another render mode."""
        if render_mode not in (None, "rgb_array"):
            raise ConfigError(f'`render_mode` must be None or "rgb_array", got {render_mode!r}.')
        self.render_mode = render_mode
        seat = _SEATS[name](rules)
        self._task, self._facts = seat.task, seat.facts
        self.action_names = seat.actions
        self.action_space = spaces.Discrete(len(self.action_names))
        shape = self._task.reset(0).picture.shape
        self.observation_space = spaces.Box(0, 255, shape, np.uint8)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Picture, dict[str, Any]]:
        """Start an episode; `options` are not used."""
        super().reset(seed=seed)
        if seed is None:
            seed = int(self.np_random.integers(_SEED_BOUND))
        return self._task.reset(seed).picture, self._info()

    def step(self, action: np.int64 | int) -> tuple[Picture, float, bool, bool, dict[str, Any]]:
        """Take an action by its index. Raises TaskError for an index outside the action space."""
        if not self.action_space.contains(action):
            raise TaskError(
                f"the action {action!r} is outside 0 … {len(self.action_names) - 1}.",
                hint="`action_names` lists what each index stands for.",
            )
        result = self._task.step(self._task.write_action(self.action_names[action]))
        info = self._info() | {"legal": result.legal, "success": result.success}
        picture = result.observation.picture
        return picture, result.rewards["task"], result.terminated, result.truncated, info

    def render(self) -> Picture | None:
        """Return the picture under `render_mode="rgb_array"`, else None."""
        return None if self.render_mode is None else self._task.observation.picture

    def _info(self) -> dict[str, Any]:
        return self._facts() | {"solvable": self._task.solvable}


def register_gym_environments() -> None:
    """Make the ids of `GYM_IDS` known to `gymnasium.make`; a second call changes nothing."""
    for gym_id, name in GYM_IDS.items():
        if gym_id not in gymnasium.registry:
            gymnasium.register(gym_id, entry_point=f"{__name__}:TaskEnv", kwargs={"name": name})


def _card_seat(game: CardGame, rules: Mapping[str, Any]) -> _Seat:
    task = make_card_task(game, rules, seed=0)

    def facts() -> dict[str, Any]:
        return {
            "cards": [card.name for card in task.hand],
            "values": list(hand_values(task.hand, task.rules)),
            "formula": list(task.formula),
        }

    return _Seat(task=task, actions=task.actions, facts=facts)


def _number_line_seat(rules: Mapping[str, Any]) -> _Seat:
    task = make_number_line(rules, seed=0)

    def facts() -> dict[str, Any]:
        return {"current": task.position, "target": task.goal}

    return _Seat(task=task, actions=task.actions, facts=facts)


def _blackjack_seat(rules: Mapping[str, Any]) -> _Seat:
    task = make_blackjack(rules, seed=0)

    def facts() -> dict[str, Any]:
        own = count(task.player)
        return {
            "player": [card.name for card in task.player],
            "dealer": [card.name for card in task.dealer],
            "total": own.total,
            "usable_ace": own.usable_ace,
        }

    return _Seat(task=task, actions=task.actions, facts=facts)


_SEATS: Final[dict[str, Callable[[Mapping[str, Any]], _Seat]]] = {
    "blackjack": _blackjack_seat,
    "ezpoints": lambda rules: _card_seat(ezpoints.GAME, rules),
    "numberline": _number_line_seat,
    "points24": lambda rules: _card_seat(points24.GAME, rules),
}
