from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gtr_turbo.core.spans import action_start, count_thought_tokens
from gtr_turbo.errors import SpanError


def split(text: str, tokens: list[str]) -> int:
    """Return the number of thought tokens when `tokens` spell `text` character by character."""
    ends = [0, *accumulate(len(token) for token in tokens)]
    return count_thought_tokens(text, len(tokens), ends.__getitem__)


def thought_of(tokens: list[str]) -> list[str]:
    return tokens[: split("".join(tokens), tokens)]


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ('{"action": "2"}', 1),
        ('{"a": 1, "action" : 2', 9),
        ('{"action": 1, "thoughts": "", "action": 2}', 30),  # the last of them
        ('{"thoughts": "the \\"action\\": 2"}', None),  # quoted inside a text
        ('{"actions": 2}', None),
        ('{"action", 2}', None),
        ("", None),
    ],
)
def test_the_last_action_key_is_the_border(text: str, start: int | None) -> None:
    assert action_start(text) == start


def test_tokens_before_the_key_are_thought() -> None:
    tokens = ['{"a"', ": 1,", ' "', "x", '", ', '"action"', ": ", '"2"', "}"]
    assert thought_of(tokens) == tokens[:5]


def test_a_span_shifted_by_one_would_be_seen() -> None:
    # The planted fault of the lineage: one token too many, or too few, on the thought side.
    tokens = ['{"t": ""', ", ", '"action"', ": ", "1}"]
    text, count = "".join(tokens), split('{"t": "", "action": 1}', tokens)
    assert text == '{"t": "", "action": 1}'
    key = action_start(text)
    assert key == len("".join(tokens[:count]))
    assert key != len("".join(tokens[: count - 1]))
    assert key != len("".join(tokens[: count + 1]))


@pytest.mark.parametrize(
    ("tokens", "count"),
    [
        (['{"t": "', '", "', 'action": ', '"2"}'], 1),  # `", "` holds the key's quotation mark
        (['{"t": "", "action": "2"}', "<end>"], 0),  # one token spells it all
        (['{"t": ""', ', "act', "ion", '": 1}'], 1),
    ],
)
def test_a_token_across_the_border_is_action(tokens: list[str], count: int) -> None:
    assert split("".join(tokens), tokens) == count


def test_without_the_key_only_the_last_token_is_action() -> None:
    assert split("no idea", ["no", " ", "idea"]) == 2
    assert split("x", ["x"]) == 0


def test_an_end_token_that_spells_nothing_belongs_to_the_action() -> None:
    assert split('a"action": 1', ["a", '"action"', ": 1", ""]) == 1


def test_a_cut_reply_ends_in_an_action_all_the_same() -> None:
    # The key is the very end, and a token of width zero stands before it.
    assert split('abc"action":', ["abc", "", '"action":']) == 2


def test_no_token_no_action() -> None:
    with pytest.raises(SpanError, match="has no tokens"):
        count_thought_tokens("", 0, lambda count: count)


def bytes_prefix(text: str) -> list[int]:
    """Return the characters that the first k bytes spell, a piece of one counting as one."""
    raw = text.encode()
    return [len(raw[:count].decode(errors="replace")) for count in range(len(raw) + 1)]


def test_characters_of_several_bytes_count_once() -> None:
    text = '{"t": "♠️ 10 🂡", "action": "é"}'
    ends = bytes_prefix(text)
    count = count_thought_tokens(text, len(text.encode()), ends.__getitem__)
    assert text.encode()[:count].decode() == '{"t": "♠️ 10 🂡", '


@given(
    before=st.text(max_size=20),
    after=st.text(max_size=10),
    cuts=st.sets(st.integers(1, 60), max_size=12),
)
def test_every_split_keeps_the_key_in_the_action(before: str, after: str, cuts: set[int]) -> None:
    text = f'{before}"action":{after}'
    edges = [0, *sorted(cut for cut in cuts if cut < len(text)), len(text)]
    tokens = [text[a:b] for a, b in pairwise(edges)]
    count = split(text, tokens)
    border = action_start(text)
    assert border is not None
    assert 0 <= count < len(tokens)
    assert len("".join(tokens[:count])) <= border  # nothing of the key is thought
    assert len("".join(tokens[: count + 1])) > border  # and no whole thought token is action
