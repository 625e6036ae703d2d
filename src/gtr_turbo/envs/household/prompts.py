"""Goals in words, and the text beside the picture."""

from collections.abc import Sequence

from gtr_turbo.envs.household import tables
from gtr_turbo.envs.household.games import Goal
from gtr_turbo.envs.household.rules import HouseholdRules

NO_ACTION = "(none)"
"""What the history says of a turn whose reply held no action."""

_IN = tables.OPENABLE | {"sinkbasin", "bathtubbasin", "garbagecan", "toaster", "microwave"}
"""Receptacles that things are in, not on."""
_CONDITIONS = {
    tables.CLEAN_AND_PLACE: "clean",
    tables.HEAT_AND_PLACE: "hot",
    tables.COOL_AND_PLACE: "cool",
}


def preposition(receptacle_kind: str) -> str:
    """Return ``in`` or ``on``."""
    return "in" if receptacle_kind in _IN else "on"


def describe_goal(goal: Goal, *, compact: bool) -> str:
    """Return the goal in words; `compact` leaves out all words that can be spared."""
    thing = goal.object_kind
    condition = _CONDITIONS.get(goal.task_type)
    if condition is not None:
        thing = f"{condition} {thing}"
    where = goal.receptacle_kind or ""
    if goal.task_type == tables.LOOK_IN_LIGHT:
        verb = "look at" if compact else "look at the"
        return f"{verb} {thing} {'by' if compact else 'in the light of the'} {goal.lamp_kind}"
    if compact:
        count = "2 " if goal.task_type == tables.PICK_TWO else ""
        return f"put {count}{thing} {preposition(where)} {where}"
    if goal.task_type == tables.PICK_TWO:
        return f"find two objects of the kind {thing} and put both {preposition(where)} one {where}"
    article = "an" if thing[0] in "aeiou" else "a"
    return f"put {article} {thing} {preposition(where)} a {where}"


def write_prompt(
    rules: HouseholdRules,
    goal: Goal,
    seen: str,
    history: Sequence[str],
    admissible: Sequence[str],
) -> str:
    """Return the prompt for a state.

    `seen` is the text observation and is left out when it is empty, as is the list of admissible
    actions unless the rules ask for it. The history is cut to the length that the rules allow.
    """
    past = history[len(history) - min(rules.history, len(history)) :]
    write = _compact_prompt if rules.prompt == "compact" else _full_prompt
    return write(describe_goal(goal, compact=rules.prompt == "compact"), seen, past, admissible)


def _compact_prompt(goal: str, seen: str, history: Sequence[str], admissible: Sequence[str]) -> str:
    lines = [goal, *([seen] if seen else []), f"done: {', '.join(history)}"]
    return "\n".join([*lines, f"can: {', '.join(admissible)}"] if admissible else lines)


def _full_prompt(goal: str, seen: str, history: Sequence[str], admissible: Sequence[str]) -> str:
    """Return the long prompt: the contents of the lineage's, in its order, in words of our own."""
    numbered = "; ".join(f"{number}. {action}" for number, action in enumerate(history, start=1))
    choices = ", ".join(f'"{action}"' for action in admissible)
    lines = [
        "You are an expert at household chores; the picture shows what you can see now.",
        *([seen] if seen else []),
        f"Your task: {goal}.",
        f"Your latest actions: {numbered or 'none'}.",
    ]
    if admissible:
        lines.append(f"Actions that are admissible now: [{choices}].")
    lines += [
        "Answer with one JSON object and nothing else:",
        "{",
        '  "thoughts": "what you see and hold, what your task still needs, '
        'and which action comes next",',
        '  "action": "one admissible action"',
        "}",
    ]
    return "\n".join(lines)
