"""How likely one of several tries succeeds."""

import math
from collections.abc import Sequence


def pass_at_k(solved: Sequence[int], num_samples: int, k: int) -> float:
    """Return the chance that one of k tries solves a hand, from `num_samples` tries of each.

    Of n tries c were good: 1 − C(n − c, k) / C(n, k), the share of the sets of k tries with a good
    one in it; the mean over hands. Unbiased, unlike 1 − (1 − c / n)^k (Chen et al., "Evaluating
    Large Language Models Trained on Code", 2021).

    >>> pass_at_k([1], 2, 1), pass_at_k([1], 2, 2)
    (0.5, 1.0)
    """
    whole = math.comb(num_samples, k)
    return sum(1 - math.comb(num_samples - c, k) / whole for c in solved) / len(solved)
