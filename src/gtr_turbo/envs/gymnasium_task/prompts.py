"""The text beside the picture, and what is read in an observation besides its picture."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from gtr_turbo.envs.gymnasium_task.rules import GymnasiumRules

MAX_CHARACTERS: Final = 4_000
"""Of any text that an environment tells, so much goes into a prompt."""

_TEMPLATES: Final = {
    "compact": "{instruction}\n{text}\n{history}",
    "full": (
        "{instruction}\n"
        "The picture shows how things stand.\n"
        "{text}\n"
        "{history}\n"
        "Choose one action of: {actions}.\n"
        "Answer with one JSON object and nothing else:\n"
        '{"thoughts": "what you see, and which action follows from it", "action": "your choice"}'
    ),
}
_PLACES: Final = re.compile(r"\{(instruction|text|history|actions)\}")


def write_prompt(
    rules: GymnasiumRules,
    observation: Any,
    steps: Sequence[tuple[str | None, bool]],
    actions: Sequence[str],
) -> str:
    """Return the prompt; `steps` are (word, whether it was carried out), oldest first."""
    texts = {
        "instruction": " ".join(filter(None, (told_mission(observation), rules.instruction))),
        "text": _told_text(observation),
        "history": _history(steps[-rules.history :] if rules.history else ()),
        "actions": ", ".join(f'"{action}"' for action in actions) or "any text",
    }
    template = _TEMPLATES.get(rules.prompt, rules.prompt)
    filled = _PLACES.sub(lambda place: texts[place.group(1)], template)
    lines = [line.rstrip() for line in filled.splitlines()]
    return "\n".join(line for line in lines if line) or "What is to be done now?"


def told_mission(observation: Any) -> str:
    """Return the mission that an observation tells, or an empty text."""
    mission = observation.get("mission", "") if isinstance(observation, Mapping) else ""
    return f"{str(mission)[:MAX_CHARACTERS].capitalize()}." if mission else ""


def _told_text(observation: Any) -> str:
    text = observation.get("text", "") if isinstance(observation, Mapping) else observation
    return text[:MAX_CHARACTERS] if isinstance(text, str) else ""


def _history(steps: Sequence[tuple[str | None, bool]]) -> str:
    words = [
        "an unreadable reply" if word is None else f'"{word}"' if carried else f'"{word}" (illegal)'
        for word, carried in steps
    ]
    return f"Last actions: {', '.join(words)}." if words else ""
