import math

import numpy as np
import pytest

from gtr_turbo.errors import MergeError
from gtr_turbo.merging.arrays.trimming import (
    SMALLEST_MAGNITUDE,
    check_density,
    num_kept,
    select_threshold,
)


@pytest.mark.parametrize(
    ("num", "density", "kept"),
    [(10, 0.8, 8), (5, 0.6, 3), (1, 0.8, 1), (3, 0.1, 1), (7, 0, 0), (0, 0.5, 0), (4, 1, 4)],
)
def test_number_of_kept_entries(num: int, density: float, kept: int) -> None:
    assert num_kept(num, density) == kept


@pytest.mark.parametrize("density", [-0.1, 1.01, 80.0, float("nan"), True, False])
def test_densities_are_shares(density: float) -> None:
    with pytest.raises(MergeError, match=r"lie in \[0, 1\]"):
        check_density(density)


@pytest.mark.parametrize("density", [1e-5, 0.1, 0.5, 0.8, 0.99, 0.99999])
@pytest.mark.parametrize("kind", ["normal", "equal", "few", "steps", "sorted", "periodic"])
def test_large_arrays_have_the_threshold_that_a_sort_finds(kind: str, density: float) -> None:
    num = 300_000
    values = np.abs(np.random.default_rng(0).standard_normal(num).astype(np.float32))
    magnitude = {
        "normal": values,
        "equal": np.full(num, 2.0, np.float32),
        "few": np.round(values),
        "steps": np.round(values * 50) / np.float32(50),
        "sorted": np.sort(values),
        # The sample sees one of eighteen places only, so that it misleads.
        "periodic": np.where(np.arange(num) % 18 == 0, values, values + np.float32(1)),
    }[kind]
    kept = num_kept(num, density)
    expected = max(float(np.sort(magnitude)[num - kept]), SMALLEST_MAGNITUDE)
    assert select_threshold(magnitude.copy(), kept) == expected


def test_the_threshold_is_the_kth_largest() -> None:
    assert select_threshold(np.array([1.0, 5.0, 3.0], np.float32), 2) == 3.0
    assert select_threshold(np.zeros(3, np.float32), 2) == SMALLEST_MAGNITUDE
    assert select_threshold(np.ones(3, np.float32), 3) == SMALLEST_MAGNITUDE
    assert select_threshold(np.ones(3, np.float32), 0) == math.inf
