import json

import pytest
import torch

from gtr_turbo.errors import MergeError
from gtr_turbo.merging.naming import Layout, check_fixed, check_names, layout_of
from gtr_turbo.merging.sources import InMemory

SHARED = torch.zeros(3)
BASE = InMemory({"e": SHARED, "h": SHARED, "w": torch.zeros(2, 2), "ids": torch.arange(2)}, "base")


def test_a_layout_knows_ties_and_kinds() -> None:
    layout = layout_of(BASE)
    assert layout.leaders == {"e": "e", "h": "e", "w": "w", "ids": "ids"}
    assert layout.merged_names == ("e", "w")
    assert layout.fixed_names == ("ids",)
    assert Layout.from_json(json.loads(json.dumps(layout.to_json()))) == layout


def test_views_and_empty_tensors_are_not_tied() -> None:
    long = torch.zeros(4)
    source = InMemory({"a": long, "b": long[:2], "c": torch.zeros(0), "d": torch.zeros(0)}, "x")
    assert set(layout_of(source).leaders.values()) == {"a", "b", "c", "d"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"w": None}, 'checkpoint lacks "w"'),
        ({"x": torch.zeros(1)}, 'has in addition "x"'),
        ({"w": None, "x": torch.zeros(1)}, 'lacks "w" and has in addition "x"'),
        ({n: torch.zeros(1) for n in "pqrst"}, '"p", "q", "r" and 2 more'),
        ({"w": torch.zeros(2, 3)}, r'"w" of checkpoint has shape \(2, 3\), the base has \(2, 2\)'),
        ({"w": torch.zeros(2, 2, dtype=torch.int8)}, r'"w" of checkpoint has type torch\.int8'),
        ({"h": torch.ones(3)}, '"e" and "h" share their values'),
    ],
)
def test_what_does_not_fit_is_named(changes: dict[str, torch.Tensor | None], message: str) -> None:
    values = {name: BASE.read(name) for name in BASE.names()} | changes
    found = InMemory({name: v for name, v in values.items() if v is not None}, "checkpoint")
    with pytest.raises(MergeError, match=message):
        check_names(layout_of(BASE), found)


def test_equal_copies_may_stand_for_tied_tensors() -> None:
    copies = InMemory({name: BASE.read(name).clone() for name in BASE.names()}, "checkpoint")
    layout = layout_of(BASE)
    check_names(layout, copies)
    assert layout_of(copies).leaders["h"] == "h"
    assert layout_of(copies, [("e", "h")]) == layout


def test_groups_that_are_no_ties_are_refused() -> None:
    with pytest.raises(MergeError, match='names "z", which base does not have'):
        layout_of(BASE, [("e", "z")])
    with pytest.raises(MergeError, match='"e" and "w" are to be tied but differ in base'):
        layout_of(BASE, [("e", "w")])


def test_fixed_tensors_must_be_equal_in_type_as_well() -> None:
    check_fixed("ids", torch.arange(2), torch.arange(2), "c")
    for other in (torch.arange(1, 3), torch.arange(2, dtype=torch.int32)):
        with pytest.raises(MergeError, match=r'"ids" of type .* differs between the base and c'):
            check_fixed("ids", torch.arange(2), other, "c")
