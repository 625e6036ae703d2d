"""Replies: the JSON object that every task asks for, how it is written and how it is read.

    {"thoughts": "…", "action": "go to fridge 1"}

Each task names its keys and its actions in a `ReplyForm`. Reading never raises. A strict reader
takes a whole JSON object; where that fails a tolerant one looks for a complete ``"action": "…"`` (a
reply that was cut off after it still has an action, but no valid format). Every reply ends with an
action or none, a verdict on its format and, unless all is well, a reason from a closed list.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, final

from gtr_turbo.core.turns import ParsedReply

MAX_CHARACTERS = 8_192
"""Longer replies are not read: it bounds the work; a reply of 256 tokens has about a thousand."""
MAX_DEPTH = 8
"""Deeper nesting is not read: the JSON reader recurses, and an honest reply needs only 2."""

_FENCED = re.compile(r"\A```(?:json|JSON)?\s*(.*?)\s*```\Z", re.DOTALL)
_STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\Z)|[{}\[\]]', re.DOTALL)
_QUOTED_ACTION = re.compile(r'(?<!\\)"action"\s*:\s*(?:"([^"\\]*)")?')


@final
class Reason(StrEnum):
    """Why a reply has no action, or no valid format."""

    EMPTY = "the reply is empty"
    TOO_LONG = "the reply is too long to be read"
    NO_OBJECT = "there is no JSON object"
    TOO_DEEP = "the JSON is nested too deeply"
    NO_ACTION = "there is no action"
    TWO_ACTIONS = "there are several actions"
    NOT_TEXT = "the action is not a text"
    UNKNOWN_ACTION = "the action is not one of the task's"
    CUT_OFF = "the JSON object is not complete"
    NOT_JSON = "the object is not valid JSON"
    TEXT_AROUND = "there is text around the JSON object"
    REPEATED_KEYS = "a key occurs twice"
    MISSING_KEYS = "a required key is missing"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyForm:
    """What a task's replies must hold."""

    keys: tuple[str, ...]
    """Required keys, `action` among them, in the order in which they are written."""
    read_action: Callable[[str], str | None]
    """Returns the task's word for an action's stripped text, or None when it has none."""
    other_keys: Mapping[str, str] = field(default_factory=dict)
    """Other spelling of a key → the key; only for keys whose text is not read."""


def write_reply(fields: Mapping[str, Any], *, compact: bool) -> str:
    """Return `fields` as a reply; `compact` leaves out the blanks between its parts."""
    separators = (",", ":") if compact else (", ", ": ")
    return json.dumps(dict(fields), ensure_ascii=False, separators=separators)


def unfenced(text: str) -> str:
    """Return a text without the blanks and the one Markdown fence around it.

    >>> unfenced('```json {"action": "go"} ```')
    '{"action": "go"}'
    """
    body = text.strip()
    fenced = _FENCED.match(body)
    return body if fenced is None else fenced.group(1)


def whole_keys(text: str) -> list[str] | None:
    """Return the keys, as they were written, of the JSON object that a reply is.

    None for a reply that is no whole object; what `parse_reply` finds of valid format is one.
    """
    body = unfenced(text)
    if len(text) > MAX_CHARACTERS or not body.startswith("{"):
        return None
    end, _ = _object_end(body, 0)
    pairs = _load_pairs(body) if end == len(body) else None
    return None if pairs is None else [key for key, _ in pairs]


def parse_reply(text: str, form: ReplyForm) -> ParsedReply:
    """Return what a reply of a task with this form says to do.

    Nothing is guessed: two different readings, or a word that is no action, give no action.
    """
    if len(text) > MAX_CHARACTERS:
        return _rejected(Reason.TOO_LONG)
    body = unfenced(text)
    start = body.find("{")
    if start < 0:
        return _rejected(Reason.NO_OBJECT if body else Reason.EMPTY)
    end, depth = _object_end(body, start)
    if depth > MAX_DEPTH:
        return _rejected(Reason.TOO_DEEP)
    if end is None:
        return _parse_tolerantly(body[start:], Reason.CUT_OFF, form)
    pairs = _load_pairs(body[start:end])
    if pairs is None:
        return _parse_tolerantly(body[start:end], Reason.NOT_JSON, form)
    return _parse_pairs(pairs, is_whole=(start, end) == (0, len(body)), form=form)


def named_fields(text: str, form: ReplyForm) -> dict[str, Any]:
    """Return the fields of a reply's JSON object under the form's names, as they were written.

    Empty for a reply without an object that can be read, or with a key that occurs twice. An object
    inside of a field is a tuple of pairs.
    """
    start = text.find("{")
    if start < 0 or len(text) > MAX_CHARACTERS:
        return {}
    end, depth = _object_end(text, start)
    pairs = None if end is None or depth > MAX_DEPTH else _load_pairs(text[start:end])
    fields = {form.other_keys.get(key, key): value for key, value in pairs or ()}
    return fields if len(fields) == len(pairs or ()) else {}


def _rejected(reason: Reason, *, valid_format: bool = False) -> ParsedReply:
    return ParsedReply(action=None, valid_format=valid_format, reason=reason.value)


def _object_end(text: str, start: int) -> tuple[int | None, int]:
    """Return where the object that opens at `start` ends (None: it does not), and its depth.

    The search stops as soon as the depth exceeds `MAX_DEPTH`.
    """
    depth = deepest = 0
    for match in _STRING_OR_BRACKET.finditer(text, start):
        mark = match.group()
        if mark in ("{", "["):
            depth += 1
            deepest = max(deepest, depth)
            if depth > MAX_DEPTH:
                return None, deepest
        elif mark in ("}", "]"):
            depth -= 1
            if depth == 0:
                return match.end(), deepest
    return None, deepest


_Pairs = tuple[tuple[str, Any], ...]


def _load_pairs(text: str) -> _Pairs | None:
    """Return the key-value pairs of a JSON object, repeated keys included; None: not JSON."""
    try:
        return json.loads(text, object_pairs_hook=tuple)
    except ValueError:
        return None


def _parse_pairs(pairs: _Pairs, *, is_whole: bool, form: ReplyForm) -> ParsedReply:
    keys = [key for key, _ in pairs]
    num_actions = keys.count("action")
    if num_actions > 1:
        return _rejected(Reason.TWO_ACTIONS)
    fault = _format_fault(keys, form, is_whole=is_whole)
    if num_actions == 0:
        return _rejected(Reason.NO_ACTION)
    value = next(value for key, value in pairs if key == "action")
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        return _rejected(Reason.NOT_TEXT, valid_format=fault is None)
    action = form.read_action(value.strip())
    if action is None:
        return _rejected(Reason.UNKNOWN_ACTION, valid_format=fault is None)
    return ParsedReply(action=action, valid_format=fault is None, reason=fault and fault.value)


def _format_fault(keys: list[str], form: ReplyForm, *, is_whole: bool) -> Reason | None:
    """Return what is wrong with a parsed object's format, or None."""
    names = [form.other_keys.get(key, key) for key in keys]
    if len(set(names)) < len(names):
        return Reason.REPEATED_KEYS
    if not set(form.keys) <= set(names):
        return Reason.MISSING_KEYS
    return None if is_whole else Reason.TEXT_AROUND


def _parse_tolerantly(text: str, fault: Reason, form: ReplyForm) -> ParsedReply:
    """Return the one complete quoted action in a text that is no JSON object."""
    matches = list(_QUOTED_ACTION.finditer(text))
    if len(matches) > 1:
        return _rejected(Reason.TWO_ACTIONS)
    value = matches[0].group(1) if matches else None
    if value is None:
        return _rejected(fault if matches else Reason.NO_ACTION)
    action = form.read_action(value.strip())
    if action is None:
        return _rejected(Reason.UNKNOWN_ACTION)
    return ParsedReply(action=action, valid_format=False, reason=fault.value)
