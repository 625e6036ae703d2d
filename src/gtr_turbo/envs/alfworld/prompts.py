"""What the agent is told, and what the expert thinks."""

from collections.abc import Sequence
from typing import Final

from gtr_turbo.envs.alfworld.commands import write_command
from gtr_turbo.envs.alfworld.rules import AlfworldRules
from gtr_turbo.envs.alfworld.world import Scene

REPLY_KEYS = ("thoughts", "action")
"""Keys of a reply, in the order in which they are written."""

_TEMPLATE: Final = """\
Answer with one JSON object and nothing else:
{
  "thoughts": "what you see, what is still missing for the task, which action comes next, and why",
  "action": "your choice"
}"""


def write_prompt(rules: AlfworldRules, goal: str, scene: Scene, actions: Sequence[str]) -> str:
    """Return the prompt for a state: `actions` are the episode's earlier ones, as shown."""
    past = ", ".join(actions[-rules.history :] if rules.history else ())
    shown = [write_command(command, rules.vocabulary) for command in scene.commands]
    if rules.prompt == "compact":
        lines = [f"task: {goal}"]
        lines += [f"seen: {scene.text}"] if rules.text_observation else []
        lines += [f"done: {past}"] if past else []
        lines += [f"choose: {', '.join(shown)}"] if rules.list_admissible else []
        return "\n".join(lines)
    lines = [
        "You are an expert at chores in a house; the picture shows what you see now.",
        f"Your task: {goal}.",
    ]
    if rules.text_observation:
        lines.append(f"What happened last, in words: {scene.text}")
    if rules.history:
        lines.append(f"What you did so far: {past or 'nothing yet'}.")
    if rules.list_admissible:
        lines.append("Choose one of: " + ", ".join(f'"{command}"' for command in shown) + ".")
    return "\n".join((*lines, _TEMPLATE))


def write_thoughts(
    rules: AlfworldRules, goal: str, scene: Scene, plan: Sequence[str], action: str
) -> str:
    """Return why `action` follows: it is the first of `plan`, or what is done when none is left.

    Going and opening are done for the sake of what comes after them, so that is named.
    """
    seen = describe(scene)
    if not plan:
        return f"{seen}. Nothing is left to do" if rules.prompt == "full" else "nothing left to do"
    aim = next((c for c in plan if not c.startswith(("go to ", "open "))), plan[-1])
    aim = write_command(aim, rules.vocabulary)
    if rules.prompt == "compact":
        return f"need to {aim}" if aim != action else f"can {aim} now"
    reason = f"To {aim}, I first {action}" if aim != action else f"Now I can {aim}"
    return f"{seen}. The task is to {goal}. {reason}."


def describe(scene: Scene) -> str:
    """Return where the agent is and what it holds, in a sentence without its full stop."""
    view = scene.view
    if view is None:
        return scene.text.strip().rstrip(".")
    if not view.here:
        return "I stand in the middle of the room"
    places = [
        f"the closed {place.name}"
        if place.contents is None
        else f"the {place.name} with {', '.join(x.name for x in place.contents) or 'nothing'}"
        for place in view.here
    ]
    held = "" if view.hand is None else f", and I hold {view.hand.name}"
    return f"I see {' and '.join(places)}{held}"
