from pathlib import Path
from typing import Any, Literal

import pytest
import torch

from gtr_turbo.errors import MergeError
from gtr_turbo.merging import TiesAccumulator
from gtr_turbo.merging.lora import TILE_ROWS, AdapterChange, LoraFactors, lora_delta
from gtr_turbo.merging.replay import AdapterReplay, choose_lora_mode
from gtr_turbo.merging.settings import MergeSettings, TiesOptions

ROWS = TILE_ROWS + 9


def adapter(seed: int, rows: int = ROWS) -> dict[str, LoraFactors]:
    generator = torch.Generator().manual_seed(seed)
    return {
        name: LoraFactors(
            a=torch.randn(3, 11, generator=generator),
            b=torch.randn(rows, 3, generator=generator),
            scaling=2.0,
        )
        for name in ("q", "v")
    }


def dense(own: dict[str, LoraFactors]) -> dict[str, torch.Tensor]:
    return {name: lora_delta(f.a, f.b, f.scaling) for name, f in own.items()}


def settings_of(method: Literal["ties", "linear"] = "ties", **fields: Any) -> MergeSettings:
    own: dict[str, Any] = {"density": 0.7, "scale": 1.0, "decay": None, "window": None}
    own |= {"options": TiesOptions()} | fields
    return MergeSettings(method=method, **own)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"decay": 0.5},
        {"window": 3},
        {"scale": 0.5},
        {"density": 1.0},
        {"decay": 0.5, "options": TiesOptions(ema_init="corrected")},
    ],
)
def test_replay_gives_what_running_sums_give(fields: dict[str, Any]) -> None:
    settings = settings_of(**fields)
    replay = AdapterReplay(settings)
    sums = TiesAccumulator(
        None,
        settings.density,
        settings.window,
        settings.decay,
        settings.scale,
        options=settings.options,
    )
    for seed in range(5):
        replay.add(adapter(seed))
        sums.add(dense(adapter(seed)))
        found, expected = replay.merged_delta(), sums.merged_delta()
        for name in ("q", "v"):
            torch.testing.assert_close(found[name], expected[name], rtol=2e-6, atol=1e-7)
            if settings.window is None and settings.options.ema_init == "first":
                assert torch.equal(found[name], expected[name])
        assert replay.diagnostics() == pytest.approx(sums.diagnostics(), rel=1e-4)


def test_a_linear_replay_is_the_mean_of_the_changes() -> None:
    replay = AdapterReplay(settings_of("linear", density=0.1))
    for seed in range(3):
        replay.add(adapter(seed))
    expected = sum(dense(adapter(seed))["q"] for seed in range(3)) / 3
    torch.testing.assert_close(replay.merged_delta()["q"], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("fields", [{}, {"density": 0.0}, {"window": 2}, {"decay": 0.3}])
def test_a_loaded_replay_goes_on_bit_equally(tmp_path: Path, fields: dict[str, Any]) -> None:
    replay = AdapterReplay(settings_of(**fields))
    for seed in range(3):
        replay.add(adapter(seed))
    replay.save(tmp_path)
    again = AdapterReplay.load(tmp_path)
    for seed in range(3, 5):
        found = again.merged_delta()
        for name, value in replay.merged_delta().items():
            assert torch.equal(value, found[name])
        replay.add(adapter(seed))
        again.add(adapter(seed))


def test_adapters_are_copied() -> None:
    own = adapter(0)
    replay, change = AdapterReplay(settings_of(density=1.0)), AdapterChange(own)
    replay.add(own)
    expected = dense(own)["q"]
    own["q"].b.zero_()
    assert torch.equal(replay.merged_delta()["q"], expected)
    assert torch.equal(change["q"], expected)
    assert list(change) == ["q", "v"]
    assert len(change) == 2


def test_what_does_not_fit_is_refused() -> None:
    replay = AdapterReplay(settings_of())
    with pytest.raises(MergeError, match="at least one checkpoint"):
        replay.merged_delta()
    replay.add(adapter(0))
    with pytest.raises(MergeError, match='"q" has shape'):
        replay.add(adapter(1, rows=5))
    broken = adapter(2)
    broken["v"].a[0, 0] = torch.inf
    with pytest.raises(MergeError, match='"v" of checkpoint-1'):
        replay.add(broken)
    assert replay.weights() == (1.0,)
    for options in (TiesOptions(scope="global"), TiesOptions(denominator="total")):
        with pytest.raises(MergeError, match="neither a global threshold"):
            AdapterReplay(settings_of(options=options))


def test_the_rule_that_chooses() -> None:
    # A 7B model at rank 128: sums of 65 GB against 1.29 GB per adapter.
    seven = {"num_entries": 6_530_000_000, "num_factor_values": 323_000_000}
    assert choose_lora_mode(**seven, num_checkpoints=50, device="cuda") == "replay"
    assert choose_lora_mode(**seven, num_checkpoints=51, device="cuda") == "accumulate"
    assert choose_lora_mode(**seven, num_checkpoints=2, device="cpu") == "accumulate"
