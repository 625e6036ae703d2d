from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import torch
from torch import Tensor

from gtr_turbo.errors import MergeError
from gtr_turbo.merging import TiesAccumulator, merge
from gtr_turbo.merging.sources import InMemory, checkpoint_label


def test_a_mapping_is_a_source() -> None:
    weight = torch.nn.Parameter(torch.zeros(2, 3))
    source = InMemory({"w": weight, "v": weight.data[0]}, "mine")
    assert (source.label, source.names()) == ("mine", ("w", "v"))
    assert (source.shape("w"), source.dtype("w")) == ((2, 3), torch.float32)
    assert not source.read("w").requires_grad
    assert source.read("w").data_ptr() == weight.data_ptr()
    assert source.storage("w") != source.storage("v")


def test_labels_read_well_in_a_sentence() -> None:
    assert checkpoint_label("checkpoint-3") == "checkpoint-3"
    assert checkpoint_label("update-0003") == 'checkpoint "update-0003"'


class MadeWhenAskedFor(Mapping[str, Tensor]):
    """Equal shapes, other values: the memory of one is free again when the next one is made."""

    def __getitem__(self, name: str) -> Tensor:
        return torch.full((64,), float(name))

    def __iter__(self) -> Iterator[str]:
        return iter(("1", "2", "3"))

    def __len__(self) -> int:
        return 3


def test_tensors_that_are_made_when_asked_for_do_not_pass_for_tied() -> None:
    merged = TiesAccumulator(None, density=1.0)
    merged.add(MadeWhenAskedFor())
    assert {name: value[0].item() for name, value in merged.merged_delta().items()} == {
        "1": 1.0,
        "2": 2.0,
        "3": 3.0,
    }
    result = merge({n: torch.zeros(64) for n in "123"}, [MadeWhenAskedFor()], density=1.0)
    assert {name: value[0].item() for name, value in result.items()} == {"1": 1, "2": 2, "3": 3}


def test_a_value_that_is_no_tensor_is_refused_by_name() -> None:
    # Only the first value of a mapping is looked at by the checks of types in these tests.
    mixed: dict[str, Any] = {"a": torch.ones(1), "b": [1.0]}
    with pytest.raises(MergeError, match='"b" of checkpoint-0 is a list, not a tensor'):
        InMemory(mixed, "checkpoint-0")
    with pytest.raises(MergeError, match='"b" of checkpoint-1 is a list, not a tensor'):
        merge(None, [{"a": torch.ones(1), "b": torch.ones(1)}, mixed])
