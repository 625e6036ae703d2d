"""The history of checkpoints: when it merges, what is in the teacher, and what a resume finds."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from gtr_turbo.core.config import MergeConfig, parse_config
from gtr_turbo.errors import CheckpointError
from gtr_turbo.history import CheckpointHistory, make_history
from gtr_turbo.merging import fingerprint
from gtr_turbo.merging.io import write_tensors
from gtr_turbo.merging.lora import AdapterChange, LoraFactors
from gtr_turbo.policies.offset import ShiftedChange


def change(update: int) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(update)
    return {
        "a.weight": torch.randn(4, 3, generator=generator),
        "b.bias": torch.randn(5, generator=generator),
    }


def merges(num_updates: int, **fields: Any) -> list[int]:
    """Return the updates at whose start a merge is due, as the loop asks for it."""
    history = CheckpointHistory(MergeConfig(**fields), 10)
    found: list[int] = []
    for update in range(1, num_updates + 1):
        if history.is_due():
            history.merge()
            found.append(update)
        history.add(update, change(update))
    return found


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, [2, 3, 4, 5, 6, 7]),
        ({"interval": 2}, [2, 4, 6]),
        ({"interval": 5}, [2, 7]),
        ({"freeze_after": 1}, [2]),
        ({"freeze_after": 3}, [2, 3, 4]),
        ({"interval": 2, "freeze_after": 2}, [2, 4]),
    ],
)
def test_when_a_merge_is_due(fields: dict[str, Any], expected: list[int]) -> None:
    assert merges(7, **fields) == expected


def test_an_empty_history_has_no_teacher() -> None:
    history = CheckpointHistory(MergeConfig(), 10)
    assert history.teacher is None
    assert not history.is_due()
    assert history.updates == history.merged_updates == ()
    assert history.diagnostics() == {}


def test_the_mean_of_two_checkpoints() -> None:
    history = CheckpointHistory(MergeConfig(method="linear"), 10)
    history.add(1, {"w": torch.tensor([1.0, 2.0])})
    history.add(2, {"w": torch.tensor([3.0, -4.0])})
    assert history.merge()["w"].tolist() == [2.0, -1.0]


def test_signs_are_elected_and_only_agreeing_changes_are_averaged() -> None:
    """Column by column, untrimmed: (1, 2 → 1.5), (3, −1 → +: 3), (−2, 1 → −: −2)."""
    history = CheckpointHistory(MergeConfig(density=1.0), 10)
    history.add(1, {"w": torch.tensor([1.0, 3.0, -2.0])})
    history.add(2, {"w": torch.tensor([2.0, -1.0, 1.0])})
    assert history.merge()["w"].tolist() == [1.5, 3.0, -2.0]


def test_asking_for_the_next_teacher_changes_nothing_of_this_one() -> None:
    history = CheckpointHistory(MergeConfig(interval=2), 10)
    history.add(1, change(1))
    first = history.merge()
    seen = history.diagnostics()
    history.add(2, change(2))
    history.add(3, change(3))
    assert fingerprint(history.next_teacher()) != fingerprint(first)
    assert history.teacher is not None
    assert fingerprint(history.teacher) == fingerprint(first)
    assert history.merged_updates == (1,)
    assert history.diagnostics() == seen
    assert seen["norm_ratio"] == pytest.approx(1.0)


def test_the_next_teacher_of_a_frozen_history_is_the_frozen_one() -> None:
    history = CheckpointHistory(MergeConfig(freeze_after=1), 10)
    history.add(1, change(1))
    first = history.merge()
    history.add(2, change(2))
    assert fingerprint(history.next_teacher()) == fingerprint(first)


@pytest.mark.parametrize(
    "fields",
    [{}, {"interval": 2}, {"weights": "ema"}, {"method": "linear", "scale": 0.5}, {"window": 2}],
)
def test_a_loaded_history_goes_on_bit_equally(tmp_path: Path, fields: dict[str, Any]) -> None:
    history = CheckpointHistory(MergeConfig(**fields), 10)
    history.add(1, change(1))
    history.merge()
    history.add(2, change(2))
    history.save(tmp_path)
    other = CheckpointHistory(MergeConfig(**fields), 10)
    other.load(tmp_path)
    assert other.diagnostics() == history.diagnostics()
    assert (other.updates, other.merged_updates) == ((1, 2), (1,))
    for update in (3, 4):
        assert history.is_due() == other.is_due()
        assert fingerprint(history.next_teacher()) == fingerprint(other.next_teacher())
        history.add(update, change(update))
        other.add(update, change(update))
    assert fingerprint(history.merge()) == fingerprint(other.merge())


def adapters(update: int) -> AdapterChange:
    generator = torch.Generator().manual_seed(update)
    return AdapterChange({
        f"{name}.weight": LoraFactors(
            a=torch.randn(2, 5, generator=generator),
            b=torch.randn(4, 2, generator=generator),
            scaling=2.0,
        )
        for name in ("q", "k", "v")
    })  # fmt: skip


@pytest.mark.parametrize("fields", [{}, {"weights": "ema"}, {"window": 2}, {"method": "linear"}])
def test_replayed_adapters_make_the_teacher_that_sums_make(
    tmp_path: Path, fields: dict[str, Any]
) -> None:
    """The mode is chosen once and stays with the run."""
    modes = ("replay", "accumulate", "auto")
    histories = [CheckpointHistory(MergeConfig(lora_mode=m, **fields), 9) for m in modes]
    for update in range(1, 5):
        for history in histories:
            history.add(update, adapters(update))
    assert [history.lora_mode for history in histories] == ["replay", "accumulate", "accumulate"]
    replayed, summed, _ = [history.merge() for history in histories]
    for name, value in replayed.items():
        torch.testing.assert_close(value, summed[name], rtol=1e-5, atol=1e-6)
    histories[0].save(tmp_path)
    again = CheckpointHistory(MergeConfig(lora_mode="replay", **fields), 9)
    again.load(tmp_path)
    assert again.lora_mode == "replay"
    for history in (again, histories[0]):
        history.add(5, adapters(5))
    assert fingerprint(again.merge()) == fingerprint(histories[0].merge())


def test_a_window_forgets() -> None:
    history = CheckpointHistory(MergeConfig(method="linear", window=2), 10)
    for update, value in enumerate((100.0, 1.0, 3.0), start=1):
        history.add(update, {"w": torch.tensor([value])})
    assert history.merge()["w"].tolist() == [2.0]
    assert history.diagnostics()["num_checkpoints"] == 2.0


def test_another_teacher_than_the_recorded_one_is_refused(tmp_path: Path) -> None:
    history = CheckpointHistory(MergeConfig(), 10)
    history.add(1, change(1))
    history.merge()
    history.save(tmp_path)
    write_tensors(tmp_path / "teacher.safetensors", change(9))
    with pytest.raises(CheckpointError, match=r"teacher\.safetensors has fingerprint") as refusal:
        CheckpointHistory(MergeConfig(), 10).load(tmp_path)
    assert json.loads((tmp_path / "history.json").read_text())["teacher"][:12] in str(refusal.value)


def test_a_merge_must_differ_where_a_step_was_taken_since_the_last_one(tmp_path: Path) -> None:
    history = CheckpointHistory(MergeConfig(lag=1), 10)
    seen: list[bool] = []
    for update, is_stepped in enumerate([True, False, False, True, False], start=1):
        history.add(update, change(update if is_stepped else 1), is_stepped=is_stepped)
        if history.is_due():
            history.merge()
            seen.append(history.must_differ)
    assert seen == [True, False, False, True]
    history.save(tmp_path)
    other = CheckpointHistory(MergeConfig(lag=1), 10)
    other.load(tmp_path)
    assert other.must_differ
    other.add(6, change(1))
    assert not other.must_differ, "update 5, which took no step, came out of the waiting"


def test_a_step_counts_until_the_next_merge() -> None:
    history = CheckpointHistory(MergeConfig(interval=2), 10)
    for update, is_stepped in ((1, False), (2, True), (3, False)):
        history.add(update, change(update), is_stepped=is_stepped)
        if history.is_due():
            history.merge()
    assert history.merged_updates == (1, 2, 3)
    assert history.must_differ


def test_what_waits_can_be_forgotten_and_what_is_merged_stays() -> None:
    history = CheckpointHistory(MergeConfig(lag=2), 10)
    for update in range(1, 5):
        history.add(update, change(update))
    assert history.updates == (1, 2)
    history.drop_waiting()
    history.add(5, change(5))
    history.add(6, change(6))
    assert history.updates == (1, 2)
    history.add(7, change(7))
    assert history.updates == (1, 2, 5)


def test_adapters_with_an_offset_are_summed_like_any_change() -> None:
    config = parse_config({"guard": {"action": "reset_to_teacher"}, "merge": {"density": 1.0}})
    history = make_history(config)
    assert history is not None
    assert history._config.lora_mode == "accumulate"
    own, offset = adapters(1), {name: torch.ones(t.shape) for name, t in adapters(1).items()}
    history.add(1, own)
    history.add(2, ShiftedChange(offset, adapters(1)))
    merged = history.merge()
    dense = CheckpointHistory(MergeConfig(density=1.0), 10)
    dense.add(1, dict(own))
    dense.add(2, {name: own[name] + 1.0 for name in own})
    expected = dense.merge()
    assert all(torch.equal(merged[name], expected[name]) for name in expected)


def test_nobody_needs_a_history_without_a_merged_teacher() -> None:
    assert make_history(parse_config({"guidance": {"kind": "none"}})) is None
    guarded = {"guidance": {"kind": "none"}, "guard": {"action": "reset_to_teacher"}}
    assert make_history(parse_config(guarded)) is not None
