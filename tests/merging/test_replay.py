import json

import pytest
import torch

from gtr_turbo.errors import MergeError
from gtr_turbo.merging import TiesAccumulator
from gtr_turbo.merging.lora import TILE_ROWS, LoraFactors, lora_delta
from gtr_turbo.merging.replay import AdapterReplay, choose_lora_mode

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


@pytest.mark.parametrize("decay", [None, 0.5])
def test_replay_gives_what_running_sums_give(decay: float | None) -> None:
    replay, sums = AdapterReplay(0.7, decay), TiesAccumulator(None, 0.7, decay=decay)
    for seed in range(5):
        replay.add(adapter(seed))
        sums.add(dense(adapter(seed)))
        found, expected = replay.merged_delta(), sums.merged()
        for name in ("q", "v"):
            assert torch.equal(found[name], expected[name])


def test_a_restored_replay_merges_the_same() -> None:
    for density in (0.7, 0.0):
        replay = AdapterReplay(density)
        for seed in range(3):
            replay.add(adapter(seed))
        tensors, manifest = replay.state()
        again = AdapterReplay.from_state(tensors, json.loads(json.dumps(manifest)))
        for name, value in replay.merged_delta().items():
            assert torch.equal(value, again.merged_delta()[name])


def test_adapters_are_copied() -> None:
    own = adapter(0)
    replay = AdapterReplay(1.0)
    replay.add(own)
    expected = dense(own)["q"]
    own["q"].b.zero_()
    assert torch.equal(replay.merged_delta()["q"], expected)


def test_what_does_not_fit_is_refused() -> None:
    replay = AdapterReplay()
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
    with pytest.raises(MergeError, match=r"lie in \(0, 1\]"):
        AdapterReplay(decay=0)


def test_the_rule_that_chooses() -> None:
    # A 7B model at rank 128: sums of 65 GB against 1.29 GB per adapter.
    seven = {"num_entries": 6_530_000_000, "num_factor_values": 323_000_000}
    assert choose_lora_mode(**seven, num_checkpoints=50, device="cuda") == "replay"
    assert choose_lora_mode(**seven, num_checkpoints=51, device="cuda") == "accumulate"
    assert choose_lora_mode(**seven, num_checkpoints=2, device="cpu") == "accumulate"
