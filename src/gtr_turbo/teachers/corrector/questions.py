"""What a model is asked: texts and a picture, as messages of the chat-completions protocol.

The parts of a question are separate texts of one message, each with a heading of ours, so that
nothing that an agent writes can pass for another part.
"""

import base64
import hashlib
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
from jaxtyping import UInt8
from PIL import Image

from gtr_turbo.core.turns import Turn, picture_hash

Message = dict[str, Any]
Part = dict[str, Any]

TOLD: Final = "What the agent was told:\n"
REPLIED: Final = "What the agent replied:\n"
SOLVER: Final = "What an exact solver says of this state, which the agent did not see:\n"

SYSTEM_TEXT: Final = """\
You check the thoughts of an agent that plays a task by looking at pictures. You get what the \
agent was told, the picture that it saw, and its reply, a JSON object. Where the answer of an \
exact solver is given, rely on it.

Look at the picture first, then check in this order:
1. Does the reply say what the picture really shows?
2. Is its account of where the task stands right?
3. Does its plan keep the rules, and can it still succeed? Another plan than the solver's is \
right too if it succeeds.
4. Do the thoughts lead to an action that furthers the plan?

Answer with one JSON object and nothing else:
{"check": "one short sentence for each of the four", "verdict": "right", "thought": null}

"verdict" is one of
- "right": nothing in the thoughts is false, and they lead to a good action. "thought" is null.
- "hopeless": whatever the agent does from here on, it cannot succeed. "thought" is null.
- "wrong": anything else. "thought" is then an object with the fields of the agent's reply, all \
but "action", under the same keys and in the same order, corrected. Write what the agent should \
have thought in this state, in its own style and about as long; never mention the solver or a \
correction. A list of texts stays a list of texts."""

CHARACTERS_PER_TOKEN: Final = 2
"""Fewer than any common tokenizer needs for English and JSON (3 to 4): costs are overestimated."""
PICTURE_TOKENS: Final = 1_500
"""More than the usual endpoints charge for a picture of a few hundred pixels."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One request, and what counts as an answer to it."""

    messages: Sequence[Message]
    key: str
    """The sha256 of model, messages, picture and temperature."""
    is_readable: Callable[[str], bool]
    """Returns whether a text is an answer to this question."""
    max_input_tokens: int
    """Estimate, from above, of what the request is charged for."""


def thought_question(
    turn: Turn,
    *,
    model: str,
    temperature: float,
    tell_solution: bool,
    is_readable: Callable[[str], bool],
) -> Question:
    """Return the question whether the thoughts of a turn are right."""
    observation = turn.observation
    texts = [REPLIED + turn.reply.text]
    if tell_solution and observation.advice:
        texts.append(SOLVER + observation.advice)
    return make_question(
        system=SYSTEM_TEXT,
        before=[TOLD + observation.prompt],
        picture_url=picture_url(observation.picture),
        picture_name=picture_hash(observation.picture),
        after=texts,
        model=model,
        temperature=temperature,
        is_readable=is_readable,
    )


def make_question(
    *,
    system: str,
    before: Sequence[str],
    picture_url: str,
    picture_name: str,
    after: Sequence[str],
    model: str,
    temperature: float,
    is_readable: Callable[[str], bool],
) -> Question:
    """Return a question: a system text, then texts, a picture and texts of one user message.

    `picture_name` stands for the picture in the key: a hash of what it shows.
    """

    def messages(picture: Part) -> list[Message]:
        parts = [*map(_text, before), picture, *map(_text, after)]
        return [{"role": "system", "content": system}, {"role": "user", "content": parts}]

    named = [model, messages({"picture": picture_name}), temperature]
    num_characters = len(system) + sum(len(text) for text in (*before, *after))
    return Question(
        messages=messages({"type": "image_url", "image_url": {"url": picture_url}}),
        key=hashlib.sha256(json.dumps(named).encode("ascii")).hexdigest(),
        is_readable=is_readable,
        max_input_tokens=num_characters // CHARACTERS_PER_TOKEN + PICTURE_TOKENS,
    )


def picture_url(picture: UInt8[np.ndarray, "height width channel"]) -> str:
    """Return a picture as a PNG in a `data:` URL."""
    file = io.BytesIO()
    Image.fromarray(picture).save(file, format="PNG")
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode('ascii')}"


def _text(text: str) -> Part:
    return {"type": "text", "text": text}
