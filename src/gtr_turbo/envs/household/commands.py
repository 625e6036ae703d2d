"""Actions, and the words for them in two versions of ALFWorld.

Engine and experts deal in `Action`; prompts and replies in commands, the words of a vocabulary.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Final, final


@final
class Verb(StrEnum):
    """What can be done."""

    GO = "go"
    TAKE = "take"
    PUT = "put"
    OPEN = "open"
    CLOSE = "close"
    USE = "use"
    CLEAN = "clean"
    HEAT = "heat"
    COOL = "cool"
    SLICE = "slice"
    EXAMINE = "examine"
    LOOK = "look"
    INVENTORY = "inventory"
    HELP = "help"


@final
@dataclass(frozen=True, slots=True)
class Action:
    """A verb and the names that it needs."""

    verb: Verb
    first: str = ""
    """The object that is handled; for `go`, `open`, `close`, `examine` whatever is meant."""
    second: str = ""
    """The receptacle (of `slice`: the knife)."""


LOOK: Final = Action(Verb.LOOK)
INVENTORY: Final = Action(Verb.INVENTORY)
HELP: Final = Action(Verb.HELP)

IDLE_VERBS: Final = frozenset({Verb.EXAMINE, Verb.INVENTORY, Verb.HELP})
"""Verbs that never change anything and that the rule `idle_commands` can take away."""

_FORMS: Final = {
    Verb.GO: "go to {}",
    Verb.TAKE: "take {} from {}",
    Verb.PUT: "move {} to {}",
    Verb.OPEN: "open {}",
    Verb.CLOSE: "close {}",
    Verb.USE: "use {}",
    Verb.CLEAN: "clean {} with {}",
    Verb.HEAT: "heat {} with {}",
    Verb.COOL: "cool {} with {}",
    Verb.SLICE: "slice {} with {}",
    Verb.EXAMINE: "examine {}",
    Verb.LOOK: "look",
    Verb.INVENTORY: "inventory",
    Verb.HELP: "help",
}
_OLD_FORMS: Final = _FORMS | {Verb.PUT: "put {} in/on {}"}
_VOCABULARIES: Final = {"0.4": _FORMS, "0.3": _OLD_FORMS}

_NAME: Final = r"[a-z]{1,24} [0-9]{1,3}"
_SHAPES: Final = {
    version: re.compile("|".join(form.replace("{}", _NAME) for form in forms.values()))
    for version, forms in _VOCABULARIES.items()
}


@lru_cache(maxsize=16_384)
def write_command(action: Action, vocabulary: str) -> str:
    """Return the command for an action in a vocabulary, ``0.4`` or ``0.3``."""
    names = [name for name in (action.first, action.second) if name]
    return _VOCABULARIES[vocabulary][action.verb].format(*names)


def read_command(
    text: str, admissible: Collection[str], vocabulary: str, matching: str
) -> str | None:
    """Return the command that a text means, or None when it is none.

    The command need not be admissible: a text that has the form of one is read as it stands. Under
    `longest`, the longest admissible command within the text comes first, whole words only; the
    lineage takes the first one that it finds, so that "go to cabinet 1" wins in a reply that says
    "go to cabinet 10". Two commands of one length give None.
    """
    words = " ".join(text.lower().split())
    if words in admissible:
        return words
    if matching == "longest":
        found = [command for command in admissible if _holds(words, command)]
        longest = max(map(len, found), default=0)
        best = {command for command in found if len(command) == longest}
        if best:
            return best.pop() if len(best) == 1 else None
    return words if _SHAPES[vocabulary].fullmatch(words) else None


def _holds(text: str, command: str) -> bool:
    """Return whether a command occurs in a text without a letter or digit at either side."""
    start = text.find(command)
    while start >= 0:
        end = start + len(command)
        if not (text[max(start - 1, 0) : start].isalnum() or text[end : end + 1].isalnum()):
            return True
        start = text.find(command, start + 1)
    return False
