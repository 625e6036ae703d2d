"""Learning-rate schedules as pure functions of progress."""

import math


def cosine_with_floor(update: int, peak: float, floor: float, decay_updates: int) -> float:
    """Return the learning rate of `update` (counted from 0).

    Falls from `peak` to `floor` on half a cosine over `decay_updates` updates and stays there
    (paper, Table 7: 1e-5 → 1e-9, T_max 25).

    >>> [round(cosine_with_floor(k, 1.0, 0.0, 2), 3) for k in range(4)]
    [1.0, 0.5, 0.0, 0.0]
    """
    progress = min(update / decay_updates, 1.0)
    return floor + (peak - floor) * 0.5 * (1 + math.cos(math.pi * progress))


WARMUP_SHARE = 0.2
"""Share of a one-cycle schedule that climbs."""


def one_cycle(step: int, peak: float, num_steps: int) -> float:
    """Return the learning rate of `step` (from 0): a linear climb, then a cosine down to zero.

    >>> [round(one_cycle(k, 1.0, 10), 3) for k in (0, 1, 2, 6, 9)]
    [0.5, 1.0, 1.0, 0.5, 0.038]
    """
    climb = max(1, round(WARMUP_SHARE * num_steps))
    if step < climb:
        return peak * (step + 1) / climb
    progress = (step - climb) / max(1, num_steps - climb)
    return peak * 0.5 * (1 + math.cos(math.pi * progress))
