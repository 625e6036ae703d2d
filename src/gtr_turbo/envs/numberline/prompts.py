"""The text beside the picture, and the expert's words."""

from typing import Any

from gtr_turbo.core.turns import ParsedReply
from gtr_turbo.envs import replies
from gtr_turbo.envs.numberline.rules import (
    ACTIONS,
    LARGEST_POSITION,
    MINUS,
    PLUS,
    NumberLineRules,
)

REPLY_KEYS = ("current number", "target number", "thoughts", "action")
"""Keys of a reply, in the order in which they are written."""

_OTHER_KEYS = {
    "current_number": "current number",
    "target_number": "target number",
    "current": "current number",
    "target": "target number",
}
_SYNONYMS = {"−": MINUS}


def write_prompt(rules: NumberLineRules) -> str:
    """Return the prompt, which never tells the numbers: they are in the picture."""
    if rules.prompt == "compact":
        return f"0 to {rules.max_position}: move to the target"
    return "\n".join(
        (
            f"You play on a number line from 0 to {rules.max_position}. "
            "The picture shows the target number and the current number.",
            f'Goal: make the current number equal to the target. "{PLUS}" adds one to it, '
            f'"{MINUS}" takes one away; it never leaves the line.',
            "Answer with one JSON object and nothing else:",
            "{",
            '  "current number": "the current number",',
            '  "target number": "the target number",',
            '  "thoughts": "which of the two is greater, and so which action leads closer",',
            f'  "action": "{MINUS}" or "{PLUS}"',
            "}",
        )
    )


def write_reply(current: str, target: str, thoughts: str, action: str, *, compact: bool) -> str:
    """Return a reply of valid format; `compact` leaves out the blanks between its parts."""
    values = (current, target, thoughts, action)
    return replies.write_reply(dict(zip(REPLY_KEYS, values, strict=True)), compact=compact)


def parse_reply(text: str) -> ParsedReply:
    """Return what a reply says to do."""
    return replies.parse_reply(text, _FORM)


def judge_thought(text: str, current: int, target: int) -> dict[str, bool]:
    """Return what holds of a reply's thoughts where these two numbers are shown.

    `numbers_right`: both numbers are those in the picture. `action_follows`: the action leads from
    the number that the reply calls current to the one that it calls the target.
    """
    fields = replies.named_fields(text, _FORM)
    own, goal = (_read_number(fields.get(key)) for key in REPLY_KEYS[:2])
    return {
        "numbers_right": (own, goal) == (current, target),
        "action_follows": own is not None
        and goal is not None
        and own != goal
        and parse_reply(text).action == (PLUS if own < goal else MINUS),
    }


def reasoned_reply(current: int, target: int, rules: NumberLineRules) -> str:
    """Return the expert's reply of one who reads these two numbers, which differ."""
    is_below = current < target
    action = PLUS if is_below else MINUS
    compact = rules.prompt == "compact"
    if compact:
        thoughts = f"{current}{'<' if is_below else '>'}{target}"
    else:
        relation = "less" if is_below else "greater"
        thoughts = (
            f"The current number is {current} and the target is {target}. {current} is {relation} "
            f"than {target}, so I {'add one' if is_below else 'take one away'}."
        )
    return write_reply(str(current), str(target), thoughts, action, compact=compact)


def _read_number(value: Any) -> int | None:
    """Return a number that a reply names; None for what is no number of a line."""
    text = str(value).strip() if isinstance(value, str | int) else ""
    return int(text) if text.isdecimal() and len(text) <= len(str(LARGEST_POSITION)) else None


def _read_action(text: str) -> str | None:
    word = _SYNONYMS.get(text, text)
    return word if word in ACTIONS else None


_FORM = replies.ReplyForm(keys=REPLY_KEYS, read_action=_read_action, other_keys=_OTHER_KEYS)
