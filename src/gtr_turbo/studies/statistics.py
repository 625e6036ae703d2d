"""Means with intervals, paired tests and rank measures over the runs of an arm.

The panel is the same for every run, so outcomes form a table of seeds × hands. Both are samples: of
seeds that might have been drawn, of hands that might have been dealt. A bootstrap resamples both.
Equal arguments give equal numbers: every draw comes from a generator of this module's own seed.

The interquartile mean and the probability of improvement are those of Agarwal et al., "Deep
Reinforcement Learning at the Edge of the Statistical Precipice" (NeurIPS 2021).
"""

from dataclasses import dataclass
from typing import Final, final

import numpy as np
from jaxtyping import Float, Int, Num

NUM_DRAWS: Final = 10_000
"""Bootstrap samples of an interval."""
LOW, HIGH = 2.5, 97.5
"""Percentiles of a 95 % interval."""
MAX_EXACT_SEEDS: Final = 16
"""Up to here all sign flips are counted, 65,536 of them; beyond, as many are drawn."""
TRIMMED_SHARE: Final = 0.25
"""Cut off at each end by the interquartile mean."""

Table = Num[np.ndarray, "seed hand"]
Scores = Float[np.ndarray, " seed"]


@final
@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its 95 % interval."""

    value: float
    low: float
    high: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """An arm against the baseline, paired by seed and hand."""

    estimate: Estimate
    """Difference of the success rates."""
    p_value: float
    """Two-sided sign-flip test over seeds."""
    num_seeds: int


def success(outcomes: Table) -> Estimate:
    """Return the success rate, with an interval that resamples seeds and hands.

    Seeds and hands are drawn with replacement, independently: every drawn seed plays every drawn
    hand, as in the study. With one seed the interval tells of the hands alone.
    """
    return _spread(outcomes, _generator())


def difference(outcomes: Table, baseline: Table) -> Difference:
    """Return how much more an arm solves than the baseline; rows are the same seeds in both."""
    gain = outcomes.astype(np.int64) - baseline.astype(np.int64)
    return Difference(
        estimate=_spread(gain, _generator()),
        p_value=sign_flip_test(gain.sum(axis=1)),
        num_seeds=len(gain),
    )


def sign_flip_test(gains: Int[np.ndarray, " seed"]) -> float:
    """Return the two-sided p value of a paired permutation test.

    If arm and baseline were alike, each seed's difference could as well have the other sign. The p
    value is the share of all sign patterns whose sum is at least as far from 0 as the one seen.
    `gains` are whole numbers (solved hands), so that equal sums are equal. The smallest value that
    n seeds can give is 2 / 2ⁿ.

    >>> sign_flip_test(np.array([3, 2, 4, 1, 5]))
    0.0625
    """
    seen = abs(int(gains.sum()))
    if len(gains) <= MAX_EXACT_SEEDS:
        patterns = np.arange(2 ** len(gains))[:, None] >> np.arange(len(gains)) & 1
        sums = (1 - 2 * patterns) @ gains
        return float((np.abs(sums) >= seen).mean())
    signs = _generator().choice([-1, 1], (2**MAX_EXACT_SEEDS - 1, len(gains)))
    extreme = int((np.abs(signs @ gains) >= seen).sum())
    return (extreme + 1) / 2**MAX_EXACT_SEEDS  # the pattern that was seen is one of them


def smallest_p(num_seeds: int) -> float:
    """Return the smallest p value that `sign_flip_test` can give.

    >>> smallest_p(5)
    0.0625
    """
    if num_seeds <= MAX_EXACT_SEEDS:
        return 2 / 2**num_seeds
    return 1 / 2**MAX_EXACT_SEEDS


def interquartile_mean(scores: Float[np.ndarray, "seed task"]) -> float:
    """Return the mean of the middle half of all scores: a quarter is cut off at each end.

    As many whole scores are cut as fit into a quarter, rounded down.
    """
    ordered = np.sort(scores, axis=None)
    cut = int(TRIMMED_SHARE * len(ordered))
    return float(ordered[cut : len(ordered) - cut].mean())


def interquartile(scores: Float[np.ndarray, "seed task"]) -> Estimate:
    """Return the interquartile mean with a stratified bootstrap: each task draws its own seeds."""
    generator = _generator()
    seeds, tasks = scores.shape
    draws = generator.integers(seeds, size=(NUM_DRAWS, seeds, tasks))
    drawn = np.take_along_axis(scores[None], draws, axis=1).reshape(NUM_DRAWS, -1)
    ordered = np.sort(drawn, axis=1)
    cut = int(TRIMMED_SHARE * ordered.shape[1])
    means = ordered[:, cut : ordered.shape[1] - cut].mean(axis=1)
    return _estimate(interquartile_mean(scores), means)


def improvement_prob(scores: Scores, baseline: Float[np.ndarray, " _"]) -> Estimate:
    """Return the probability that a run of the arm beats a run of the baseline; a tie is half.

    The interval resamples the runs of both, apart.
    """
    wins = (scores[:, None] > baseline) + 0.5 * (scores[:, None] == baseline)
    generator = _generator()
    rows = _counts(generator, wins.shape[0])
    columns = _counts(generator, wins.shape[1])
    return _estimate(float(wins.mean()), ((rows @ wins) * columns).sum(axis=1) / wins.size)


def mean_over_seeds(scores: Scores) -> Estimate:
    """Return the mean of a number that each run has once, with a bootstrap over seeds."""
    draws = _counts(_generator(), len(scores)) @ scores / len(scores)
    return _estimate(float(scores.mean()), draws)


# ------------------------------------------------------------------------------------- resampling


def _spread(table: Table, generator: np.random.Generator) -> Estimate:
    """Return the mean of a table with the interval of resampled rows and columns."""
    rows, columns = table.shape
    weighted = _counts(generator, rows) @ table
    draws = (weighted * _counts(generator, columns)).sum(axis=1) / table.size
    return _estimate(float(table.mean()), draws)


def _counts(generator: np.random.Generator, size: int) -> Float[np.ndarray, "draw part"]:
    """Return how often each of `size` parts is drawn, in each bootstrap sample."""
    parts = generator.integers(size, size=(NUM_DRAWS, size))
    places = parts + size * np.arange(NUM_DRAWS)[:, None]
    counts = np.bincount(places.ravel(), minlength=NUM_DRAWS * size)
    return counts.reshape(NUM_DRAWS, size).astype(np.float64)


def _estimate(value: float, draws: Float[np.ndarray, " draw"]) -> Estimate:
    low, high = np.percentile(draws, [LOW, HIGH])
    return Estimate(value, float(low), float(high))


def _generator() -> np.random.Generator:
    return np.random.default_rng(0)
