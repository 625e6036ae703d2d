import shutil
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from gtr_turbo.errors import CheckpointError, MergeError
from gtr_turbo.merging import MergeWarning, TiesOptions, make_accumulator
from gtr_turbo.merging.settings import MergeSettings
from gtr_turbo.merging.sources import InMemory
from gtr_turbo.merging.streamed import StreamedMerge

SHAPES = {"a": (40, 7), "b": (3,), "c": ()}


def settings(method: str = "ties", **changes: Any) -> MergeSettings:
    values: dict[str, Any] = {
        "method": method,
        "density": 0.7,
        "scale": 1.0,
        "decay": None,
        "window": None,
        "options": TiesOptions(),
    }
    return MergeSettings(**values | changes)


def models(num: int) -> list[dict[str, Tensor]]:
    generator = torch.Generator().manual_seed(0)
    return [
        {name: 0.1 * torch.randn(shape, generator=generator) for name, shape in SHAPES.items()}
        for _ in range(num)
    ]


def add(
    merge: StreamedMerge, base: dict[str, Tensor] | None, own: dict[str, Tensor], **more: Any
) -> dict[str, Tensor]:
    source = None if base is None else InMemory(base, "the base")
    return dict(merge.add(source, InMemory(own, "checkpoint"), **more))


@pytest.mark.parametrize(
    "own",
    [
        settings(),
        settings(density=1.0, scale=0.5),
        settings(decay=0.5),
        settings(decay=1),
        settings(decay=0.1, options=TiesOptions(ema_init="corrected")),
        settings("linear", decay=0.3),
        settings(options=TiesOptions(sum_format="int32", denominator="total")),
    ],
)
@pytest.mark.parametrize("with_base", [False, True])
def test_disk_and_memory_agree_bit_for_bit(
    own: MergeSettings, with_base: bool, tmp_path: Path
) -> None:
    base = models(1)[0] if with_base else None
    in_memory = make_accumulator(
        own.method,
        base=base,
        density=own.density,
        ema_alpha=own.decay,
        scale=own.scale,
        options=own.options,
    )
    for checkpoint in models(12):
        found = add(StreamedMerge(tmp_path, own), base, checkpoint)
        in_memory.add(checkpoint)
        for name, value in in_memory.merged().items():
            assert torch.equal(found[name], value)
    assert len(list(tmp_path.iterdir())) == 2
    assert len(StreamedMerge(tmp_path, own).names_inside) == (12 if own.decay != 1 else 1)


def test_a_decay_is_carried_out_on_disk(tmp_path: Path) -> None:
    own = settings(decay=0.9)
    in_memory = make_accumulator("ties", density=0.7, ema_alpha=0.9)
    found: dict[str, torch.Tensor] = {}
    for checkpoint in models(30):
        found = add(StreamedMerge(tmp_path, own), None, checkpoint)
        in_memory.add(checkpoint)
    for name, value in in_memory.merged().items():
        assert torch.equal(found[name], value)


def test_weights_may_differ(tmp_path: Path) -> None:
    merge = StreamedMerge(tmp_path, settings(density=1.0))
    add(merge, None, {"w": torch.tensor([4.0])}, weight=1, name="first")
    found = add(merge, None, {"w": torch.tensor([1.0])}, weight=2, name="second")
    assert found["w"].tolist() == [2.0]
    assert merge.names_inside == ("first", "second")
    with pytest.raises(MergeError, match="already part"):
        add(merge, None, {"w": torch.tensor([1.0])}, name="first")


def test_stopping_half_way_changes_nothing(tmp_path: Path) -> None:
    first, second = models(2)
    merge = StreamedMerge(tmp_path / "state", settings())
    add(merge, None, first)
    shutil.copytree(tmp_path / "state", tmp_path / "copy")
    stream = merge.add(None, InMemory(second, "checkpoint"))
    next(stream)
    assert isinstance(stream, Generator)
    stream.close()
    again = add(StreamedMerge(tmp_path / "state", settings()), None, second)
    expected = add(StreamedMerge(tmp_path / "copy", settings()), None, second)
    assert all(torch.equal(again[name], value) for name, value in expected.items())
    assert len(list((tmp_path / "state").iterdir())) == 2


def test_a_refused_checkpoint_changes_nothing(tmp_path: Path) -> None:
    first, second = models(2)
    merge = StreamedMerge(tmp_path, settings())
    add(merge, None, first)
    with pytest.raises(MergeError, match='"c" of checkpoint has 1 NaN'):
        add(merge, None, second | {"c": torch.tensor(torch.nan)})
    assert merge.names_inside == ("checkpoint-0",)
    add(merge, None, second)
    assert merge.names_inside == ("checkpoint-0", "checkpoint-1")


def test_other_settings_or_tensors_are_refused(tmp_path: Path) -> None:
    add(StreamedMerge(tmp_path, settings()), None, models(1)[0])
    with pytest.raises(MergeError, match="was made with"):
        StreamedMerge(tmp_path, settings(density=0.5))
    with pytest.raises(CheckpointError, match="belong to other tensors"):
        add(StreamedMerge(tmp_path, settings()), None, {"z": torch.ones(1)})
    with pytest.raises(MergeError, match="neither a window nor"):
        StreamedMerge(tmp_path, settings(window=3))
    with pytest.raises(MergeError, match="neither a window nor"):
        StreamedMerge(tmp_path, settings(options=TiesOptions(scope="global")))


def test_a_change_lost_to_rounding_warns(tmp_path: Path) -> None:
    base = {"w": torch.ones(8, dtype=torch.bfloat16)}
    with pytest.warns(MergeWarning, match=r"100\.0%"):
        add(StreamedMerge(tmp_path, settings()), base, base)
