"""How much each checkpoint counts: weight vectors for the simple and the exponential average."""

import math
from collections.abc import Sequence

from gtr_turbo.errors import MergeError

Real = float | int
"""A number where whole ones are as good: weights, shares, factors."""

NEGLIGIBLE_SHARE = 1e-6
"""A sign whose matched weight is below this share of the total weight counts as absent.

Without such a rule an entry that was trimmed in every recent checkpoint would get its full old
value back from a checkpoint that has all but faded, and after some 140 halvings a division 0/0.
"""


def sma_weights(num_checkpoints: int) -> tuple[float, ...]:
    """Return the weights of the simple average, 1 for each checkpoint.

    (arXiv 2512.13043, section 3.2.) They are 1 and not 1/K because 1/K is rounded, and rounding
    breaks sums that are exactly zero.

    >>> sma_weights(3)
    (1.0, 1.0, 1.0)
    """
    if num_checkpoints < 1:
        raise MergeError(
            f"a merge needs at least one checkpoint, got {num_checkpoints}.",
            hint="add a checkpoint before asking for weights.",
        )
    return (1.0,) * num_checkpoints


def ema_weights(num_checkpoints: int, alpha: Real, start: str = "first") -> tuple[float, ...]:
    """Return the closed-form weights of the exponential average, oldest first; they sum to 1.

    m_k = alpha theta_k + (1 - alpha) m_{k-1} (arXiv 2512.13043, equation 4) unrolls to
    alpha (1 - alpha)^age. `start` says what the oldest checkpoint weighs: `first` =
    (1 - alpha)^(K-1), as when the recursion starts there; `corrected` = alpha (1 - alpha)^(K-1)
    like every other, all divided by their sum.

    >>> ema_weights(3, 0.5)
    (0.25, 0.25, 0.5)
    """
    check_alpha(alpha)
    num = len(sma_weights(num_checkpoints))
    weights = [alpha * (1.0 - alpha) ** (num - 1 - index) for index in range(num)]
    if start == "first":
        weights[0] = (1.0 - alpha) ** (num - 1)
        return tuple(weights)
    if start == "corrected":
        total = math.fsum(weights)
        return tuple(weight / total for weight in weights)
    raise MergeError(
        f'the start of an exponential average must be "first" or "corrected", got "{start}".',
        hint='"first" gives the oldest checkpoint (1-alpha)^(K-1); "corrected" treats all alike.',
    )


def check_alpha(alpha: Real) -> None:
    """Raise MergeError unless `alpha`, the weight of the newest checkpoint, lies in (0, 1]."""
    if not (math.isfinite(alpha) and 0.0 < alpha <= 1.0):
        raise MergeError(
            f"the rate of an exponential average must lie in (0, 1], got {alpha}.",
            hint="alpha is the weight of the newest checkpoint; 0.5 worked best in the paper.",
        )


def check_weight(weight: Real, label: str) -> float:
    """Return `weight` as a float; MergeError unless it is finite and not negative."""
    if not (math.isfinite(weight) and weight >= 0.0):
        raise MergeError(
            f"the weight of {label} must be finite and at least 0, got {weight}.",
            hint="to subtract a checkpoint's change use another method; TIES weights are shares.",
        )
    return float(weight)


def check_weights(weights: Sequence[Real] | None, num_checkpoints: int) -> tuple[float, ...]:
    """Return one weight per checkpoint, all 1 when `weights` is None.

    Raises:
        MergeError: a wrong number of weights, a negative or non-finite one, or a zero sum.
    """
    if weights is None:
        return sma_weights(num_checkpoints)
    if len(weights) != num_checkpoints:
        raise MergeError(
            f"{len(weights)} weights were given for {num_checkpoints} checkpoints.",
            hint="give one weight per checkpoint, in the same order, or none at all.",
        )
    checked = tuple(
        check_weight(weight, f"checkpoint {index}") for index, weight in enumerate(weights)
    )
    if not math.fsum(checked) > 0.0:
        raise MergeError(
            f"the weights must have a positive sum, got {list(weights)}.",
            hint="give at least one checkpoint a weight above 0.",
        )
    return checked
