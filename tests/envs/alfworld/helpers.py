"""A world for tests of the task: two places, one mug, no engine; and a game's files for it."""

import json
from pathlib import Path
from typing import Any

from gtr_turbo.envs.alfworld.facts import Chore, Facts, goal_rate, view_of
from gtr_turbo.envs.alfworld.files import CHORE_FILE, GAME_FILE
from gtr_turbo.envs.alfworld.world import AbstractWorld, Scene

CHORE = Chore(
    task_type="pick_and_place_simple", thing="mug", receptacle="shelf", lamp=""
)  # fmt: skip
SORT = "pick_and_place_simple"


def write_chore(folder: Path, sort: str = SORT, trial: str = "trial_1", **changes: Any) -> Path:
    """Write the two files of a game that no engine can play, and return its directory."""
    game = folder / f"{sort}-Mug-None-Shelf-1" / trial
    game.mkdir(parents=True)
    params = {
        "object_target": "Mug",
        "parent_target": "Shelf",
        "toggle_target": "",
        "mrecep_target": "",
        "object_sliced": False,
    }
    chore = {"task_type": sort, "pddl_params": params, **changes}
    (game / CHORE_FILE).write_text(json.dumps(chore))
    (game / GAME_FILE).write_text(json.dumps({"solvable": True}))
    return game


class TwoPlaces(AbstractWorld):
    """A desk with a mug on it, and a shelf to put it on."""

    def start(self, game: Path) -> Scene:
        self.at = "middle"
        self.mug = "desk 1"
        return self._scene("You are in the middle of a room.")

    def do(self, command: str) -> Scene:
        if command not in self._commands():
            return self._scene("Nothing happens.")
        if command.startswith("go to "):
            self.at = command.removeprefix("go to ")
        elif command.startswith("take "):
            self.mug = "hand"
        elif command.startswith("move "):
            self.mug = self.at
        return self._scene(f"You did: {command}.")

    def plan(self) -> tuple[str, ...] | None:
        steps = ["go to desk 1", "take mug 1 from desk 1", "go to shelf 1", "move mug 1 to shelf 1"]
        done = 0 if self.at == "middle" else 1 if self.mug == "desk 1" else 2
        if self.mug == "hand" and self.at == "shelf 1":
            done = 3
        return () if self.mug == "shelf 1" else tuple(steps[done:])

    def close(self) -> None:
        self.at = "closed"

    def _commands(self) -> tuple[str, ...]:
        commands = [f"go to {place}" for place in ("desk 1", "shelf 1") if place != self.at]
        commands += ["inventory", "look"]
        if self.mug == self.at:
            commands.append(f"take mug 1 from {self.at}")
        if self.mug == "hand" and self.at != "middle":
            commands.append(f"move mug 1 to {self.at}")
        return tuple(sorted(commands))

    def _scene(self, text: str) -> Scene:
        rows = [
            ("receptacleatlocation", ("desk 1", "loc 1")),
            ("receptacleatlocation", ("shelf 1", "loc 2")),
            ("atlocation", ("agent1 ", {"desk 1": "loc 1", "shelf 1": "loc 2"}.get(self.at, "0"))),
            ("holds", ("agent1 ", "mug 1"))
            if self.mug == "hand"
            else ("inreceptacle", ("mug 1", self.mug)),
        ]
        facts = Facts(rows)
        rate = goal_rate(facts, CHORE)
        return Scene(
            text=text,
            commands=self._commands(),
            won=rate == 1,
            goal_rate=rate,
            view=view_of(facts, CHORE.in_words),
        )
