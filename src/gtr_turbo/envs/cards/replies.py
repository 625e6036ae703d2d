"""Replies of card games, which also say what the agent reads in the picture.

    {"cards": ["10D", "JS", …], "formula": "10-", "thoughts": "…", "action": "7"}

Operators may also be written × ÷ −, and the formula's key may be `current formula`.
"""

from collections.abc import Collection, Sequence
from typing import Any

from gtr_turbo.core.turns import ParsedReply
from gtr_turbo.envs import replies

REPLY_KEYS = ("cards", "formula", "thoughts", "action")
"""Keys of a reply, in the order in which they are written."""

_OTHER_KEYS = {"current formula": "formula"}
"""The key that the lineage's prompt shows."""
_SYNONYMS = {"×": "*", "÷": "/", "−": "-"}


def write_reply(
    *, cards: Sequence[str], formula: str, thoughts: str, action: str, compact: bool
) -> str:
    """Return a reply of valid format; `compact` leaves out the blanks between its parts."""
    fields = {"cards": list(cards), "formula": formula, "thoughts": thoughts, "action": action}
    return replies.write_reply(fields, compact=compact)


def parse_reply(text: str, actions: Collection[str]) -> ParsedReply:
    """Return what a reply says to do, where `actions` are the game's words."""
    return replies.parse_reply(text, _form(actions))


def named_fields(text: str) -> dict[str, Any]:
    """Return the fields of a reply by the names in `REPLY_KEYS`; empty when it cannot be read."""
    return replies.named_fields(text, _form(()))


def _form(actions: Collection[str]) -> replies.ReplyForm:
    def read_action(text: str) -> str | None:
        word = _SYNONYMS.get(text, text)
        return word if word in actions else None

    return replies.ReplyForm(keys=REPLY_KEYS, read_action=read_action, other_keys=_OTHER_KEYS)
