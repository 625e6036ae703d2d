"""The card games as Gymnasium environments: numbered actions, the picture as observation.

    import gymnasium, gtr_turbo.envs
    env = gymnasium.make("gtr_turbo/Points24-v0", only_solvable=True)

Rules, deals and pictures are those of `make_task`; the wrapper writes the replies.
"""

from typing import Any, Final, final

import gymnasium
import numpy as np
from gymnasium import spaces

from gtr_turbo.envs import ezpoints, points24
from gtr_turbo.envs.cards.entry import make_card_task
from gtr_turbo.envs.cards.hands import hand_values
from gtr_turbo.envs.drawing import Picture
from gtr_turbo.errors import ConfigError, TaskError

_GAMES: Final = {"ezpoints": ezpoints.GAME, "points24": points24.GAME}
_SEED_BOUND = 2**53

GYM_IDS: Final = {"gtr_turbo/EZPoints-v0": "ezpoints", "gtr_turbo/Points24-v0": "points24"}
"""Gymnasium id → name of the task."""


@final
class CardEnv(gymnasium.Env[Picture, np.int64]):
    """A card game whose actions are indices into `action_names`.

    `info` holds `cards` (names), `values` (what they count), `formula` (the tokens written so far)
    and `solvable`; after a step also `legal` and `success`. `reset(seed=s)` deals the hand that
    the task deals from s; later resets without a seed follow from the last seed given.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 4}  # noqa: RUF012

    def __init__(self, game: str, render_mode: str | None = None, **rules: Any) -> None:
        """Raise ConfigError for rules that `make_task` would refuse, or another render mode."""
        if render_mode not in (None, "rgb_array"):
            raise ConfigError(f'`render_mode` must be None or "rgb_array", got {render_mode!r}.')
        self.render_mode = render_mode
        self._task = make_card_task(_GAMES[game], rules, seed=0)
        self.action_names = self._task.actions
        self.action_space = spaces.Discrete(len(self.action_names))
        shape = self._task.reset(0).picture.shape
        self.observation_space = spaces.Box(0, 255, shape, np.uint8)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Picture, dict[str, Any]]:
        """Deal a hand; `options` are not used."""
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
        hand = self._task.hand
        return {
            "cards": [card.name for card in hand],
            "values": list(hand_values(hand, self._task.rules)),
            "formula": list(self._task.formula),
            "solvable": self._task.solvable,
        }


def register_gym_environments() -> None:
    """Make the ids of `GYM_IDS` known to `gymnasium.make`; a second call changes nothing."""
    for gym_id, game in GYM_IDS.items():
        if gym_id not in gymnasium.registry:
            gymnasium.register(gym_id, entry_point=f"{__name__}:CardEnv", kwargs={"game": game})
