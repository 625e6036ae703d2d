"""A Gymnasium environment as a task.

Gymnasium has no way to save an environment, so a snapshot is the episode's seed and its actions,
and restoring plays them again. What is shown then must be what was shown; an environment that
isn't decided by its seed is found out by that.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, final

import numpy as np
from gymnasium import spaces

from gtr_turbo.core.turns import JsonState, Observation, StepResult, picture_hash
from gtr_turbo.envs.base import AbstractTask, Demonstration
from gtr_turbo.envs.episodes import EpisodeKeeper, make_generator
from gtr_turbo.envs.gymnasium_task.demonstrations import Stage, demonstrate_right, demonstrate_wrong
from gtr_turbo.envs.gymnasium_task.digests import observation_hash
from gtr_turbo.envs.gymnasium_task.experts import find_expert
from gtr_turbo.envs.gymnasium_task.making import open_env, picture_of, quiet
from gtr_turbo.envs.gymnasium_task.prompts import write_prompt
from gtr_turbo.envs.gymnasium_task.rules import GymnasiumRules, check_num_names
from gtr_turbo.envs.replies import ReplyForm, parse_reply, write_reply
from gtr_turbo.errors import TaskError

PREFIX: Final = "gym:"
"""Starts the name of every such task."""
DEFAULT_MAX_STEPS: Final = 100
"""Where neither the rules nor the environment limit an episode."""
MAX_ACTION_CHARACTERS: Final = 1_000
"""Longer written actions are not read, whatever the environment allows."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of an episode."""

    word: str | None
    """The action; None when none could be read."""
    carried_out: bool


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Episode:
    """Where an episode stands."""

    seed: int
    steps: tuple[Step, ...] = ()
    trail: str = ""
    """A hash of the steps, which tells their states apart."""
    ended: bool = False


@final
class GymnasiumTask(AbstractTask):
    """An environment of somebody else, played by writing the names of its actions."""

    def __init__(self, gym_id: str, rules: GymnasiumRules, seed: int) -> None:
        """Raise ConfigError when the environment can't be made, drawn or played by writing."""
        self.gym_id = gym_id
        self.rules = rules
        self._keeper = EpisodeKeeper(self.task_id, seed, _write_episode, _read_episode)
        self.env, self._source = open_env(gym_id, rules)
        self.action_names = self._names()
        """The word of each numbered action; for written actions those of the rules."""
        self._places = {name.casefold(): place for place, name in enumerate(self.action_names)}
        with quiet():
            self.env.reset(seed=0)  # before it, an environment doesn't tell what it is
        self.expert = find_expert(self.env, rules)
        """Who can play it, or None."""
        self._told: Any = None
        self._info: Mapping[str, Any] = {}
        self._kind = self.task_id
        self._limit = DEFAULT_MAX_STEPS
        self._won = False
        self._solvable: bool | None = None
        self._shown: Observation | None = None

    @property
    def task_id(self) -> str:
        """The prefix and the environment's id, with its version."""
        return f"{PREFIX}{self.gym_id}"

    @property
    def observation(self) -> Observation:
        """What is shown now."""
        if self._shown is None:
            self._shown = self._show()
        return self._shown

    @property
    def episode_seed(self) -> int:
        """Seed that the environment was reset with."""
        return self._keeper.current.seed

    @property
    def solvable(self) -> bool:
        """Whether the episode could be won from its start, as far as anybody knows.

        Under a table of transitions: whether a success can be reached in time. With the bot:
        whether the bot wins. Without an expert nothing is known, and True is returned: then no
        episode is left out of any count.
        """
        seed = self._keeper.current.seed
        if self._solvable is None:
            fork = GymnasiumTask(self.gym_id, self.rules, 0)
            fork.reset(seed)
            self._solvable = demonstrate_right(fork._stage())[1]
        return self._solvable

    @property
    def episode_kind(self) -> str:
        """What `info["episode_kind"]` says at the start, else the task's name."""
        return self._kind if self._keeper.current else self.task_id

    @property
    def admissible_actions(self) -> tuple[str, ...]:
        """The names that `info["action_mask"]` allows, in their order; without a mask all."""
        allowed = self._info.get("action_mask") if self._keeper.current else None
        if allowed is None or len(allowed) != len(self.action_names):
            return self.action_names
        return tuple(
            name for name, is_open in zip(self.action_names, allowed, strict=True) if is_open
        )

    def write_action(self, action: str) -> str:
        """Return a reply that chooses `action`, without a thought."""
        return self._write_reply("", action)

    def _write_reply(self, thoughts: str, action: str) -> str:
        compact = self.rules.prompt == "compact"
        return write_reply({"thoughts": thoughts, "action": action}, compact=compact)

    def reset(self, seed: int | None = None) -> Observation:
        """Reset the environment with a seed and return what it shows."""
        seed = self._keeper.draw_seed(seed)
        self._begin(seed)
        self._keeper.begin(_Episode(seed=seed), make_generator(seed))
        return self.observation

    def step(self, reply: str) -> StepResult:
        """Read a reply, apply it, and return what follows. Raises TaskError after the end."""
        episode = self._keeper.running
        form = ReplyForm(keys=("thoughts", "action"), read_action=self._read_action)
        parsed = parse_reply(reply, form)
        word, is_random = self._keeper.choose(
            parsed.action, self.admissible_actions, self.rules.unreadable_reply
        )
        legal = word is not None and self._is_legal(word)
        reward, terminated, truncated = self.rules.illegal_reward, False, False
        if word is not None and legal:
            reward, terminated, truncated = self._carry_out(word)
        num_steps = len(episode.steps) + 1
        truncated = not terminated and (truncated or num_steps >= self._limit)
        step = Step(word=word, carried_out=legal)
        self._keeper.move_to(
            replace(
                episode,
                steps=(*episode.steps, step),
                trail=observation_hash([episode.trail, word, legal])[:16],
                ended=terminated or truncated,
            )
        )
        self._shown = None
        return StepResult(
            observation=self.observation,
            parsed=parsed,
            legal=legal and not is_random,
            rewards={"task": reward},
            terminated=terminated,
            truncated=truncated,
            success=terminated and self._won,
            random_action=is_random,
        )

    def demonstrate(
        self, generator: np.random.Generator, *, mistake: bool = False
    ) -> list[Demonstration]:
        """Play to the end with the expert and return the trace.

        Raises TaskError for an environment that has no expert.
        """
        _ = self._keeper.running
        stage = self._stage()
        return demonstrate_wrong(stage, generator) if mistake else demonstrate_right(stage)[0]

    def judge_thought(self, reply: str) -> Mapping[str, bool]:
        """Return nothing: no rules judge thoughts about an environment of others."""
        del reply
        return {}

    def state(self) -> JsonState:
        """Return a snapshot: the episode's seed and steps, and a hash of what is shown."""
        state = self._keeper.state()
        return state | {"shown": None if state["episode"] is None else self._shown_hash()}

    def restore(self, state: JsonState) -> None:
        """Continue from a snapshot, by playing its actions again.

        Raises TaskError when it is another task's, or damaged, and when the environment shows
        something else after the same actions: then its seed does not decide it.
        """
        self._keeper.restore(state)
        self._shown = None
        if state["episode"] is None:
            return
        episode = self._keeper.current
        self._begin(episode.seed)
        carried = [step.word for step in episode.steps if step.carried_out]
        for place, word in enumerate(carried):
            _, terminated, truncated = self._carry_out(str(word))
            if (terminated or truncated) and place + 1 < len(carried):
                raise self._not_deterministic(len(carried))
        if self._shown_hash() != state.get("shown"):
            raise self._not_deterministic(len(carried))

    def _stage(self) -> Stage:
        if self.expert is None:
            raise TaskError(
                f"{self.task_id} has no expert, so nothing can be demonstrated.",
                hint="start without supervised steps (sft.num_steps 0); there are experts for "
                "environments with a transition table (toy-text) and for BabyAI's levels.",
            )
        return Stage(
            task=self,
            expert=self.expert,
            action_names=self.action_names,
            write=self._write_reply,
            copy=self._copy,
            is_compact=self.rules.prompt == "compact",
        )

    def _copy(self) -> AbstractTask:
        other = GymnasiumTask(self.gym_id, self.rules, 0)
        other.restore(self.state())
        return other

    def _names(self) -> tuple[str, ...]:
        names, space = self.rules.action_names, self.env.action_space
        if not isinstance(space, spaces.Discrete):
            return names
        num_actions = int(space.n)
        names = names or tuple(str(place) for place in range(num_actions))
        check_num_names(names, num_actions)
        return names

    def _begin(self, seed: int) -> None:
        """Reset the environment and look at what the episode is."""
        with quiet():
            self._told, info = self.env.reset(seed=seed)
        self._info = info
        self._won = False
        self._kind = str(info.get("episode_kind", "")).strip() or self.task_id
        spec, own = self.env.spec, getattr(self.env.unwrapped, "max_steps", None)
        limits = [self.rules.max_steps, spec and spec.max_episode_steps, own, DEFAULT_MAX_STEPS]
        self._limit = next(limit for limit in limits if isinstance(limit, int) and limit > 0)
        self._solvable = True if self.expert is None else self.expert.can_win(self._limit)
        self._shown = None

    def _read_action(self, text: str) -> str | None:
        place = self._places.get(text.casefold())
        if place is not None:
            return self.action_names[place]
        space = self.env.action_space
        if not isinstance(space, spaces.Text) or self.action_names:
            return None
        longest = min(space.max_length, MAX_ACTION_CHARACTERS)
        plain = space.character_set == spaces.Text(1).character_set  # nobody thought about it
        known = plain or set(text) <= set(space.character_set)
        return text if known and space.min_length <= len(text) <= longest else None

    def _is_legal(self, word: str) -> bool:
        return not self.action_names or word in self.admissible_actions

    def _carry_out(self, word: str) -> tuple[float, bool, bool]:
        """Step the environment; return its reward, `terminated` and `truncated`."""
        space = self.env.action_space
        if isinstance(space, spaces.Discrete):
            action = space.start + self._places[word.casefold()]
        else:
            action = word
        with quiet():
            self._told, paid, terminated, truncated, self._info = self.env.step(action)
        reward = float(paid)
        key = self.rules.success_key
        good = bool(self._info.get(key)) if key else reward > self.rules.success_threshold
        self._won = bool(terminated and good)
        return reward, bool(terminated), bool(truncated and not terminated)

    def _show(self) -> Observation:
        episode = self._keeper.current
        picture = picture_of(self.env, self._told, self._source, self.rules.picture_size)
        last = episode.steps[max(len(episode.steps) - self.rules.history, 0) :]
        steps = [(step.word, step.carried_out) for step in last]
        num_steps = len(episode.steps)
        end = " ended" if episode.ended else ""
        return Observation(
            picture=picture,
            prompt=write_prompt(self.rules, self._told, steps, self.admissible_actions),
            state_key=f"{self.task_id}: {episode.seed}: {num_steps} {episode.trail}{end}",
        )

    def _shown_hash(self) -> str:
        return observation_hash([self._told, picture_hash(self.observation.picture)])

    def _not_deterministic(self, num_actions: int) -> TaskError:
        return TaskError(
            f"{self.task_id} shows something else after the same {num_actions} actions from the"
            f" seed {self._keeper.current.seed}: the seed does not decide it.",
            hint="snapshots of this environment can't be restored; train without --resume, or "
            "make its `reset(seed=…)` seed everything.",
        )


def _write_episode(episode: _Episode) -> JsonState:
    return {
        "seed": episode.seed,
        "steps": [[step.word, step.carried_out] for step in episode.steps],
        "trail": episode.trail,
        "ended": episode.ended,
    }


def _read_episode(state: JsonState) -> _Episode:
    return _Episode(
        seed=int(state["seed"]),
        steps=tuple(
            Step(word=None if word is None else str(word), carried_out=bool(carried))
            for word, carried in state["steps"]
        ),
        trail=str(state["trail"]),
        ended=bool(state["ended"]),
    )
