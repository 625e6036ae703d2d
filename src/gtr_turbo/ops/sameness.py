"""How alike thoughts are: within an episode, and across states that ask for different ones."""

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import Final

Tokens = Sequence[int]

BLEU_ORDER: Final = 2
"""Longest n-grams that self-BLEU counts: the lineage logs 2-grams."""


def self_bleu(thoughts: Sequence[Tokens], order: int = BLEU_ORDER) -> float | None:
    """Return the mean BLEU of each thought against the others, 0–1; None for fewer than two.

    Self-BLEU of Zhu et al. (arXiv 1802.01886) on token ids: BLEU of Papineni et al. (2002) without
    smoothing, equal weights for 1-grams to `order`-grams, the brevity penalty against the closest
    length. A thought with fewer tokens than `order` is compared by the n-grams that it has; an
    empty one scores 1 beside another empty one, else 0.

    >>> self_bleu([(1, 2, 3), (1, 2, 3)])
    1.0
    >>> self_bleu([(1, 2), (3, 4)])
    0.0
    """
    if len(thoughts) < 2:  # noqa: PLR2004 - nothing to be compared with
        return None
    counts = [[_ngrams(thought, n) for thought in thoughts] for n in range(1, order + 1)]
    largest = [_two_largest(of_one_size) for of_one_size in counts]
    lengths = [len(thought) for thought in thoughts]
    total = 0.0
    for index, length in enumerate(lengths):
        others = lengths[:index] + lengths[index + 1 :]
        if length == 0:
            total += float(0 in others)
            continue
        precisions = [
            _clipped_precision(counts[n][index], largest[n]) for n in range(min(order, length))
        ]
        total += _geometric_mean(precisions) * _brevity_penalty(length, others)
    return total / len(thoughts)


def _ngrams(tokens: Tokens, n: int) -> Counter[tuple[int, ...]]:
    return Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))


_Largest = dict[tuple[int, ...], tuple[int, int, int]]
"""n-gram → (its largest count in one thought, how many have that, the largest count below)."""


def _two_largest(counts: Sequence[Counter[tuple[int, ...]]]) -> _Largest:
    """Return what is needed to say, for each thought, the largest count in any *other* one."""
    found: _Largest = {}
    for own in counts:
        for gram, count in own.items():
            most, num_most, below = found.get(gram, (0, 0, 0))
            if count > most:
                found[gram] = (count, 1, most)
            elif count == most:
                found[gram] = (most, num_most + 1, below)
            else:
                found[gram] = (most, num_most, max(below, count))
    return found


def _clipped_precision(own: Counter[tuple[int, ...]], largest: _Largest) -> float:
    matched = 0
    for gram, count in own.items():
        most, num_most, below = largest[gram]
        elsewhere = below if count == most and num_most == 1 else most
        matched += min(count, elsewhere)
    return matched / own.total()


def _geometric_mean(values: Sequence[float]) -> float:
    if min(values) == 0.0:
        return 0.0
    return math.exp(sum(math.log(value) for value in values) / len(values))


def _brevity_penalty(length: int, others: Sequence[int]) -> float:
    """Return exp(1 − r / c) where the closest length r is larger than c; ties go to the shorter."""
    closest = min(others, key=lambda other: (abs(other - length), other))
    return 1.0 if length >= closest else math.exp(1.0 - closest / length)


def shared_thought_rate(thoughts: Sequence[tuple[Hashable, Hashable]]) -> float | None:
    """Return how probable it is that two turns in different states hold the very same thought.

    Counted over all pairs of turns whose states differ, so it is unbiased, does not depend on how
    many turns there are, and leaves alone a state that comes back with its thought. None where
    there is no such pair.

    Args:
        thoughts: (state, thought) of each turn.

    >>> shared_thought_rate([("a", "x"), ("a", "x"), ("b", "y")])
    0.0
    >>> shared_thought_rate([("a", "x"), ("b", "x"), ("c", "y")]) == 1 / 3
    True
    """
    across = math.comb(len(thoughts), 2) - _pairs_alike(state for state, _ in thoughts)
    if across == 0:
        return None
    alike = _pairs_alike(thought for _, thought in thoughts) - _pairs_alike(thoughts)
    return alike / across


def _pairs_alike(values: Iterable[Hashable]) -> int:
    """Return how many pairs of equal values there are."""
    return sum(math.comb(count, 2) for count in Counter(values).values())
