"""The merge methods by name. Each yields (name, merged tensor) for one tensor after another."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from torch import Tensor

from gtr_turbo.merging.dare import dare_linear, dare_ties
from gtr_turbo.merging.fisher import fisher
from gtr_turbo.merging.mean_family import (
    ema,
    linear,
    sma,
    task_arithmetic,
    uniform_soup,
    window_linear,
)
from gtr_turbo.merging.soups import greedy_soup
from gtr_turbo.merging.ties_family import ema_ties, ema_ties_recursive, ties, window_ties

METHODS: Final[Mapping[str, Callable[..., Iterator[tuple[str, Tensor]]]]] = {
    "ties": ties,
    "linear": linear,
    "sma": sma,
    "ema": ema,
    "ema_ties": ema_ties,
    "ema_ties_recursive": ema_ties_recursive,
    "window_ties": window_ties,
    "window_linear": window_linear,
    "dare_linear": dare_linear,
    "dare_ties": dare_ties,
    "task_arithmetic": task_arithmetic,
    "fisher": fisher,
    "uniform_soup": uniform_soup,
    "greedy_soup": greedy_soup,
}
"""Every merge method by name: a function of a merge problem and the method's own options."""
