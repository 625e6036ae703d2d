"""Where the thought ends and the action begins, in characters and in tokens.

A reply is JSON text such as ``{"cards": […], "formula": "1+", "thoughts": "…", "action": "2"}``.
Everything before the key ``"action"`` is *thought* (cards, formula and thoughts), everything from
that key on is *action*, the end-of-turn token included (`docs/paper.md`). The border is found on
characters and carried to the tokens that were really sampled by what they spell; no token id of any
tokenizer is written down here.
"""

import re
from bisect import bisect_right
from collections.abc import Callable

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


def count_thought_tokens(
    text: str, num_tokens: int, prefix_characters: Callable[[int], int]
) -> int:
    """Return n: tokens [0, n) of a reply are thought, tokens [n, num_tokens) are action.

    `prefix_characters(k)` is the number of characters that the first k tokens spell; it must not
    decrease. A token that straddles the border belongs to the action. A reply without the key is
    all thought except its last token, so that each turn has an action.

    Raises SpanError when there is no token.

    >>> ends = [0, 5, 7, 10, 20, 20]
    >>> count_thought_tokens('{"a":1,"action":"2"}', 5, ends.__getitem__)
    2
    """
    if num_tokens == 0:
        raise SpanError("a reply has no tokens, so it has no action.")
    border = action_start(text)
    if border is None:
        return num_tokens - 1
    num_thought = bisect_right(range(1, num_tokens + 1), border, key=prefix_characters)
    return min(num_thought, num_tokens - 1)
