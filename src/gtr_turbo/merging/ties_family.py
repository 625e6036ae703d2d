"""The methods that trim and elect: TIES over all, over a window, with exponential weights."""

from collections.abc import Callable, Iterator, Sequence

from torch import Tensor

from gtr_turbo.errors import MergeError
from gtr_turbo.merging.arrays.kernels import Scratch, spans
from gtr_turbo.merging.arrays.trimming import check_density, num_kept
from gtr_turbo.merging.changes import measure
from gtr_turbo.merging.formats import find_format
from gtr_turbo.merging.mean_family import exponential, last_of, refuse_weights
from gtr_turbo.merging.problem import MergeProblem, Part
from gtr_turbo.merging.radix import RadixSelector
from gtr_turbo.merging.rounding import UnchangedShare
from gtr_turbo.merging.settings import check_choice
from gtr_turbo.merging.sums import SignSums
from gtr_turbo.merging.weights import Real, ema_weights

Density = Real | Sequence[Real]
"""One share for all checkpoints, or one each."""


def ties(
    problem: MergeProblem,
    *,
    density: Density = 0.8,
    scope: str = "tensor",
    denominator: str = "matched",
    sum_format: str = "fp32",
) -> Iterator[tuple[str, Tensor]]:
    """Yield base + scale * TIES of the changes (arXiv 2306.01708, section 3).

    The canonical rule: trim each change per tensor, keeping |d| >= the k-th largest with
    k = max(1, int(density * n)); elect the sign of the weighted sum, + for an exact 0; take the
    weighted mean over the kept entries of that sign. `scope="global"` trims over all tensors at
    once; `denominator` divides by the weight that agrees ("matched"), all of it or nothing.
    """
    check_choice("scope", scope, ("tensor", "global"))
    check_choice("denominator", denominator, ("matched", "total", "none"))
    densities = _densities(problem, density)
    shared = _global_thresholds(problem, densities) if scope == "global" else None
    unchanged = UnchangedShare()
    relative = _relative(problem.weights, denominator)
    scratch = Scratch()
    for part in problem.parts():
        sole = part.sole()
        sums = SignSums(part.num_entries, find_format(sum_format), denominator)
        for position, change in enumerate(part.change(at) for at in range(len(relative))):
            found = measure(change, densities[position] if shared is None else 1.0, scratch)
            threshold = found.threshold if shared is None else shared[position]
            unchanged.include(change.arrays(), found.num_zero)
            sums.add(change, relative[position], threshold)
        if sole is not None and densities[sole] == 1.0 and problem.base is not None:
            yield part.finish_with(sole)
        else:
            yield part.finish(sums.finish(sum(relative), None))
    unchanged.warn()


def ema_ties(
    problem: MergeProblem,
    *,
    alpha: Real = 0.5,
    ema_init: str = "first",
    density: Density = 0.8,
    scope: str = "tensor",
    denominator: str = "matched",
) -> Iterator[tuple[str, Tensor]]:
    """Yield one TIES merge with the closed-form weights of the exponential average.

    Not the recursion on (previous teacher, newest), see `ema_ties_recursive`.
    """
    weighted = exponential(problem, "ema_ties", alpha, ema_init)
    return ties(weighted, density=density, scope=scope, denominator=denominator)


def ema_ties_recursive(
    problem: MergeProblem, *, alpha: Real = 0.5, density: Real = 0.8
) -> Iterator[tuple[str, Tensor]]:
    """Yield m_K of m_k = TIES(m_{k-1}, newest; weights 1 - alpha, alpha), with m_1 = TIES(first).

    Every step trims again, so this is another method than `ema_ties`: it leaves many more zeros.
    """
    refuse_weights(problem, "ema_ties_recursive")
    ema_weights(1, alpha)
    densities = _densities(problem, density)
    for part in problem.parts():
        merged: Tensor | None = None
        for position, (_, change) in enumerate(part.changes()):
            sums = SignSums(part.num_entries, find_format("fp32"), "matched")
            newest = measure(change, densities[position])
            if merged is None:
                sums.add(change, 1.0, newest.threshold)
                merged = sums.finish(1.0, None)
                continue
            past = change.replaced_by(merged)
            sums.add(past, 1.0 - alpha, measure(past, densities[position]).threshold)
            sums.add(change, alpha, newest.threshold)
            merged = sums.finish(1.0, None)
        assert merged is not None
        yield part.finish(merged)


def window_ties(
    problem: MergeProblem, *, window: int, density: Density = 0.8, scope: str = "tensor"
) -> Iterator[tuple[str, Tensor]]:
    """Yield TIES over the last `window` checkpoints."""
    last = last_of(problem, window)
    kept = density if isinstance(density, float | int) else tuple(density)[-window:]
    return ties(last, density=kept, scope=scope)


def _densities(problem: MergeProblem, density: Density) -> tuple[float, ...]:
    num = len(problem.checkpoints)
    if isinstance(density, float | int):  # True and False too, which are refused
        return (check_density(density),) * num
    if len(density) != num:
        raise MergeError(
            f"{len(density)} densities were given for {num} checkpoints.",
            hint="give one density for all checkpoints, or one each.",
        )
    return tuple(check_density(own) for own in density)


def _relative(weights: tuple[float, ...], denominator: str) -> tuple[float, ...]:
    """Return the weights divided by the first positive one: equal weights become plain counts."""
    if denominator == "none":
        return weights
    first = next(weight for weight in weights if weight > 0.0)
    return tuple(weight / first for weight in weights)


def _global_thresholds(problem: MergeProblem, densities: tuple[float, ...]) -> list[float]:
    """Return one threshold per checkpoint over all tensors together, reading each of them twice."""
    sizes = [part.num_entries for part in problem.parts()]
    selectors = [RadixSelector(num_kept(sum(sizes), density)) for density in densities]
    for part in problem.parts():
        _show(part, [selector.count_high for selector in selectors])
    for selector in selectors:
        selector.end_first_pass()
    for part in problem.parts():
        _show(part, [selector.count_low for selector in selectors])
    return [selector.threshold() for selector in selectors]


def _show(part: Part, receivers: Sequence[Callable[[Tensor], None]]) -> None:
    for receiver, (_, change) in zip(receivers, part.changes(), strict=True):
        measure(change, 1.0)
        values = change.whole()
        for start, stop in spans(values.numel()):
            receiver(values[start:stop])
