import math

import pytest

from gtr_turbo.ops.schedules import cosine_with_floor, one_cycle


def paper(update: int) -> float:
    """Return the paper's learning rate: 1e-5 to 1e-9 over 25 updates."""
    return cosine_with_floor(update, 1e-5, 1e-9, 25)


def test_the_papers_schedule_falls_to_its_floor_and_stays() -> None:
    assert paper(0) == pytest.approx(1e-5, rel=1e-12)
    assert paper(25) == pytest.approx(1e-9, rel=1e-6)
    assert [paper(update) for update in (26, 30, 1000)] == [paper(25)] * 3
    rates = [paper(update) for update in range(26)]
    assert rates == sorted(rates, reverse=True)


def test_the_cosine_between() -> None:
    # cos(π · 5/25) = (1 + √5)/4
    cosine = (1 + math.sqrt(5)) / 4
    assert paper(5) == pytest.approx(1e-9 + (1e-5 - 1e-9) * 0.5 * (1 + cosine))
    assert cosine_with_floor(10, 3.0, 1.0, 20) == pytest.approx(2.0)


def test_one_cycle_climbs_for_a_fifth_and_falls_to_zero() -> None:
    rates = [one_cycle(step, 2.0, 100) for step in range(101)]
    assert rates[0] == pytest.approx(2.0 / 20)
    assert rates[9] == pytest.approx(1.0)
    assert rates[19] == rates[20] == pytest.approx(2.0)
    assert rates[60] == pytest.approx(1.0)
    assert rates[100] == pytest.approx(0.0, abs=1e-12)
    assert rates[20:] == sorted(rates[20:], reverse=True)


@pytest.mark.parametrize("num_steps", [1, 2, 3])
def test_the_shortest_cycles_still_train(num_steps: int) -> None:
    rates = [one_cycle(step, 1.0, num_steps) for step in range(num_steps)]
    assert rates[0] == 1.0
    assert all(0 < rate <= 1 for rate in rates)
