"""Commands in two vocabularies: ALFWorld 0.4's, which the engine speaks, and 0.3's, the paper's.

    0.4: move mug 1 to shelf 2          use desklamp 1
    0.3: put mug 1 in/on shelf 2        toggle desklamp 1

Inside this package a command is in the words of 0.4. Both are understood in replies;
`write_command` chooses what is shown.
"""

import re
from collections.abc import Collection
from typing import Final, Literal

Vocabulary = Literal["0.4", "0.3"]
"""ALFWorld's version whose words are shown; 0.3 is that of the paper's appendix and of RL4VLM."""

_NAME: Final = r"[a-z]{2,24} \d{1,3}"
_COMMAND: Final = re.compile(
    rf"look|inventory|help|(?:go to|open|close|use|examine) {_NAME}"
    rf"|take {_NAME} from {_NAME}|move {_NAME} to {_NAME}"
    rf"|(?:heat|cool|clean|slice) {_NAME} with {_NAME}"
)
_MOVE: Final = re.compile(rf"move ({_NAME}) to ({_NAME})")
_USE: Final = re.compile(rf"use ({_NAME})")
_PUT: Final = re.compile(rf"put ({_NAME}) (?:in/on|in|on|into) ({_NAME})")
_TOGGLE: Final = re.compile(rf"toggle ({_NAME})")
_MAX_LETTERS: Final = 120
"""Longer texts are no command: the longest has four words of kinds and numbers."""


def read_command(text: str, admissible: Collection[str]) -> str | None:
    """Return the command that a text means, in the engine's words, or None where it means none.

    A whole command has to stand there: "go to cabinet 1" is never found in "go to cabinet 10".

    >>> read_command("Put mug 1 in/on shelf 2.", ())
    'move mug 1 to shelf 2'
    """
    if len(text) > _MAX_LETTERS:
        return None
    words = " ".join(text.lower().split()).rstrip(".")
    words = _PUT.sub(r"move \1 to \2", words) if _PUT.fullmatch(words) else words
    words = _TOGGLE.sub(r"use \1", words) if _TOGGLE.fullmatch(words) else words
    return words if words in admissible or _COMMAND.fullmatch(words) else None


def write_command(command: str, vocabulary: Vocabulary) -> str:
    """Return a command of the engine as it is shown.

    >>> write_command("use desklamp 1", "0.3")
    'toggle desklamp 1'
    """
    if vocabulary == "0.4":
        return command
    words = _MOVE.sub(r"put \1 in/on \2", command) if _MOVE.fullmatch(command) else command
    return _USE.sub(r"toggle \1", words) if _USE.fullmatch(words) else words
