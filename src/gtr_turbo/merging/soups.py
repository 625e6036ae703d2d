"""The greedy model soup: a mean of those checkpoints that help (arXiv 2203.05482, recipe 1)."""

import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from gtr_turbo.errors import MergeError
from gtr_turbo.merging.mean_family import linear
from gtr_turbo.merging.problem import MergeProblem

Score = Callable[[dict[str, Tensor]], float]
"""Says how good a model is, higher is better; gets complete weights by name."""


def greedy_soup(problem: MergeProblem, *, score: Score) -> Iterator[tuple[str, Tensor]]:
    """Yield the mean of the checkpoints that were worth adding (recipe 1).

    Checkpoints are tried from the best to the worst; one stays in when the mean with it scores at
    least as high as without. Needs whole models in memory.
    """
    alone = [_scored(problem, [position], score) for position in range(len(problem.checkpoints))]
    order = sorted(range(len(alone)), key=lambda position: -alone[position])
    chosen, best = order[:1], alone[order[0]]
    for position in order[1:]:
        with_it = _scored(problem, [*chosen, position], score)
        if with_it >= best:
            chosen, best = [*chosen, position], with_it
    return linear(problem.subset(sorted(chosen)))


def _scored(problem: MergeProblem, positions: list[int], score: Score) -> float:
    soup = problem.subset(sorted(positions))
    with torch.no_grad():
        found = float(score(dict(soup.complete(linear(soup)))))
    if not math.isfinite(found):
        raise MergeError(
            f"the score of the soup of checkpoints {sorted(positions)} is {found}.",
            hint="the score must be a finite number, higher for better models.",
        )
    return found
