import torch

from gtr_turbo.merging.running import RunningMerge
from gtr_turbo.merging.settings import MergeSettings, TiesOptions


def running(**changes: object) -> RunningMerge:
    values = {"method": "ties", "density": 1.0, "scale": 1.0, "decay": None, "window": None}
    return RunningMerge(MergeSettings(options=TiesOptions(), **values | changes), None)  # pyright: ignore[reportArgumentType]


def test_only_the_last_of_a_window_are_held() -> None:
    merge = running(window=2)
    for value in (1.0, 2.0, 4.0):
        merge.add({"w": torch.tensor([value])}, 1.0, None)
    assert merge.merged()["w"].tolist() == [3.0]
    tensors, manifest = merge.state()
    assert [name for name, _ in manifest["window"]] == ["checkpoint-1", "checkpoint-2"]
    assert sorted(key for key in tensors if key.startswith("window")) == [
        "window-0/w",
        "window-1/w",
    ]


def test_removing_by_hand_leaves_the_window_as_well() -> None:
    merge = running(window=2)
    for value in (1.0, 2.0):
        merge.add({"w": torch.tensor([value])}, 1.0, None)
    merge.remove({"w": torch.tensor([1.0])}, 1.0, "checkpoint-0")
    merge.add({"w": torch.tensor([6.0])}, 1.0, None)
    assert merge.merged()["w"].tolist() == [4.0]


def test_a_scale_is_part_of_the_change() -> None:
    merge = running(scale=0.5)
    merge.add({"w": torch.tensor([3.0])}, 1.0, None)
    assert merge.merged_delta()["w"].tolist() == [1.5]
