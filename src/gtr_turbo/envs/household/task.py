"""The household as a task: deals games, shows, reads replies, keeps the rules."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Final, final

import numpy as np

from gtr_turbo.core.turns import JsonState, Observation, ParsedReply, StepResult
from gtr_turbo.envs.base import AbstractTask, Demonstration, TaskEntry
from gtr_turbo.envs.episodes import EpisodeKeeper, make_generator
from gtr_turbo.envs.household import expert
from gtr_turbo.envs.household.commands import (
    IDLE_VERBS,
    Action,
    Verb,
    read_command,
    write_command,
)
from gtr_turbo.envs.household.compact import draw_compact
from gtr_turbo.envs.household.engine import Household, State
from gtr_turbo.envs.household.games import Dealer
from gtr_turbo.envs.household.planner import Step
from gtr_turbo.envs.household.prompts import NO_ACTION, describe_goal, write_prompt
from gtr_turbo.envs.household.render import draw_room
from gtr_turbo.envs.household.rules import HouseholdRules
from gtr_turbo.envs.household.sight import see, tell
from gtr_turbo.envs.household.thoughts import write_thoughts
from gtr_turbo.envs.household.view import View
from gtr_turbo.envs.replies import ReplyForm, parse_reply, write_reply
from gtr_turbo.envs.rules import read_rules

TASK_ID: Final = "household-v0"
REPLY_KEYS: Final = ("thoughts", "action")
"""Keys of a reply, in the order in which they are written."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Episode:
    """Where an episode stands."""

    seed: int
    house: Household
    """The game, which follows from the seed."""
    state: State
    history: tuple[str, ...] = ()
    """What each turn did, in the vocabulary's words, or `NO_ACTION`."""
    best: int
    """The most conditions of the goal that ever held at once."""
    ended: bool = False


@final
class HouseholdTask(AbstractTask):
    """One agent in a household; chance deals games and, where the rules ask, random actions."""

    def __init__(self, rules: HouseholdRules, seed: int) -> None:
        """Raise ConfigError when the rules leave no game, or the seed is negative."""
        self.rules = rules
        self._dealer = Dealer(rules)
        self._keeper = EpisodeKeeper(TASK_ID, seed, _write_episode, self._read_episode)
        self._shown: Observation | None = None
        self._offered: dict[str, Action] | None = None

    @property
    def task_id(self) -> str:
        """Name and version of the rules."""
        return TASK_ID

    @property
    def observation(self) -> Observation:
        """What is shown now."""
        if self._shown is None:
            self._shown = self._show()
        return self._shown

    @property
    def episode_seed(self) -> int:
        """Seed from which the current game was dealt."""
        return self._keeper.current.seed

    @property
    def house(self) -> Household:
        """The current game and its rules."""
        return self._keeper.current.house

    @property
    def household_state(self) -> State:
        """How things stand in the house."""
        return self._keeper.current.state

    @property
    def solvable(self) -> bool:
        """True when the shortest plan fits into the step limit."""
        house = self.house
        return bool(expert.right_steps(house, [house.start], "planner", self._step_limit))

    @property
    def episode_kind(self) -> str:
        """The sort of goal, one of six."""
        return self.house.game.goal.task_type

    @property
    def admissible_actions(self) -> tuple[str, ...]:
        """The admissible commands in the vocabulary of the rules."""
        return tuple(self._commands())

    def write_action(self, action: str) -> str:
        """Return a reply that chooses `action`, with no thoughts."""
        return write_reply({"thoughts": "", "action": action}, compact=True)

    def reset(self, seed: int | None = None) -> Observation:
        """Deal a game and return its first observation. Raises ConfigError for a negative seed."""
        seed = self._keeper.draw_seed(seed)
        chance = make_generator(seed)
        house = Household(self._dealer.deal(chance))
        best, _ = house.goal_progress(house.start)
        self._keeper.begin(_Episode(seed=seed, house=house, state=house.start, best=best), chance)
        self._shown = self._offered = None
        return self.observation

    def step(self, reply: str) -> StepResult:
        """Read a reply, apply it, and return what follows. Raises TaskError after the end."""
        episode = self._keeper.running
        commands = self._commands()
        parsed = self._parse(reply, commands)
        command, is_random = self._chosen(parsed, commands)
        action = None if command is None else commands.get(command)
        is_legal = action is not None and not is_random
        state = episode.state if action is None else episode.house.apply(episode.state, action)
        met, total = episode.house.goal_progress(state)
        history = (*episode.history, command or NO_ACTION)
        is_won = met == total
        is_stuck = not is_won and self._is_stuck(history)
        reward = self._reward(met=met, total=total, best=episode.best, is_legal=is_legal)
        truncated = not (is_won or is_stuck) and len(history) >= self.rules.max_steps
        self._keeper.move_to(
            replace(
                episode,
                state=state,
                history=history,
                best=max(met, episode.best),
                ended=is_won or is_stuck or truncated,
            )
        )
        self._shown = self._offered = None
        return StepResult(
            observation=self.observation,
            parsed=parsed,
            legal=is_legal,
            rewards={"task": self.rules.reward_stuck if is_stuck else reward},
            terminated=is_won or is_stuck,
            truncated=truncated,
            success=is_won,
            random_action=is_random,
        )

    def demonstrate(
        self, generator: np.random.Generator, *, mistake: bool = False
    ) -> list[Demonstration]:
        """Play to the end with the expert and return the trace.

        The right way is a function of what happened so far; only mistakes draw from `generator`.
        """
        episode, rules = self._keeper.running, self.rules
        house, states = episode.house, self._states()
        room = self._step_limit - len(episode.history)
        if mistake:
            steps = expert.wrong_steps(house, states, rules.expert, room, generator)
        else:
            steps = expert.right_steps(house, states, rules.expert, room)
        trace: list[Demonstration] = []
        while not self._keeper.current.ended:
            step = steps[len(trace)] if len(trace) < len(steps) else expert.REST
            reply = self._expert_reply(step)
            trace.append(Demonstration(observation=self.observation, reply=reply))
            self.step(reply)
        return trace

    def judge_thought(self, reply: str) -> Mapping[str, bool]:
        """Return nothing: no rules judge thoughts about household chores."""
        del reply
        return {}

    def state(self) -> JsonState:
        """Return a snapshot: the episode and both generators."""
        return self._keeper.state()

    def restore(self, state: JsonState) -> None:
        """Continue from a snapshot. Raises TaskError when it is another task's, or damaged."""
        self._keeper.restore(state)
        self._shown = self._offered = None

    @property
    def _step_limit(self) -> int:
        """Steps in which an episode must be won."""
        if not self.rules.early_truncation:
            return self.rules.max_steps
        return min(self.rules.max_steps, self.rules.max_actions + 1)

    def _commands(self) -> dict[str, Action]:
        """Return the admissible commands and what each of them means."""
        if self._offered is None:
            episode, rules = self._keeper.current, self.rules
            self._offered = {
                write_command(action, rules.vocabulary): action
                for action in episode.house.admissible(episode.state)
                if (rules.idle_commands or action.verb not in IDLE_VERBS)
                and not (rules.vocabulary == "0.3" and action.verb is Verb.HELP)
            }
        return self._offered

    def _parse(self, reply: str, commands: Mapping[str, Action]) -> ParsedReply:
        read_action = partial(
            read_command,
            admissible=commands,
            vocabulary=self.rules.vocabulary,
            matching=self.rules.matching,
        )
        return parse_reply(reply, ReplyForm(keys=REPLY_KEYS, read_action=read_action))

    def _chosen(
        self, parsed: ParsedReply, commands: Mapping[str, Action]
    ) -> tuple[str | None, bool]:
        """Return the command to carry out (None: none), and whether chance chose it."""
        if parsed.action in commands or self.rules.unreadable_reply == "illegal":
            return parsed.action, False
        names = tuple(commands)
        return names[self._keeper.chance.integers(len(names))], True

    def _is_stuck(self, history: tuple[str, ...]) -> bool:
        """Return whether GTR's early truncation ends the episode after these actions."""
        rules = self.rules
        if not rules.early_truncation:
            return False
        latest = history[-rules.max_repeats :]
        is_repeated = len(latest) == rules.max_repeats and len(set(latest)) == 1
        return is_repeated or len(history) > rules.max_actions

    def _reward(self, *, met: int, total: int, best: int, is_legal: bool) -> float:
        rules = self.rules
        if rules.reward == "lineage":
            bonus = rules.reward_subgoal * met / total
        else:
            bonus = rules.reward_subgoal if met > best else 0.0
        success = rules.reward_success if met == total else 0.0
        return success + bonus + (0.0 if is_legal else rules.reward_illegal)

    def _states(self) -> list[State]:
        """Return the states that the episode has been in, by playing its history again."""
        episode, rules = self._keeper.current, self.rules
        states = [episode.house.start]
        for command in episode.history:
            admissible = episode.house.admissible(states[-1])
            named = {write_command(action, rules.vocabulary): action for action in admissible}
            if command in named:
                states.append(episode.house.apply(states[-1], named[command]))
        return states

    def _view(self) -> View:
        episode = self._keeper.current
        goal = describe_goal(episode.house.game.goal, compact=self.rules.prompt == "compact")
        return see(episode.house, episode.state, goal)

    def _show(self) -> Observation:
        episode, rules, view = self._keeper.current, self.rules, self._view()
        is_compact = rules.picture == "compact"
        return Observation(
            picture=draw_compact(view) if is_compact else draw_room(view, labels=rules.labels),
            prompt=write_prompt(
                rules,
                episode.house.game.goal,
                tell(view) if rules.text_observation else "",
                episode.history,
                self.admissible_actions if rules.list_admissible else (),
            ),
            state_key=f"{TASK_ID}: {episode.seed}: {'; '.join(episode.history)}",
            advice=self._advice(),
        )

    def _advice(self) -> str:
        """Return what a teacher is told of the present state; nothing when the rules say so."""
        episode, rules = self._keeper.current, self.rules
        if not rules.advice or episode.ended:
            return ""
        room = self._step_limit - len(episode.history)
        steps = expert.right_steps(episode.house, self._states(), rules.expert, room)
        if not steps:
            return f"It is hopeless: the goal cannot be reached in the {room} steps that are left."
        command = write_command(steps[0].action, rules.vocabulary)
        return (
            f"The next of {len(steps)} steps to the goal: {command}.\n"
            f"{self._expert_reply(steps[0])}"
        )

    def _expert_reply(self, step: Step) -> str:
        """Return what the expert writes before a step from the present state."""
        compact = self.rules.prompt == "compact"
        fields = {
            "thoughts": write_thoughts(self._view(), step, compact=compact),
            "action": write_command(step.action, self.rules.vocabulary),
        }
        return write_reply(fields, compact=compact)

    def _read_episode(self, stored: JsonState) -> _Episode:
        """Return a stored episode; its game is dealt again from its seed."""
        seed = int(stored["seed"])
        house = Household(self._dealer.deal(make_generator(seed)))
        state = dict(stored["state"])
        places = tuple(int(place) for place in state.pop("places"))
        masks = {name: int(value) for name, value in state.items()}
        return _Episode(
            seed=seed,
            house=house,
            state=State(places=places, **masks),
            history=tuple(str(command) for command in stored["history"]),
            best=int(stored["best"]),
            ended=bool(stored["ended"]),
        )


def _write_episode(episode: _Episode) -> JsonState:
    return {
        "seed": episode.seed,
        "state": asdict(episode.state) | {"places": list(episode.state.places)},
        "history": list(episode.history),
        "best": episode.best,
        "ended": episode.ended,
    }


def make_household_task(rules: Mapping[str, Any], seed: int) -> HouseholdTask:
    """Return a household under the defaults, some of them overridden by `rules`.

    Raises ConfigError for an unknown rule (naming the nearest), a bad value, rules that leave no
    game, and a negative seed.
    """
    return HouseholdTask(read_rules(HouseholdRules(), rules), seed)


def _default_rules() -> dict[str, Any]:
    return HouseholdRules().model_dump(mode="json")


ENTRY: Final = TaskEntry(
    summary="chores in a house, six sorts, with ALFWorld's semantics and schematic pictures",
    default_rules=_default_rules,
    make=make_household_task,
)
