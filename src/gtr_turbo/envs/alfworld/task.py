"""ALFWorld's own games as a task: official ones, or ones that `games.py` wrote.

The text world tells everything, so the picture is drawn from what an agent at its place would see;
it is a schema, not a view of THOR, and its numbers are not comparable with the paper's.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, final

import numpy as np

from gtr_turbo.core.turns import JsonState, Observation, ParsedReply, StepResult
from gtr_turbo.envs.alfworld.commands import read_command, write_command
from gtr_turbo.envs.alfworld.facts import read_chore
from gtr_turbo.envs.alfworld.files import find_games
from gtr_turbo.envs.alfworld.prompts import REPLY_KEYS, write_prompt, write_thoughts
from gtr_turbo.envs.alfworld.rules import AlfworldRules
from gtr_turbo.envs.alfworld.text import TextWorld
from gtr_turbo.envs.alfworld.thor import ThorWorld
from gtr_turbo.envs.alfworld.world import AbstractWorld, Scene
from gtr_turbo.envs.base import AbstractTask, Demonstration, TaskEntry
from gtr_turbo.envs.drawing import Picture
from gtr_turbo.envs.episodes import EpisodeKeeper, make_generator
from gtr_turbo.envs.household.compact import draw_compact
from gtr_turbo.envs.household.render import draw_room
from gtr_turbo.envs.replies import ReplyForm, parse_reply, write_reply
from gtr_turbo.envs.rules import read_rules
from gtr_turbo.errors import ConfigError, TaskError

_NOTHING: Final = "nothing"
"""Stands in the history for a reply without a command."""
_IDLE: Final = "look"
"""What the expert does when nothing is left to do: it is always admissible."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Episode:
    """Where an episode stands; the world is brought to it by its commands."""

    seed: int
    game: str
    actions: tuple[str, ...] = ()
    """Every step's command, in the engine's words; `_NOTHING` where there was none."""
    best_rate: float = 0.0
    """The greatest share of the goal's conditions that held so far."""
    ended: bool = False


@final
class AlfworldTask(AbstractTask):
    """One seat at ALFWorld; chance draws the game and, where the rules ask, random commands."""

    def __init__(
        self, rules: AlfworldRules, seed: int, *, world: AbstractWorld | None = None
    ) -> None:
        """Find the games and load the engine, or play in `world`.

        Raises ConfigError when there are no games, when the extra is missing, for a negative seed,
        and for compact pictures of THOR.
        """
        self.rules = rules
        if rules.world == "thor" and rules.picture == "compact":
            raise ConfigError(
                "`picture: compact` can't be had with `world: thor`.",
                hint="compact pictures are drawn from the facts of `world: text`.",
            )
        self._games = find_games(
            rules.data_path, rules.split, rules.task_types, text=rules.world == "text"
        )
        self._keeper = EpisodeKeeper(self.task_id, seed, _write_episode, _read_episode)
        self._world = world or (ThorWorld() if rules.world == "thor" else TextWorld())
        self._scene: Scene | None = None
        self._plans: dict[str, tuple[str, ...] | None] = {}
        self._shown: Observation | None = None

    @property
    def task_id(self) -> str:
        """Name and version of the rules."""
        return "alfworld-v0"

    @property
    def observation(self) -> Observation:
        """What is shown now."""
        if self._shown is None:
            self._shown = self._show()
        return self._shown

    @property
    def episode_seed(self) -> int:
        """Seed from which the current game was drawn."""
        return self._keeper.current.seed

    @property
    def game(self) -> Path:
        """The directory of the current game."""
        return self._games[self._keeper.current.game]

    @property
    def solvable(self) -> bool:
        """True when the planner's way to win fits into `max_steps`; in THOR, without one, True."""
        name = self._keeper.current.game
        if self.rules.world == "thor":
            return True
        plan = self._plans[name]
        return plan is not None and len(plan) <= self.rules.max_steps

    @property
    def episode_kind(self) -> str:
        """The sort of the chore."""
        return read_chore(self.game).task_type

    @property
    def admissible_actions(self) -> tuple[str, ...]:
        """The commands that the engine lists, in the rules' vocabulary."""
        self._keeper.current  # noqa: B018 - raises before the first reset
        return tuple(write_command(c, self.rules.vocabulary) for c in self._now.commands)

    def write_action(self, action: str) -> str:
        """Return a reply that chooses `action` and thinks nothing."""
        return write_reply({"thoughts": "", "action": action}, compact=True)

    def reset(self, seed: int | None = None) -> Observation:
        """Draw a game and start it. Raises TaskError when the engine can't play it."""
        seed = self._keeper.draw_seed(seed)
        chance = make_generator(seed)
        names = sorted(self._games)
        name = names[int(chance.integers(len(names)))]
        self._start(name)
        self._keeper.begin(_Episode(seed=seed, game=name, best_rate=self._now.goal_rate), chance)
        return self.observation

    def step(self, reply: str) -> StepResult:
        """Read a reply, carry it out, and return what follows. Raises TaskError after the end."""
        episode = self._keeper.running
        parsed = self._parse(reply)
        command, is_random = self._chosen(parsed)
        legal = command is not None and command in self._now.commands
        if legal and command is not None:
            self._scene = self._world.do(command)
        scene = self._now
        if not legal:
            self._scene = scene = replace(scene, text="Nothing happens.")
        actions = (*episode.actions, command or _NOTHING)
        reward = self._reward(scene, episode.best_rate, legal=legal and not is_random)
        truncated = not scene.won and len(actions) >= self.rules.max_steps
        self._keeper.move_to(
            replace(
                episode,
                actions=actions,
                best_rate=max(episode.best_rate, scene.goal_rate),
                ended=scene.won or truncated,
            )
        )
        self._shown = None
        return StepResult(
            observation=self.observation,
            parsed=parsed,
            legal=legal and not is_random,
            rewards={"task": reward},
            terminated=scene.won,
            truncated=truncated,
            success=scene.won,
            random_action=is_random,
        )

    def demonstrate(
        self, generator: np.random.Generator, *, mistake: bool = False
    ) -> list[Demonstration]:
        """Play to the end with the planner's commands and return the trace.

        The planner knows what is behind closed doors, so its way is shorter than an agent's. With
        `mistake` the last command of the plan is forgotten: everything is taken for done, and the
        expert looks around until the steps are used up. `generator` decides how it does.
        """
        _ = self._keeper.running
        plan = list(self._world.plan() or ())
        idle = _IDLE
        if mistake:
            plan = plan[:-1]
            idle = (_IDLE, "inventory")[int(generator.integers(2))]
        trace: list[Demonstration] = []
        while not self._keeper.current.ended:
            action = write_command(plan[0] if plan else idle, self.rules.vocabulary)
            thoughts = write_thoughts(self.rules, self._goal, self._now, plan, action)
            reply = write_reply(
                {"thoughts": thoughts, "action": action}, compact=self.rules.prompt == "compact"
            )
            trace.append(Demonstration(observation=self.observation, reply=reply))
            self.step(reply)
            plan = plan[1:]
        return trace

    def close(self) -> None:
        """End the engine's process, where it has one."""
        self._world.close()

    def judge_thought(self, reply: str) -> Mapping[str, bool]:
        """Return nothing: no rules judge thoughts about household chores."""
        del reply
        return {}

    def state(self) -> JsonState:
        """Return a snapshot: the episode and both generators."""
        return self._keeper.state()

    def restore(self, state: JsonState) -> None:
        """Continue from a snapshot: the game is started again and its commands are repeated.

        Raises TaskError when it is another task's, damaged, or of a game that is not there.
        """
        game = (state.get("episode") or {}).get("game")
        if game is not None and game not in self._games:
            raise TaskError(
                f"the snapshot's game {game!r} is not among the {len(self._games)} games.",
                hint="restore it into a task with the same `data_path`, `split` and `task_types`.",
            )
        self._keeper.restore(state)
        self._scene = self._shown = None
        if game is not None:
            self._start(game)
            for action in self._keeper.current.actions:
                if action in self._now.commands:
                    self._scene = self._world.do(action)
                else:
                    self._scene = replace(self._now, text="Nothing happens.")

    @property
    def _now(self) -> Scene:
        if self._scene is None:
            raise TaskError(f"{self.task_id} has no episode yet.", hint="call `reset()` first.")
        return self._scene

    @property
    def _goal(self) -> str:
        view = self._now.view
        return view.goal if view is not None else read_chore(self.game).in_words

    def _start(self, name: str) -> None:
        self._scene = self._world.start(self._games[name])
        self._shown = None
        if self.rules.world == "text" and name not in self._plans:
            self._plans[name] = self._world.plan()

    def _parse(self, reply: str) -> ParsedReply:
        return parse_reply(reply, ReplyForm(keys=REPLY_KEYS, read_action=self._read_action))

    def _read_action(self, text: str) -> str | None:
        """Return what a text says to do, in the rules' vocabulary."""
        command = read_command(text, self._now.commands)
        return None if command is None else write_command(command, self.rules.vocabulary)

    def _chosen(self, parsed: ParsedReply) -> tuple[str | None, bool]:
        """Return the engine's command to carry out (None: none), and whether chance chose it."""
        commands = self._now.commands
        command = None if parsed.action is None else read_command(parsed.action, commands)
        if command in commands or self.rules.unreadable_reply == "illegal":
            return command, False
        return commands[int(self._keeper.chance.integers(len(commands)))], True

    def _reward(self, scene: Scene, best_rate: float, *, legal: bool) -> float:
        rules = self.rules
        reward = rules.reward_success * scene.won + rules.reward_illegal * (not legal)
        if rules.reward == "lineage":
            return reward + rules.reward_subgoal * scene.goal_rate
        return reward + rules.reward_subgoal * (scene.goal_rate > best_rate)

    def _picture(self) -> Picture:
        scene = self._now
        if scene.frame is not None:
            return scene.frame
        if scene.view is None:
            raise TaskError("the world shows neither a frame nor a view.")
        if self.rules.picture == "compact":
            return draw_compact(scene.view)
        return draw_room(scene.view, labels=self.rules.labels)

    def _show(self) -> Observation:
        episode = self._keeper.current
        actions = [write_command(action, self.rules.vocabulary) for action in episode.actions]
        end = " ended" if episode.ended else ""
        return Observation(
            picture=self._picture(),
            prompt=write_prompt(self.rules, self._goal, self._now, actions),
            state_key=f"{self.task_id}: {episode.game}: {', '.join(episode.actions)}{end}",
        )


def make_alfworld(rules: Mapping[str, Any], seed: int) -> AlfworldTask:
    """Return a seat under the default rules, some of them overridden.

    Raises ConfigError for an unknown rule, a bad value, no games, or the missing extra.
    """
    return AlfworldTask(read_rules(AlfworldRules(), rules), seed)


def _default_rules() -> dict[str, Any]:
    return AlfworldRules().model_dump(mode="json")


ENTRY: Final = TaskEntry(
    summary="chores in ALFWorld's own games, in TextWorld or THOR (extra `alfworld`)",
    default_rules=_default_rules,
    make=make_alfworld,
)


def _write_episode(episode: _Episode) -> JsonState:
    return {
        "seed": episode.seed,
        "game": episode.game,
        "actions": list(episode.actions),
        "best_rate": episode.best_rate,
        "ended": episode.ended,
    }


def _read_episode(state: JsonState) -> _Episode:
    return _Episode(
        seed=int(state["seed"]),
        game=str(state["game"]),
        actions=tuple(str(action) for action in state["actions"]),
        best_rate=float(state["best_rate"]),
        ended=bool(state["ended"]),
    )
