import dataclasses
from pathlib import Path
from typing import Any, Literal

import pytest
import torch

from gtr_turbo.errors import MergeError
from gtr_turbo.merging import TiesAccumulator
from gtr_turbo.merging.lora import (
    TILE_ROWS,
    AdapterChange,
    LoraFactors,
    imitate_factor_merge,
    lora_delta,
)
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


@pytest.mark.parametrize("method", ["ties", "linear"])
@pytest.mark.parametrize("fields", [{}, {"window": 2}, {"decay": 0.5}, {"scale": 0.5}])
def test_factors_are_merged_apart_when_asked(
    method: Literal["ties", "linear"], fields: dict[str, Any]
) -> None:
    replay = AdapterReplay(settings_of(method, **fields), in_factors=True)
    adapters = [adapter(seed) for seed in range(4)]
    for own in adapters:
        replay.add(own)
    last = adapters[-fields.get("window", 4) :]
    options = {"density": 0.7} if method == "ties" else {}
    joint = imitate_factor_merge(last, method=method, weights=replay.weights(), **options)
    for name, found in replay.merged_delta().items():
        expected = dense(joint)[name] * fields.get("scale", 1.0)
        assert torch.equal(found, expected)
        changes = [dense(own)[name] for own in last]
        shares = torch.tensor(replay.weights())[:, None, None]
        mean = (shares * torch.stack(changes)).sum(0)
        assert float((expected - mean).norm()) > 0.1 * float(mean.norm())
    assert replay.diagnostics()["num_checkpoints"] == len(last)


def test_one_adapter_in_factors_at_density_one_is_itself() -> None:
    replay = AdapterReplay(settings_of(density=1.0), in_factors=True)
    replay.add(adapter(0))
    for name, found in replay.merged_delta().items():
        assert torch.equal(found, dense(adapter(0))[name])
    figures = replay.diagnostics()
    assert (figures["norm_ratio"], figures["cosine_to_mean"]) == pytest.approx((1.0, 1.0))


def test_a_factor_replay_stays_one_on_disk(tmp_path: Path) -> None:
    replay = AdapterReplay(settings_of(), in_factors=True)
    for seed in range(3):
        replay.add(adapter(seed))
    expected = replay.merged_delta()
    replay.save(tmp_path)
    again = AdapterReplay.load(tmp_path).merged_delta()
    for name, value in expected.items():
        assert torch.equal(value, again[name])


def test_factors_of_other_rank_or_scaling_are_refused_before_they_enter() -> None:
    for change in ({"scaling": 1.0}, {"a": torch.ones(2, 11), "b": torch.ones(ROWS, 2)}):
        replay = AdapterReplay(settings_of(), in_factors=True)
        replay.add(adapter(0))
        other = adapter(1)
        other["v"] = dataclasses.replace(other["v"], **change)
        with pytest.raises(MergeError, match=r'"v" has rank \d and scaling .* in checkpoint-1'):
            replay.add(other)
        assert replay.weights() == (1.0,)


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
