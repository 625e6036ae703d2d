"""Two experts, and mistakes that are consistent with themselves.

A mistake is a right course of action for a goal that is nearly the one asked for: another object,
another receptacle, a change left out, one object instead of two. When the wrong goal is reached
the expert thinks that it is done and only looks around, since nothing ends an episode but success
and its limits.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from gtr_turbo.envs.household import tables
from gtr_turbo.envs.household.commands import LOOK
from gtr_turbo.envs.household.engine import Household, State
from gtr_turbo.envs.household.games import Goal
from gtr_turbo.envs.household.planner import Purpose, Step, make_plan
from gtr_turbo.envs.household.search import search

REST = Step(action=LOOK, purpose=Purpose.REST, about="")
"""What an expert does when nothing is left to be done."""


def right_steps(
    house: Household, states: Sequence[State], expert: str, num_steps: int
) -> tuple[Step, ...]:
    """Return what an expert does from the last of the episode's states on, `num_steps` at most.

    Where the search would not end in time but the shortest plan does, the plan is followed. Where
    no plan does, the steps lead nowhere in time.
    """
    if expert == "search":
        steps = search(house, states, num_steps)
        if house.won(_after(house, states[-1], steps)):
            return steps
    plan = make_plan(house, states[-1])
    return () if plan is None or len(plan) > num_steps else plan


def wrong_steps(
    house: Household,
    states: Sequence[State],
    expert: str,
    num_steps: int,
    generator: np.random.Generator,
) -> tuple[Step, ...]:
    """Return the steps towards a goal that is nearly the right one and that fail to reach that.

    They are none in the rare game in which nothing wrong can be done.
    """
    for goals in (list(_near_goals(house)), list(_far_goals(house))):
        for index in generator.permutation(len(goals)):
            mistaken = Household(replace(house.game, goal=goals[index]))
            steps = right_steps(mistaken, states, expert, num_steps)
            if steps and not _ever_wins(house, states[-1], steps):
                return steps
    return ()


def _near_goals(house: Household) -> Iterator[Goal]:
    """Yield goals that look like the game's own, each possible as far as kinds go."""
    game, goal = house.game, house.game.goal
    kinds = dict.fromkeys(item.kind for item in game.items if item.is_pickupable)
    present = dict.fromkeys(receptacle.kind for receptacle in game.receptacles)
    for kind in kinds:
        if kind != goal.object_kind:
            yield replace(goal, object_kind=kind)
    if goal.task_type in tables.STATIONS or goal.task_type == tables.PICK_TWO:
        yield replace(goal, task_type=tables.PICK_AND_PLACE)
    for kind in present:
        if kind != goal.receptacle_kind and goal.object_kind in game.can_contain.get(kind, ()):
            is_light = goal.task_type == tables.LOOK_IN_LIGHT
            task_type = tables.PICK_AND_PLACE if is_light else goal.task_type
            yield replace(goal, task_type=task_type, receptacle_kind=kind, lamp_kind=None)


def _far_goals(house: Household) -> Iterator[Goal]:
    """Yield goals of placing anything anywhere, for games in which no near goal is possible."""
    present = dict.fromkeys(receptacle.kind for receptacle in house.game.receptacles)
    for kind in dict.fromkeys(item.kind for item in house.game.items if item.is_pickupable):
        for place in present:
            if kind in house.game.can_contain.get(place, ()):
                yield Goal(task_type=tables.PICK_AND_PLACE, object_kind=kind, receptacle_kind=place)


def _after(house: Household, state: State, steps: Sequence[Step]) -> State:
    for step in steps:
        state = house.apply(state, step.action)
    return state


def _ever_wins(house: Household, state: State, steps: Sequence[Step]) -> bool:
    for step in steps:
        state = house.apply(state, step.action)
        if house.won(state):
            return True
    return False
