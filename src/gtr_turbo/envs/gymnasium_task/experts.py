"""Experts for environments of others: a table's best actions, and the bot of BabyAI."""

from abc import ABC, abstractmethod
from functools import cached_property
from importlib import import_module
from typing import Any, Final, final

import numpy as np
from gymnasium import spaces
from jaxtyping import Bool, Float64, Int64

from gtr_turbo.envs.gymnasium_task.making import Env, quiet
from gtr_turbo.envs.gymnasium_task.places import describe_place
from gtr_turbo.envs.gymnasium_task.rules import GymnasiumRules

_DISCOUNT: Final = 0.99
"""What a step costs in chances of success, so that the shortest way is the best one."""
_PRECISION: Final = 1e-12
_MAX_SWEEPS: Final = 20_000
_BOT_MODULE: Final = "minigrid.utils.baby_ai_bot"


class AbstractExpert(ABC):
    """Somebody who knows what to do in one environment."""

    @abstractmethod
    def begin(self) -> None:
        """Look at the state that the environment is in."""

    @abstractmethod
    def choose(self) -> int:
        """Return the best action in the present state, by its place among the actions."""

    @abstractmethod
    def choose_wrongly(self, generator: np.random.Generator) -> int | None:
        """Return an action that can't win at once and leads away; None: no opinion."""

    @abstractmethod
    def thoughts(self, action: str, *, compact: bool) -> str:
        """Return what is seen and why `action` follows, as if it were the best."""

    @abstractmethod
    def can_win(self, max_steps: int) -> bool | None:
        """Return whether the present state can be won within so many steps; None: unknown."""


def find_expert(env: Env, rules: GymnasiumRules) -> AbstractExpert | None:
    """Return the expert for an environment, or None where nobody knows it."""
    inner: Any = env.unwrapped
    table = getattr(inner, "P", None)
    if not isinstance(env.action_space, spaces.Discrete):
        return None
    if isinstance(table, dict) and getattr(inner, "s", None) is not None and not rules.success_key:
        return TableExpert(inner, rules.success_threshold)
    if getattr(inner, "instrs", None) is not None:
        return BotExpert(inner)
    return None


@final
class TableExpert(AbstractExpert):
    """The best actions under a table of transitions, as Gymnasium's toy-text games have one.

    Maximises the probability of success, a little less for each step.
    """

    def __init__(self, inner: Any, success_threshold: float) -> None:
        """Take the unwrapped environment, with its table `P` and its state `s`."""
        self._inner = inner
        self._threshold = success_threshold

    def begin(self) -> None:
        """Do nothing: the table tells it all."""

    def choose(self) -> int:
        """Return the best action; the first of them where several are equally good."""
        return int(np.argmax(self._worth[self._state]))

    def choose_wrongly(self, generator: np.random.Generator) -> int | None:
        """Return a step on the way to failure, or else one of the worst; None where each could win.

        It heads for an end without success as the expert does for one with it. Where no such end
        can be reached, it takes the action that is worth least.
        """
        never_wins = ~self._outcomes[3][self._state].any(axis=-1)
        if not never_wins.any():
            return None
        ruin = self._worth_of_failing[self._state]
        badness = ruin if ruin.max() > 0 else -self._worth[self._state]
        badness = np.where(never_wins, badness, -np.inf)
        return int(generator.choice(np.flatnonzero(badness == badness.max())))

    def thoughts(self, action: str, *, compact: bool) -> str:
        """Return where things stand, and the action."""
        place = describe_place(self._inner, compact=compact)
        if compact:
            return f"{place}: {action}"
        return f"{place} From here {action} is the way that leads on, so {action} comes next."

    def can_win(self, max_steps: int) -> bool:
        """Return whether some chain of so many steps ends in a success."""
        return bool(self._distance[self._state] <= max_steps)

    @property
    def _state(self) -> int:
        return int(self._inner.s)

    @cached_property
    def _outcomes(
        self,
    ) -> tuple[
        Float64[np.ndarray, "entry row column"],
        Int64[np.ndarray, "entry row column"],
        Bool[np.ndarray, "entry row column"],
        Bool[np.ndarray, "entry row column"],
    ]:
        """Probability, next state, end and success of each outcome of each action in each state."""
        table: dict[int, dict[int, list[tuple[float, int, float, bool]]]] = self._inner.P
        num_outcomes = max(len(o) for actions in table.values() for o in actions.values())
        shape = (len(table), len(table[0]), num_outcomes)
        chance, follower = np.zeros(shape), np.zeros(shape, np.int64)
        ends, wins = np.zeros(shape, bool), np.zeros(shape, bool)
        for state, actions in table.items():
            for action, outcomes in actions.items():
                for place, (probability, after, reward, end) in enumerate(outcomes):
                    at = (state, action, place)
                    chance[at], follower[at], ends[at] = probability, after, end
                    wins[at] = end and probability > 0 and reward > self._threshold
        return chance, follower, ends, wins

    @cached_property
    def _worth(self) -> Float64[np.ndarray, "entry row"]:
        """Discounted chance of success of each action in each state."""
        return self._worth_of_ending(self._outcomes[3])

    @cached_property
    def _worth_of_failing(self) -> Float64[np.ndarray, "entry row"]:
        """Discounted chance that the episode ends without success, were that the aim."""
        _, _, ends, wins = self._outcomes
        return self._worth_of_ending(ends & ~wins)

    def _worth_of_ending(
        self, is_good: Bool[np.ndarray, "entry row column"]
    ) -> Float64[np.ndarray, "entry row"]:
        """Return the discounted chance of a good end after each action, by value iteration."""
        chance, follower, ends, _ = self._outcomes
        worth = np.zeros(chance.shape[:2])
        for _ in range(_MAX_SWEEPS):
            after = np.where(ends, is_good, _DISCOUNT * worth.max(axis=1)[follower])
            better = (chance * after).sum(axis=-1)
            is_settled = np.abs(better - worth).max() < _PRECISION
            worth = better
            if is_settled:
                break
        return worth.round(10)

    @cached_property
    def _distance(self) -> Float64[np.ndarray, " entry"]:
        """Least number of steps to a success from each state; infinite where there is none."""
        chance, follower, ends, wins = self._outcomes
        distance = np.full(len(chance), np.inf)
        while True:
            after = np.where(wins, 0.0, np.where(ends | (chance == 0), np.inf, distance[follower]))
            nearer = 1 + after.min(axis=(1, 2))
            if np.array_equal(nearer, distance):
                return distance
            distance = nearer


@final
class BotExpert(AbstractExpert):
    """The bot that comes with minigrid, for the levels that have instructions (BabyAI)."""

    _DOES: Final = {
        "GoNextToSubgoal": "walk there",
        "ExploreSubgoal": "look around",
        "OpenSubgoal": "open it",
        "CloseSubgoal": "close it",
        "PickupSubgoal": "take it",
        "DropSubgoal": "put it down",
    }

    def __init__(self, inner: Any) -> None:
        """Take the unwrapped environment."""
        self._inner = inner
        self._bot: Any = None

    def begin(self) -> None:
        """Start the bot anew; what was explored before is looked at again."""
        with quiet():
            self._bot = import_module(_BOT_MODULE).BabyAIBot(self._inner)

    def choose(self) -> int:
        """Return the bot's action; `done`, which does nothing, where it is at its wits' end."""
        lost_box: type[Exception] = import_module(_BOT_MODULE).DisappearedBoxError
        try:
            with quiet():
                return int(self._bot.replan())
        except (AssertionError, AttributeError, LookupError, TypeError, lost_box):
            return int(self._inner.actions.done)

    def choose_wrongly(self, generator: np.random.Generator) -> int | None:
        """Return None: the bot knows no wrong plans."""
        return None

    def thoughts(self, action: str, *, compact: bool) -> str:
        """Return the mission and what the bot is about to do."""
        stack = [] if self._bot is None else self._bot.stack
        does = self._DOES.get(type(stack[-1]).__name__, "go on") if stack else "go on"
        mission = str(self._inner.mission)
        if compact:
            return f"{does}: {action}"
        return f"My mission is to {mission}. Now I {does}, so {action} comes next."

    def can_win(self, max_steps: int) -> bool | None:
        """Return None: only playing tells."""
        return None
