"""Merging in one call."""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from torch import Tensor

from gtr_turbo.errors import MergeError, nearest_hint
from gtr_turbo.merging.methods import METHODS
from gtr_turbo.merging.problem import MergeProblem, make_problem
from gtr_turbo.merging.sources import InMemory
from gtr_turbo.merging.weights import Real


def merge(
    base: Mapping[str, Tensor] | None,
    checkpoints: Sequence[Mapping[str, Tensor]],
    *,
    method: str = "ties",
    density: Real | Sequence[Real] = 0.8,
    weights: Sequence[Real] | None = None,
    scale: Real = 1.0,
    **options: Any,
) -> dict[str, Tensor]:
    """Return the merged weights by name, in the base's types and shapes, as new tensors.

    Args:
        base: Initial weights that changes are relative to; None when the checkpoints are changes
            themselves, or for a plain mean of weights.
        checkpoints: Weights by name, oldest first, with exactly the base's names and shapes.
        method: A name in `METHODS`.
        density: Share of each change that is kept, for methods that trim or drop; others ignore it.
        weights: One per checkpoint, any positive scale; None: all count the same.
        scale: Factor of the merged change.
        **options: The method's own options, see its function; `tied` lists groups of names that
            share their values, beside those that share storage in the base.

    Raises:
        MergeError: anything that must not be merged: see docs/merging.md for the list.
    """
    tied = options.pop("tied", ())
    sources = [
        InMemory(checkpoint, f"checkpoint-{index}") for index, checkpoint in enumerate(checkpoints)
    ]
    reference = None if base is None else InMemory(base, "the base")
    check_method(method, options)
    problem = make_problem(reference, sources, weights=weights, scale=scale, tied=tied)
    found = dict(merge_stream(problem, method, {"density": density} | options))
    return {name: found[name] for name in problem.layout.shapes}


def merge_stream(
    problem: MergeProblem, method: str, options: Mapping[str, Any]
) -> Iterator[tuple[str, Tensor]]:
    """Yield (name, merged tensor) with one tensor of each checkpoint in memory at a time.

    `density` is passed on to methods that have it and otherwise dropped; any other option that the
    method does not have is refused with MergeError.
    """
    known = check_method(method, options)
    own = {name: value for name, value in options.items() if name in known}
    return problem.complete(METHODS[method](problem, **own))


def check_method(method: str, options: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the options of `method`; MergeError on an unknown method or option."""
    if method not in METHODS:
        raise MergeError(
            f'there is no merge method named "{method}".',
            hint=nearest_hint(method, METHODS, "methods"),
        )
    parameters = list(inspect.signature(METHODS[method]).parameters.values())[1:]
    known = tuple(parameter.name for parameter in parameters)
    for name in options:
        if name not in known and name != "density":
            raise MergeError(
                f'the merge method "{method}" has no option named "{name}".',
                hint=nearest_hint(name, known, "options"),
            )
    needed = [p.name for p in parameters if p.default is inspect.Parameter.empty]
    missing = [name for name in needed if name not in options]
    if missing:
        raise MergeError(
            f'the merge method "{method}" needs the option "{missing[0]}".',
            hint=f"pass {missing[0]}=…; docs/merging.md says what it is.",
        )
    return known
