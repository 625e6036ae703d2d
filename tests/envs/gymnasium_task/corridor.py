"""Small Gymnasium environments that draw themselves with numpy alone.

Importing this module makes them known, so `gym:tests.envs.gymnasium_task.corridor:Corridor-v0`
names the first of them.
"""

import sys
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

HOME = "tests.envs.gymnasium_task.corridor"
LENGTH = 5


class Corridor(gymnasium.Env[Any, Any]):
    """A corridor of five cells; the goal is the last one, a pit the first."""

    metadata: dict[str, Any] = {"render_modes": ["rgb_array", "ansi"]}  # noqa: RUF012

    def __init__(
        self,
        render_mode: str | None = None,
        variant: str = "plain",
        slip: float = 0.0,
        reachable: bool = True,
    ) -> None:
        sys.stdout.write("noise on stdout\n")
        self.render_mode = render_mode
        self.variant = variant
        self.observation_space: Any = spaces.Discrete(LENGTH)
        self.action_space: Any = spaces.Discrete(2)
        if variant == "text":
            self.action_space = spaces.Text(20)
        if variant == "box":
            self.action_space = spaces.Box(0, 1, (1,))
        if variant == "pixels":
            self.observation_space = spaces.Box(0, 255, (20, 20 * LENGTH, 3), np.uint8)
        self.s = 0
        goal, pit = (LENGTH - 1 if reachable else -1), 0
        if variant != "untabled":
            self.P = {
                state: {
                    action: [
                        (chance, after, float(after == goal), after in (goal, pit))
                        for chance, step in ((1 - slip, 2 * action - 1), (slip, 0))
                        for after in [min(max(state + step, 0), LENGTH - 1)]
                    ]
                    for action in (0, 1)
                }
                for state in range(LENGTH)
            }

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        source = np.random.default_rng() if self.variant == "unseeded" else self.np_random
        self.s = int(source.integers(1, LENGTH - 1))
        self.wear = int(source.integers(2**40)) if self.variant == "unseeded" else 0
        return self._told(), self._info() | {"episode_kind": f"from {self.s}"}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        if self.variant == "text":
            action = ["go back", "go on"].index(action) if action.startswith("go ") else 0
        self.s = min(max(self.s + 2 * int(action) - 1, 0), LENGTH - 1)
        won = self.s == LENGTH - 1
        return self._told(), float(won), won or self.s == 0, False, self._info() | {"won": won}

    def render(self) -> Any:
        if self.render_mode == "ansi":
            cells = ["\x1b[41mx\x1b[0m" if i == self.s else "." for i in range(LENGTH)]
            return f"  (remark)\n{''.join(cells)}\n"
        return self._picture()

    def _picture(self) -> np.ndarray:
        picture = np.zeros((20, 20 * LENGTH, 3), np.uint8)
        picture[:, 20 * self.s : 20 * self.s + 20] = 255
        return picture

    def _told(self) -> Any:
        if self.variant == "pixels":
            return self._picture()
        if self.variant == "mission":
            return {"mission": "go to the {history} end", "text": "a corridor"}
        return (self.s, self.wear) if self.variant == "unseeded" else self.s

    def _info(self) -> dict[str, Any]:
        if self.variant != "masked":
            return {}
        return {"action_mask": np.array([self.s > 1, True], np.int8)}


for variant in ("plain", "text", "box", "pixels", "unseeded", "mission", "masked", "untabled"):
    gymnasium.register(
        f"Corridor{'' if variant == 'plain' else variant.title()}-v0",
        entry_point=f"{HOME}:Corridor",
        kwargs={"variant": variant},
        max_episode_steps=None if variant == "untabled" else 12,
    )


def name(variant: str = "") -> str:
    """Return the name of a corridor in the registry of tasks."""
    return f"gym:{HOME}:Corridor{variant}-v0"
