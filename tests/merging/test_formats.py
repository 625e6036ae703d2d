"""The errors that docs/merging.md promises for each storage format, measured."""

import pytest
import torch
from torch import Tensor

from gtr_turbo.errors import MergeError
from gtr_turbo.merging import LinearAccumulator, TiesAccumulator, TiesOptions
from gtr_turbo.merging.formats import find_format

NUM = 20_000


def walk(num: int, seed: int = 0) -> list[Tensor]:
    """Changes of a run with drift and noise, of reinforcement-learning size."""
    generator = torch.Generator().manual_seed(seed)
    drift = 1e-5 * torch.randn(NUM, generator=generator)
    at, found = torch.zeros(NUM), []
    for _ in range(num):
        at = at + drift + 1e-5 * torch.randn(NUM, generator=generator)
        found.append(at)
    return found


def merged(deltas: list[Tensor], sum_format: str, decay: float | None = None) -> Tensor:
    accumulator = TiesAccumulator(None, decay=decay, options=TiesOptions(sum_format=sum_format))
    for delta in deltas:
        accumulator.add({"w": delta})
    return accumulator.merged()["w"].double()


def error(found: Tensor, right: Tensor) -> float:
    return float((found - right).norm() / right.norm())


@pytest.mark.parametrize(
    ("sum_format", "num", "allowed"),
    [
        ("fp32", 10, 2e-7),
        ("fp32", 250, 5e-7),
        ("fp16", 10, 2e-3),
        ("fp16", 50, 2e-3),
        ("int32", 10, 1e-3),
        ("int32", 50, 1e-4),
    ],
)
def test_the_error_of_each_format(sum_format: str, num: int, allowed: float) -> None:
    deltas = walk(num)
    assert error(merged(deltas, sum_format), merged(deltas, "fp64")) < allowed


@pytest.mark.parametrize("sum_format", ["fp32", "fp16", "int32"])
def test_a_decay_works_in_every_format(sum_format: str) -> None:
    deltas = walk(30)
    found, right = merged(deltas, sum_format, decay=0.3), merged(deltas, "fp64", decay=0.3)
    assert error(found, right) < (1e-6 if sum_format == "fp32" else 3e-2)


def test_whole_numbers_do_not_depend_on_the_order() -> None:
    deltas = walk(12)
    forward, backward = merged(deltas, "int32"), merged(deltas[::-1], "int32")
    assert torch.equal(forward, backward)


def test_whole_numbers_take_back_what_was_added_bit_for_bit() -> None:
    first, second, third = walk(3)
    options = TiesOptions(sum_format="int32")
    never, back = TiesAccumulator(None, options=options), TiesAccumulator(None, options=options)
    for delta in (first, third):
        never.add({"w": delta})
    for delta in (first, second, third):
        back.add({"w": delta})
    back.remove({"w": second}, name="checkpoint-1")
    assert torch.equal(never.merged()["w"], back.merged()["w"])


@pytest.mark.parametrize(("sum_format", "value"), [("int32", 17.0), ("fp16", 16.5)])
def test_a_sum_that_does_not_fit_is_refused(sum_format: str, value: float) -> None:
    accumulator = LinearAccumulator(None, options=TiesOptions(sum_format=sum_format))
    with pytest.raises(MergeError, match=f"do not fit the {sum_format} format"):
        accumulator.add({"w": torch.tensor([value])})
    accumulator.add({"w": torch.tensor([1.0])})
    assert accumulator.merged()["w"].tolist() == [1.0]


def test_sizes_of_the_state() -> None:
    (delta,) = walk(1)
    bytes_per_entry = {}
    for name in ("fp32", "fp64", "fp16", "int32"):
        accumulator = TiesAccumulator(None, options=TiesOptions(sum_format=name))
        accumulator.add({"w": delta})
        state, _ = accumulator.state()
        bytes_per_entry[name] = sum(value.nbytes for value in state.values()) / NUM
    assert bytes_per_entry == {"fp32": 10.0, "fp64": 18.0, "fp16": 6.0, "int32": 10.0}


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(MergeError, match='no sum format named "bf16"'):
        find_format("bf16")
