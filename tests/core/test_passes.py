import itertools

import pytest

from gtr_turbo.core.passes import pass_at_k


@pytest.mark.parametrize("num_samples", [1, 2, 5])
def test_pass_at_k_is_the_share_of_sets_with_a_success(num_samples: int) -> None:
    for count in range(num_samples + 1):
        tries = [True] * count + [False] * (num_samples - count)
        for k in range(1, num_samples + 1):
            sets = list(itertools.combinations(tries, k))
            expected = sum(any(chosen) for chosen in sets) / len(sets)
            assert pass_at_k([count], num_samples, k) == pytest.approx(expected)


def test_pass_at_k_is_the_mean_over_hands() -> None:
    assert pass_at_k([0, 4, 2], 4, 1) == pytest.approx(0.5)
    assert pass_at_k([0, 4, 2], 4, 2) == pytest.approx((0 + 1 + 5 / 6) / 3)
    assert pass_at_k([0, 4, 2], 4, 4) == pytest.approx(2 / 3)
