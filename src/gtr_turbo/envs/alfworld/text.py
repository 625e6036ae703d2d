"""ALFWorld in TextWorld: the text engine, its planner, and pictures drawn from its facts.

The game runs in this process, about 50 ms a step, nearly all of it spent on the text of the
admissible commands. Each engine loads a copy of the planner's library (34 MB) that can't be
unloaded, so an engine whose world is gone is kept for the next world.
"""

import json
import re
import weakref
from pathlib import Path
from typing import Any, Final, final

from gtr_turbo.envs.alfworld.extra import load
from gtr_turbo.envs.alfworld.facts import Facts, goal_rate, read_chore, view_of
from gtr_turbo.envs.alfworld.files import GAME_FILE
from gtr_turbo.envs.alfworld.world import AbstractWorld, Scene
from gtr_turbo.errors import TaskError

_TASK: Final = re.compile(r"\s*Your task is to: (.*?)\.?\s*\Z", re.DOTALL)
_WELCOME: Final = re.compile(r"\A-= .*? =-\s*")

_idle_engines: list[tuple[Any, Any]] = []


def _make_engine() -> tuple[Any, Any]:
    """Return TextWorld's engine, and the same with ALFWorld's names for things around it."""
    textworld = load("textworld")
    pddl = load("textworld.envs.pddl")
    wrappers = load("alfworld.agents.environment.alfred_tw_env")
    inner = pddl.PddlEnv(textworld.EnvInfos(facts=True, won=True, admissible_commands=True))
    return inner, wrappers.AlfredDemangler(inner, shuffle=False)


@final
class TextWorld(AbstractWorld):
    """A game in TextWorld's PDDL engine."""

    def __init__(self) -> None:
        """Load the engine. Raises ConfigError when the extra is not installed."""
        engine = _idle_engines.pop() if _idle_engines else _make_engine()
        weakref.finalize(self, _idle_engines.append, engine)
        self._inner, self._engine = engine
        self._game: Path | None = None
        self._goal = ""

    def start(self, game: Path) -> Scene:
        """Start a game; one that was played last is not read again.

        Raises TaskError for a directory without a game that the engine can read.
        """
        if game != self._game:
            self._game = None
            self._chore = read_chore(game)
            try:
                # Given a path, the engine would leave the file open.
                self._engine.load(json.loads((game / GAME_FILE).read_text(encoding="utf-8")))
            except (OSError, ValueError, KeyError) as error:
                raise TaskError(f"{game / GAME_FILE} is no game: {error!r}.") from error
            self._game = game
        state = self._engine.reset()
        task = _TASK.search(state["feedback"])
        self._goal = "" if task is None else task.group(1)
        return self._scene(state)

    def do(self, command: str) -> Scene:
        """Carry out a command. Raises TaskError before the first game."""
        if self._game is None:
            raise TaskError("no game is running.", hint="`start` one first.")
        state, _, _ = self._engine.step(command)
        return self._scene(state)

    def plan(self) -> tuple[str, ...] | None:
        """Return the planner's commands from here; they are short, not always the shortest."""
        commands = self._inner._pddl_state.replan(self._inner._entity_infos)
        if not commands and not self._inner.state["won"]:
            return None
        return tuple(commands)

    def close(self) -> None:
        """Forget the game; the engine is free when this object is gone."""
        self._game = None

    def _scene(self, state: Any) -> Scene:
        facts = Facts((fact.name, fact.names) for fact in state["facts"])
        return Scene(
            text=_WELCOME.sub("", _TASK.sub("", state["feedback"])).strip(),
            commands=tuple(state["admissible_commands"]),
            won=bool(state["won"]),
            goal_rate=goal_rate(facts, self._chore),
            view=view_of(facts, self._goal),
        )
