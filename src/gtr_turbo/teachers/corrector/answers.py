"""What a corrector answers, read as hostile input: bounded, JSON, a schema, and nothing else."""

import json
import re
from collections.abc import Mapping
from typing import Any, Final, Literal, final

from pydantic import BaseModel, ConfigDict, ValidationError

from gtr_turbo.envs.replies import MAX_CHARACTERS, unfenced, write_reply

MAX_ANSWER_CHARACTERS: Final = 16_384
"""Longer answers are not read: an honest one has the size of a reply and a few sentences."""

_CONTROL_TOKEN_MARKS = ("<|", "|>")
"""What tokenizers write their control tokens with; in a thought they would be read as such."""
_BLANK_AFTER_COLON = re.compile(r'\{\s*"[^"]*"\s*:\s')

FieldValue = str | int | list[str]


@final
class Verdict(BaseModel):
    """The schema of an answer."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)

    verdict: Literal["right", "wrong", "hopeless"]
    thought: dict[str, FieldValue] | None = None
    """The corrected fields of the agent's reply; only read where the verdict is `wrong`."""


def reply_fields(text: str) -> dict[str, Any] | None:
    """Return what an agent's reply of valid format holds, its action included; None for any other.

    None, too, where JSON has smuggled in half characters (lone surrogates): no tokenizer takes
    them, so a corrected reply that keeps them could not be imitated.

    >>> reply_fields('{"thoughts": "left is free", "action": "left"}')
    {'thoughts': 'left is free', 'action': 'left'}
    """
    fields = _load(unfenced(text)) if len(text) <= MAX_CHARACTERS else None
    if not isinstance(fields, dict) or "action" not in fields:
        return None
    return None if _has_surrogates(json.dumps(fields, ensure_ascii=False)) else fields


def load_object(text: str) -> Any | None:
    """Return the JSON value that a model's answer holds, None when it holds none.

    A Markdown fence around it is taken off, and so is text before the first brace and behind the
    last one.
    """
    if len(text) > MAX_ANSWER_CHARACTERS:
        return None
    body = unfenced(text)
    return _load(body[body.find("{") : body.rfind("}") + 1])


def _load(text: str) -> Any | None:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def read_verdict(text: str, fields: Mapping[str, Any]) -> Verdict | None:
    """Return a corrector's verdict on a reply with these fields; None when it cannot be used.

    The thought of a `wrong` reply must change something, have keys of the reply's only, values of
    the same kinds, and text that can be encoded and holds no control token. Whole numbers are taken
    for their digits where the reply has text.
    """
    try:
        answer = Verdict.model_validate(load_object(text))
    except ValidationError:
        return None
    if answer.verdict != "wrong":
        return Verdict(verdict=answer.verdict)
    thought: dict[str, FieldValue] = {}
    for key, value in (answer.thought or {}).items():
        old = fields.get(key)
        new = str(value) if isinstance(old, str) and isinstance(value, int) else value
        if key == "action" or type(new) is not type(old) or not _is_plain(new):
            return None
        thought[key] = new
    written = sum(len(json.dumps(value)) for value in thought.values())
    changes = any(fields[key] != value for key, value in thought.items())
    if not changes or written > MAX_CHARACTERS:
        return None
    return Verdict(verdict="wrong", thought=thought)


def corrected_reply(text: str, fields: Mapping[str, Any], thought: Mapping[str, Any]) -> str:
    """Return the agent's reply with corrected thoughts and the agent's own action, which is last.

    `text` is the reply as it was written, `fields` what it holds; blanks stand where it had them.

    >>> fields = {"thoughts": "2 and 3", "action": "+"}
    >>> corrected_reply('{"thoughts": "2 and 3", "action": "+"}', fields, {"thoughts": "2 and 5"})
    '{"thoughts": "2 and 5", "action": "+"}'
    """
    values = {key: value for key, value in fields.items() if key != "action"} | dict(thought)
    compact = _BLANK_AFTER_COLON.match(unfenced(text)) is None
    return write_reply(values | {"action": fields["action"]}, compact=compact)


def _is_plain(value: FieldValue) -> bool:
    """Return whether all text in a value can be encoded and stands for itself."""
    texts = value if isinstance(value, list) else [str(value)]
    return not any(_has_marks(text) or _has_surrogates(text) for text in texts)


def _has_marks(text: str) -> bool:
    return any(mark in text for mark in _CONTROL_TOKEN_MARKS)


def _has_surrogates(text: str) -> bool:
    """Return whether a text has lone surrogates, which JSON can smuggle in."""
    return any("\ud800" <= character <= "\udfff" for character in text)
