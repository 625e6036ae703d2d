"""The number line as a task: draws start and goal, shows, reads replies, keeps the rules."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Final, final

import numpy as np

from gtr_turbo.core.turns import JsonState, Observation, StepResult
from gtr_turbo.envs.base import AbstractTask, Demonstration, TaskEntry
from gtr_turbo.envs.episodes import EpisodeKeeper, make_generator
from gtr_turbo.envs.numberline import render
from gtr_turbo.envs.numberline.prompts import (
    judge_thought,
    parse_reply,
    reasoned_reply,
    write_prompt,
    write_reply,
)
from gtr_turbo.envs.numberline.rules import (
    ACTIONS,
    MINUS,
    PLUS,
    NumberLineRules,
    draw_line,
    move,
    move_reward,
)
from gtr_turbo.envs.rules import read_rules

_TASK_ID = "numberline-v0"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Episode:
    """Where an episode stands."""

    seed: int
    start: int
    goal: int
    position: int
    num_steps: int = 0
    ended: bool = False


@final
class NumberLineTask(AbstractTask):
    """One walk after the other; chance draws start, goal and, where asked, random actions."""

    def __init__(self, rules: NumberLineRules, seed: int) -> None:
        """Raise ConfigError when the seed is negative."""
        self.rules = rules
        self.actions = ACTIONS
        """Every action, in the order that the Gymnasium environment numbers them."""
        self._keeper = EpisodeKeeper(_TASK_ID, seed, _write_episode, _read_episode)
        self._shown: Observation | None = None

    @property
    def task_id(self) -> str:
        """Name and version of the rules."""
        return _TASK_ID

    @property
    def observation(self) -> Observation:
        """What is shown now."""
        if self._shown is None:
            self._shown = self._show()
        return self._shown

    @property
    def episode_seed(self) -> int:
        """Seed from which start and goal were drawn."""
        return self._keeper.current.seed

    @property
    def position(self) -> int:
        """The current number."""
        return self._keeper.current.position

    @property
    def goal(self) -> int:
        """The target number."""
        return self._keeper.current.goal

    @property
    def solvable(self) -> bool:
        """True when the goal was within the step limit."""
        episode = self._keeper.current
        return abs(episode.start - episode.goal) <= self.rules.step_limit

    @property
    def episode_kind(self) -> str:
        """The task: its episodes are all of one sort. Raises TaskError before the first reset."""
        _ = self._keeper.current
        return self.task_id

    @property
    def admissible_actions(self) -> tuple[str, ...]:
        """Both actions, at the ends of the line too; none after the end of the episode."""
        return () if self._keeper.current.ended else self.actions

    def write_action(self, action: str) -> str:
        """Return a reply that chooses `action`, with nothing in its other fields."""
        return write_reply("", "", "", action, compact=True)

    def reset(self, seed: int | None = None) -> Observation:
        """Draw a start and a goal. Raises ConfigError for a negative seed."""
        seed = self._keeper.draw_seed(seed)
        chance = make_generator(seed)
        start, goal = draw_line(self.rules, chance)
        self._keeper.begin(_Episode(seed=seed, start=start, goal=goal, position=start), chance)
        self._shown = None
        return self.observation

    def step(self, reply: str) -> StepResult:
        """Read a reply, apply it, and return what follows. Raises TaskError after the end."""
        episode, rules = self._keeper.running, self.rules
        parsed = parse_reply(reply)
        action, is_random = self._keeper.choose(
            parsed.action, self.actions, self.rules.unreadable_reply
        )
        position, reward = episode.position, rules.reward_illegal
        if action is not None:
            position = move(episode.position, action, rules)
            reward = move_reward(episode.position, position, episode.goal, rules)
        success = position == episode.goal
        terminated = success or (rules.end_at_first_penalty and reward < 0)
        num_steps = episode.num_steps + 1
        truncated = not terminated and num_steps >= rules.step_limit
        ended = terminated or truncated
        self._keeper.move_to(replace(episode, position=position, num_steps=num_steps, ended=ended))
        self._shown = None
        return StepResult(
            observation=self.observation,
            parsed=parsed,
            legal=action is not None and not is_random,
            rewards={"task": reward},
            terminated=terminated,
            truncated=truncated,
            success=success,
            random_action=is_random,
        )

    def demonstrate(
        self, generator: np.random.Generator, *, mistake: bool = False
    ) -> list[Demonstration]:
        """Play to the end with the expert and return the trace.

        A mistake reads the two numbers the wrong way round and so walks away from the goal, to the
        end of the line and on until the episode ends. Nothing is drawn from `generator`: the expert
        and its mistake are functions of the picture.
        """
        del generator
        episode = self._keeper.running
        trace: list[Demonstration] = []
        while not episode.ended:
            current, target = episode.position, episode.goal
            if mistake:
                current, target = target, current
            reply = reasoned_reply(current, target, self.rules)
            trace.append(Demonstration(observation=self.observation, reply=reply))
            self.step(reply)
            episode = self._keeper.current
        return trace

    def judge_thought(self, reply: str) -> Mapping[str, bool]:
        """Return whether both numbers are read right, and whether the action follows from them."""
        return judge_thought(reply, self.position, self.goal)

    def state(self) -> JsonState:
        """Return a snapshot: the episode and both generators."""
        return self._keeper.state()

    def restore(self, state: JsonState) -> None:
        """Continue from a snapshot. Raises TaskError when it is another task's, or damaged."""
        self._keeper.restore(state)
        self._shown = None

    def _show(self) -> Observation:
        episode = self._keeper.current
        compact = self.rules.picture == "compact"
        draw = render.draw_compact if compact else render.draw_lineage
        end = " ended" if episode.ended else ""
        return Observation(
            picture=draw(episode.position, episode.goal),
            prompt=write_prompt(self.rules),
            state_key=f"{_TASK_ID}: {episode.position} to {episode.goal}: {episode.num_steps}{end}",
            advice=self._advice(),
        )

    def _advice(self) -> str:
        """Return what a teacher is told of the present state; nothing when the rules say so."""
        episode, rules = self._keeper.current, self.rules
        if not rules.advice or episode.ended:
            return ""
        distance, room = episode.goal - episode.position, rules.step_limit - episode.num_steps
        told = f"The current number is {episode.position}, the target {episode.goal}"
        if abs(distance) > room:
            return f"{told}. It is hopeless: {room} steps are left."
        reply = reasoned_reply(episode.position, episode.goal, rules)
        return f"{told}: {PLUS if distance > 0 else MINUS} leads closer.\n{reply}"


def make_number_line(rules: Mapping[str, Any], seed: int) -> NumberLineTask:
    """Return a task under the default rules, some of them overridden by `rules`.

    Raises ConfigError for an unknown rule (naming the nearest), a bad value, rules that don't go
    together, and a negative seed.
    """
    return NumberLineTask(read_rules(NumberLineRules(), rules), seed)


ENTRY: Final = TaskEntry(
    summary="two numbers in a picture, steps of one from the one to the other",
    default_rules=partial(NumberLineRules().model_dump, mode="json"),
    make=make_number_line,
)


def _write_episode(episode: _Episode) -> JsonState:
    return asdict(episode)


def _read_episode(state: JsonState) -> _Episode:
    return _Episode(
        seed=int(state["seed"]),
        start=int(state["start"]),
        goal=int(state["goal"]),
        position=int(state["position"]),
        num_steps=int(state["num_steps"]),
        ended=bool(state["ended"]),
    )
