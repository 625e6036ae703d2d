import itertools
from math import comb
from typing import Any

import numpy as np
import pytest

from gtr_turbo.studies.statistics import (
    difference,
    improvement_prob,
    interquartile,
    interquartile_mean,
    mean_over_seeds,
    sign_flip_test,
    smallest_p,
    success,
)


def table(*rows: str) -> np.ndarray:
    """Return outcomes of seeds (rows) on hands (columns)."""
    return np.array([[int(mark) for mark in row] for row in rows])


def all_bootstrap_means(outcomes: np.ndarray) -> np.ndarray:
    """Return the mean of every resample of rows and columns there is, each equally likely."""
    rows, columns = (range(size) for size in outcomes.shape)
    return np.array(
        [
            outcomes[np.ix_(seeds, hands)].mean()
            for seeds in itertools.product(rows, repeat=len(rows))
            for hands in itertools.product(columns, repeat=len(columns))
        ]
    )


def percentiles(means: Any) -> tuple[float, float]:
    """Return where 2.5 % and 97.5 % of equally likely means lie."""
    low, high = np.percentile(means, [2.5, 97.5], method="inverted_cdf")
    return float(low), float(high)


# ----------------------------------------------------------------------------- success, differences


def test_success_is_the_mean_with_the_interval_of_all_resamples() -> None:
    outcomes = table("1100", "1010", "0001")
    found = success(outcomes)
    assert found.value == 5 / 12
    expected = percentiles(all_bootstrap_means(outcomes))
    assert (found.low, found.high) == pytest.approx(expected, abs=0.021)


def test_both_seeds_and_hands_widen_the_interval() -> None:
    hands_differ = success(table(*["1" * 50 + "0" * 50] * 10))
    seeds_differ = success(table(*["1" * 100] * 5, *["0" * 100] * 5))
    same = success(table(*["1" * 100] * 10))
    assert (hands_differ.low, hands_differ.high) == pytest.approx((0.4, 0.6), abs=0.02)
    assert (seeds_differ.low, seeds_differ.high) == pytest.approx((0.2, 0.8), abs=0.02)
    assert (same.value, same.low, same.high) == (1, 1, 1)


def test_a_known_spread_is_found_again() -> None:
    """Standard error of 5 seeds whose rates are 0.4 ± 0.1: the interval is about ±1.96 of it."""
    generator = np.random.default_rng(1)
    widths = []
    for _ in range(30):
        rates = generator.normal(0.5, 0.1, 20)
        outcomes = (generator.random((20, 400)) < rates[:, None]).astype(int)
        found = success(outcomes)
        widths.append((found.high - found.low) / 2)
    # Var = 0.1² / 20 of seeds, 0.25 / (20 · 400) of outcomes, and as much for hands once more.
    expected = 1.96 * np.sqrt(0.01 / 20 + 2 * 0.24 / 8000)
    assert np.mean(widths) == pytest.approx(expected, rel=0.12)


def test_equal_tables_give_equal_numbers() -> None:
    outcomes = table("1100", "1010", "0001")
    assert success(outcomes) == success(outcomes.copy())


def test_a_difference_is_paired_by_seed_and_hand() -> None:
    generator = np.random.default_rng(0)
    baseline = (generator.random((6, 200)) < generator.random((6, 1))).astype(int)
    better = baseline.copy()
    for row in better:  # ten more hands in each seed, whatever the seed's level
        row[np.flatnonzero(row == 0)[:10]] = 1
    found = difference(better, baseline)
    assert found.estimate.value == pytest.approx(0.05)
    apart = success(better)
    assert found.estimate.high - found.estimate.low < (apart.high - apart.low) / 3
    assert found.num_seeds == 6
    assert found.p_value == 2 / 2**6
    assert difference(baseline, better).estimate.value == pytest.approx(-0.05)


def test_the_sign_flip_test_counts_every_pattern() -> None:
    for gains in ([3, 2, 4, 1, 5], [1, -1], [5, -1, 2, 0], [0, 0, 0], [7], [2, 2, -2, 9, -4, 1]):
        seen = abs(sum(gains))
        patterns = itertools.product((-1, 1), repeat=len(gains))
        sums = [abs(sum(s * g for s, g in zip(signs, gains, strict=True))) for signs in patterns]
        expected = sum(value >= seen for value in sums) / len(sums)
        assert sign_flip_test(np.array(gains)) == expected
    assert sign_flip_test(np.array([1, -1])) == 1.0


@pytest.mark.parametrize("count", [1, 5, 16, 20])
def test_the_smallest_p_is_that_of_gains_of_one_sign(count: int) -> None:
    assert sign_flip_test(np.ones(count, np.int64)) >= smallest_p(count)
    assert count > 16 or sign_flip_test(np.ones(count, np.int64)) == smallest_p(count)


def test_with_many_seeds_signs_are_drawn() -> None:
    # Twenty gains of 1 and four of -1: P(|B − 12| ≥ 8) for B of 24 fair coins.
    gains = np.array([1] * 20 + [-1] * 4)
    exact = 2 * sum(comb(24, k) for k in range(5)) / 2**24
    assert sign_flip_test(gains) == pytest.approx(exact, rel=0.25)
    assert sign_flip_test(np.ones(40, np.int64)) == 1 / 2**16  # never 0


# ------------------------------------------------------------------------------------ rank measures


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([[1.0], [2.0], [3.0], [100.0]], 2.5),
        ([[1.0], [2.0], [3.0], [4.0], [100.0]], 3.0),
        ([[5.0], [1.0]], 3.0),
        ([[0.0, 10.0], [1.0, 20.0], [2.0, 30.0], [3.0, 40.0]], (2 + 3 + 10 + 20) / 4),
    ],
)
def test_the_interquartile_mean_is_the_middle_halfs(
    scores: list[list[float]], expected: float
) -> None:
    assert interquartile_mean(np.array(scores)) == expected


def test_the_interquartile_interval_is_that_of_all_stratified_resamples() -> None:
    scores = np.array([[0.1, 0.9], [0.4, 0.5], [0.3, 0.7]])
    seeds = list(itertools.product(range(3), repeat=3))
    means = [
        interquartile_mean(np.stack([scores[list(a), 0], scores[list(b), 1]], axis=1))
        for a in seeds
        for b in seeds
    ]
    found = interquartile(scores)
    assert found.value == pytest.approx((0.3 + 0.4 + 0.5 + 0.7) / 4)
    expected = percentiles(means)
    assert (found.low, found.high) == pytest.approx(expected, abs=0.02)


def test_the_probability_of_improvement_counts_pairs_and_halves_ties() -> None:
    found = improvement_prob(np.array([3.0, 2.0]), np.array([1.0, 2.0, 4.0]))
    # 3 beats 1 and 2, loses to 4; 2 beats 1, ties 2, loses to 4.
    assert found.value == pytest.approx((1 + 1 + 0 + 1 + 0.5 + 0) / 6)
    resampled = [
        np.mean([(x > y) + 0.5 * (x == y) for x in xs for y in ys])
        for xs in itertools.product((3.0, 2.0), repeat=2)
        for ys in itertools.product((1.0, 2.0, 4.0), repeat=3)
    ]
    expected = percentiles(resampled)
    assert (found.low, found.high) == pytest.approx(expected, abs=0.02)
    clear = improvement_prob(np.array([5.0, 6.0]), np.array([1.0, 2.0]))
    assert (clear.value, clear.low, clear.high) == (1, 1, 1)


def test_a_mean_over_seeds_has_the_interval_of_all_resamples() -> None:
    scores = np.array([1.0, 2.0, 6.0])
    means = [np.mean(draw) for draw in itertools.product(scores, repeat=3)]
    found = mean_over_seeds(scores)
    assert found.value == 3
    assert (found.low, found.high) == percentiles(means)
