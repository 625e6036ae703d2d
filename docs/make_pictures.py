"""Write the pictures of the documentation: one PNG for each environment and style.

    python docs/make_pictures.py [--into docs/pictures]

Each picture is what a task shows after some of its expert's steps. The same code writes the same
files, so `git diff` tells whether a renderer has changed. A task that is not installed is skipped.
"""

import argparse
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

import numpy as np
from PIL import Image

from gtr_turbo.envs import list_tasks, make_task
from gtr_turbo.envs.drawing import Picture

NUM_COLORS = 128
"""Colours of a PNG: enough for flat drawings, and files stay below 30 kB."""
MAX_BYTES = 30_000
COMPACT = {"picture": "compact"}
COMPACT_SCALE = 4


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Shot:
    """Which moment of which episode is shown."""

    task: str
    seed: int
    num_steps: int
    """Steps of the expert before it."""
    rules: dict[str, Any] = field(default_factory=dict)
    scale: int = 1
    """How much larger than the agent sees it."""


SHOTS: dict[str, Shot] = {
    "points24": Shot(task="points24", seed=4, num_steps=5, rules={"only_solvable": True}),
    "points24-compact": Shot(
        task="points24", seed=4, num_steps=5,
        rules={"only_solvable": True, **COMPACT}, scale=COMPACT_SCALE,
    ),
    "ezpoints": Shot(task="ezpoints", seed=1, num_steps=2),
    "ezpoints-compact": Shot(
        task="ezpoints", seed=1, num_steps=2, rules=COMPACT, scale=COMPACT_SCALE
    ),
    "numberline": Shot(task="numberline", seed=0, num_steps=1),
    "numberline-compact": Shot(
        task="numberline", seed=0, num_steps=1, rules=COMPACT, scale=COMPACT_SCALE
    ),
    "blackjack": Shot(task="blackjack", seed=0, num_steps=0),
    "blackjack-compact": Shot(
        task="blackjack", seed=0, num_steps=0, rules=COMPACT, scale=COMPACT_SCALE
    ),
    "household-room": Shot(task="household", seed=16, num_steps=0),
    "household-close-up": Shot(task="household", seed=16, num_steps=9),
    "household-icons": Shot(task="household", seed=16, num_steps=9, rules={"labels": False}),
    "household-room-compact": Shot(
        task="household", seed=16, num_steps=0, rules=COMPACT, scale=COMPACT_SCALE
    ),
    "household-close-up-compact": Shot(
        task="household", seed=16, num_steps=9, rules=COMPACT, scale=COMPACT_SCALE
    ),
}  # fmt: skip
"""File name → what it shows."""


def take(shot: Shot) -> Picture:
    """Return the picture after the expert's first steps, or before the one that ends the episode.

    Raises UnknownNameError for a task that is not installed and ConfigError for rules that it
    lacks.
    """
    task = make_task(shot.task, shot.rules, 0)
    task.reset(shot.seed)
    trace = task.demonstrate(np.random.default_rng(0))
    task.reset(shot.seed)
    for turn in trace[: min(shot.num_steps, len(trace) - 1)]:
        task.step(turn.reply)
    return task.observation.picture


def write(picture: Picture, scale: int, path: Path) -> int:
    """Write a picture as a PNG with a palette and return the file's size in bytes."""
    image = Image.fromarray(picture)
    image = image.resize((image.width * scale, image.height * scale), Image.Resampling.NEAREST)
    reduced = image.quantize(NUM_COLORS, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    reduced.save(path, optimize=True)
    return path.stat().st_size


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the pictures of the documentation.")
    parser.add_argument("--into", type=Path, default=Path(__file__).parent / "pictures")
    into: Path = parser.parse_args().into
    into.mkdir(parents=True, exist_ok=True)
    installed = list_tasks()
    for name, shot in SHOTS.items():
        if shot.task not in installed:
            print(f'{name}: skipped, there is no task named "{shot.task}" (yet)')
            continue
        path = into / f"{name}.png"
        size = write(take(shot), shot.scale, path)
        warning = "  (too large)" if size > MAX_BYTES else ""
        print(f"{path}: {size} bytes{warning}")


if __name__ == "__main__":
    main()
