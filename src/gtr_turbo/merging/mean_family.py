"""The methods that take means or sums of whole checkpoints: nothing is trimmed."""

from collections.abc import Iterator

from torch import Tensor

from gtr_turbo.errors import MergeError
from gtr_turbo.merging.changes import measure
from gtr_turbo.merging.formats import find_format
from gtr_turbo.merging.problem import MergeProblem
from gtr_turbo.merging.sums import PlainSums
from gtr_turbo.merging.weights import Real, ema_weights


def linear(problem: MergeProblem) -> Iterator[tuple[str, Tensor]]:
    """Yield the mean sum_i w_i theta_i / sum_i w_i, summed in float64.

    At scale 1 the base does not enter; otherwise base + scale * (mean - base).
    """
    total = sum(problem.weights)
    for part in problem.parts():
        sums = PlainSums(part.num_entries, find_format("fp64"))
        for weight, change in part.values():
            measure(change, 1.0)
            sums.add(change, weight, 0.0)
        yield part.finish_mean(sums.tensors()["mass"], total)


def sma(problem: MergeProblem) -> Iterator[tuple[str, Tensor]]:
    """Yield the simple average: every checkpoint counts the same."""
    refuse_weights(problem, "sma")
    return linear(problem)


def ema(
    problem: MergeProblem, *, alpha: Real = 0.5, ema_init: str = "first"
) -> Iterator[tuple[str, Tensor]]:
    """Yield the exponential average in closed form; the newest checkpoint is last, weight alpha."""
    return linear(exponential(problem, "ema", alpha, ema_init))


def window_linear(problem: MergeProblem, *, window: int) -> Iterator[tuple[str, Tensor]]:
    """Yield the weighted mean over the last `window` checkpoints."""
    return linear(last_of(problem, window))


def task_arithmetic(
    problem: MergeProblem, *, normalize: bool = False
) -> Iterator[tuple[str, Tensor]]:
    """Yield base + scale * sum_i w_i d_i (arXiv 2212.04089, section 2): the changes add up.

    `normalize` divides by the sum of the weights.
    """
    total = sum(problem.weights) if normalize else 1.0
    for part in problem.parts():
        sums = PlainSums(part.num_entries, find_format("fp32"))
        for weight, change in part.changes():
            measure(change, 1.0)
            sums.add(change, weight, 0.0)
        yield part.finish(sums.finish(total, None))


def uniform_soup(problem: MergeProblem) -> Iterator[tuple[str, Tensor]]:
    """Yield the mean of all checkpoints (model soups, arXiv 2203.05482, section 2)."""
    refuse_weights(problem, "uniform_soup")
    return linear(problem)


def exponential(problem: MergeProblem, method: str, alpha: Real, start: str) -> MergeProblem:
    """Return the problem with the closed-form weights of the exponential average."""
    refuse_weights(problem, method)
    return problem.reweighted(ema_weights(len(problem.checkpoints), alpha, start))


def refuse_weights(problem: MergeProblem, method: str) -> None:
    """Raise MergeError when weights were given to a method that sets them itself."""
    if problem.has_own_weights:
        raise MergeError(
            f'the method "{method}" sets the weights itself, but {list(problem.weights)} were'
            " given.",
            hint='leave the weights out, or use "ties" or "linear".',
        )


def last_of(problem: MergeProblem, window: int) -> MergeProblem:
    """Return the problem with only its last `window` checkpoints; MergeError when it is below 1."""
    if window < 1:
        raise MergeError(
            f"a window must hold at least 1 checkpoint, got {window}.",
            hint="leave the window out to merge every checkpoint.",
        )
    num = len(problem.checkpoints)
    return problem.subset(range(max(0, num - window), num))
