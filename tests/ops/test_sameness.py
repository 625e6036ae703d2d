"""Sameness of thoughts, counted by hand and against a slow definition."""

import math
from collections import Counter

import numpy as np
import pytest

from gtr_turbo.ops.sameness import self_bleu, shared_thought_rate

Thought = tuple[int, ...]


def slow_self_bleu(thoughts: list[Thought]) -> float:
    """BLEU-2 as Papineni et al. write it: each candidate, all its references, one n at a time."""
    scores: list[float] = []
    for index, own in enumerate(thoughts):
        references = thoughts[:index] + thoughts[index + 1 :]
        logs: list[float] = []
        for n in (1, 2):
            grams = Counter(own[i : i + n] for i in range(len(own) - n + 1))
            matched = sum(
                min(
                    count,
                    max(
                        sum(other[i : i + n] == gram for i in range(len(other) - n + 1))
                        for other in references
                    ),
                )
                for gram, count in grams.items()
            )
            logs.append(math.log(matched / grams.total()) if matched else -math.inf)
        closest = min((abs(len(other) - len(own)), len(other)) for other in references)[1]
        penalty = min(0.0, 1 - closest / len(own))
        scores.append(math.exp(sum(logs) / 2 + penalty))
    return sum(scores) / len(scores)


# -- self-BLEU ----------------------------------------------------------------------------------


def test_two_thoughts_that_share_half_of_their_words() -> None:
    """1 2 3 4 against 1 2 5 6: precisions 2/4 and 1/3, equal lengths, so √(1/6) both ways."""
    assert self_bleu([(1, 2, 3, 4), (1, 2, 5, 6)]) == pytest.approx(math.sqrt(1 / 6))


def test_a_word_is_not_matched_more_often_than_one_other_thought_has_it() -> None:
    """1 1 1 against 1 1 2: 2 of 3 words, 1 of 2 pairs; back: 2 of 3 words, 1 of 2 pairs."""
    assert self_bleu([(1, 1, 1), (1, 1, 2)]) == pytest.approx(math.sqrt(2 / 3 * 1 / 2))


def test_the_short_one_pays_for_its_brevity() -> None:
    """1 2 is wholly in 1 2 3 4, but half as long: exp(1 − 4 / 2). Back: 2/4 words, 1/3 pairs."""
    expected = (math.exp(-1) + math.sqrt(2 / 4 * 1 / 3)) / 2
    assert self_bleu([(1, 2), (1, 2, 3, 4)]) == pytest.approx(expected)


def test_the_closest_length_counts_and_of_two_the_shorter() -> None:
    """Four tokens between three and five: no penalty, as three is as close as five."""
    thoughts = [(1, 2, 3), (1, 2, 3, 4), (1, 2, 3, 4, 5)]
    short = math.exp(1 - 4 / 3)  # precisions 1 and 1
    long = math.sqrt(4 / 5 * 3 / 4)
    assert self_bleu(thoughts) == pytest.approx((short + 1 + long) / 3)


@pytest.mark.parametrize(
    ("thoughts", "expected"),
    [
        ([], None),
        ([(1, 2)], None),
        ([(1,), (1,)], 1.0),
        ([(1,), (2,)], 0.0),
        ([(), ()], 1.0),
        ([(), (1, 2)], 0.0),
        ([(), (), (1, 2)], 2 / 3),
        ([(1, 2, 3)] * 5, 1.0),
    ],
)
def test_the_ends_of_the_scale(thoughts: list[Thought], expected: float | None) -> None:
    assert self_bleu(thoughts) == (None if expected is None else pytest.approx(expected))


@pytest.mark.parametrize("seed", range(20))
def test_it_is_the_slow_definition(seed: int) -> None:
    chance = np.random.default_rng(seed)
    thoughts = [
        tuple(int(token) for token in chance.integers(5, size=chance.integers(2, 12)))
        for _ in range(chance.integers(2, 7))
    ]
    assert self_bleu(thoughts) == pytest.approx(slow_self_bleu(thoughts), abs=1e-12)


def test_longer_n_grams_are_harder_to_match() -> None:
    thoughts = [(1, 2, 3, 4), (1, 2, 4, 3)]
    values = [self_bleu(thoughts, order) for order in (1, 2, 3)]
    assert values[0] == 1.0
    assert None not in values
    assert values == sorted(values, key=lambda value: -(value or 0.0))


# -- thoughts across states ---------------------------------------------------------------------


def test_pairs_of_different_states_are_counted_by_hand() -> None:
    """Of 6 pairs, 5 are of different states; of these a1-b1 and a2-b1 are alike."""
    turns = [("a", "x"), ("a", "x"), ("b", "x"), ("c", "y")]
    assert shared_thought_rate(turns) == pytest.approx(2 / 5)


@pytest.mark.parametrize(
    ("turns", "expected"),
    [
        ([], None),
        ([("a", "x")], None),
        ([("a", "x"), ("a", "y")], None),
        ([("a", "x"), ("b", "y")], 0.0),
        ([("a", "x"), ("b", "x")], 1.0),
    ],
)
def test_too_few_states_say_nothing(turns: list[tuple[str, str]], expected: float | None) -> None:
    assert shared_thought_rate(turns) == expected


def test_synthetic_collapse_is_seen_where_the_share_of_distinct_thoughts_misleads() -> None:
    """A thought for each of 30 states is healthy, a template in 90 % of the turns is not.

    Both updates have few distinct thoughts among their 600: the number of states bounds the healthy
    one's, chance the other one's.
    """
    chance = np.random.default_rng(0)
    states = chance.integers(30, size=600)
    healthy = [(int(state), int(state)) for state in states]
    collapsed = [
        (int(state), -1 if chance.random() < 0.9 else int(chance.integers(30))) for state in states
    ]
    num_thoughts = [len({thought for _, thought in turns}) for turns in (healthy, collapsed)]
    assert all(20 <= count <= 31 for count in num_thoughts)
    assert shared_thought_rate(healthy) == 0.0
    assert shared_thought_rate(collapsed) == pytest.approx(0.9**2, abs=0.05)


def test_the_rate_does_not_depend_on_the_number_of_turns() -> None:
    """Four thoughts at random in 50 states: a quarter of the pairs, for few turns and for many."""
    chance = np.random.default_rng(1)
    for num_turns, tolerance in ((50, 0.15), (400, 0.04), (3000, 0.01)):
        turns = [(int(s), int(s) + int(t)) for s, t in chance.integers(50, size=(num_turns, 2))]
        turns = [(state, thought % 4) for state, thought in turns]
        found = shared_thought_rate(turns)
        assert found is not None
        assert found == pytest.approx(0.25, abs=tolerance)
