"""Where the thought ends and the action begins, in characters and in tokens.

A reply is JSON text such as ``{"cards": […], "formula": "1+", "thoughts": "…", "action": "2"}``.
Everything before the key ``"action"`` is *thought* (cards, formula and thoughts), everything from
that key on is *action*, the end-of-turn token included (`docs/paper.md`). The border is found on
characters and carried to tokens by the offsets of the tokens that were really sampled; no token id
of any tokenizer is written down here.
"""

import re
from collections.abc import Sequence

from gtr_turbo.errors import SpanError

_ACTION_KEY = re.compile(r'"action"\s*:')


def action_start(text: str) -> int | None:
    """Return the character where the last ``"action":`` key begins, or None when there is none.

    >>> action_start('{"thoughts": "x", "action": "2"}')
    18
    """
    found = None
    for match in _ACTION_KEY.finditer(text):
        found = match.start()
    return found


def split_tokens(text: str, token_ends: Sequence[int]) -> tuple[int, int]:
    """Return (number of thought tokens, number of tokens): the border between the two spans.

    `token_ends[i]` is the number of characters of `text` that tokens 0…i spell; control tokens at
    the end spell nothing, so their entries equal `len(text)`. A token that straddles the border
    belongs to the action. A reply without the key is all thought except its last token, so that
    each turn has an action.

    Raises SpanError when there is no token, or the ends decrease.

    >>> split_tokens('{"a":1,"action":"2"}', [5, 7, 10, 20, 20])
    (2, 5)
    """
    num_tokens = len(token_ends)
    if num_tokens == 0:
        raise SpanError("a response has no tokens, so it has no action.")
    if any(b < a for a, b in zip(token_ends, token_ends[1:], strict=False)):
        raise SpanError(f"token ends must not decrease, got {list(token_ends)}.")
    border = action_start(text)
    if border is None:
        return num_tokens - 1, num_tokens
    num_thought = sum(1 for end in token_ends if end <= border)
    return min(num_thought, num_tokens - 1), num_tokens
