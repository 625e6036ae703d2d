import json
from pathlib import Path

import pytest
import torch
from torch import Tensor

from gtr_turbo.errors import CheckpointError, MergeError
from gtr_turbo.merging import (
    AbstractAccumulator,
    LinearAccumulator,
    TiesAccumulator,
    TiesOptions,
    ema_weights,
    fingerprint,
    load_accumulator,
    make_accumulator,
    restore_accumulator,
)
from gtr_turbo.merging.ties import ties_delta, trim_threshold

SHAPES = {"layer.weight": (7, 11), "layer.bias": (7,), "gain": ()}


def walk(num: int, seed: int = 0, step: float = 1e-3) -> list[dict[str, Tensor]]:
    """Return the first `num` changes of a random walk with drift."""
    generator = torch.Generator().manual_seed(seed)
    at = {name: torch.zeros(shape) for name, shape in SHAPES.items()}
    drift = {name: torch.randn(shape, generator=generator) for name, shape in SHAPES.items()}
    found = []
    for _ in range(num):
        at = {
            name: value + step * (drift[name] + torch.randn(value.shape, generator=generator))
            for name, value in at.items()
        }
        found.append(at)
    return found


def batch_ties(
    deltas: list[dict[str, Tensor]], weights: list[float], density: float
) -> dict[str, Tensor]:
    result = {}
    for name in SHAPES:
        own = [delta[name] for delta in deltas]
        thresholds = [trim_threshold(delta, density) for delta in own]
        result[name] = ties_delta(own, weights, thresholds)
    return result


def same(left: dict[str, Tensor], right: dict[str, Tensor]) -> bool:
    return list(left) == list(right) and all(torch.equal(left[name], right[name]) for name in left)


def close(left: dict[str, Tensor], right: dict[str, Tensor]) -> bool:
    return left.keys() == right.keys() and all(
        torch.allclose(left[name], right[name], rtol=1e-5, atol=1e-9) for name in left
    )


def test_equal_weights_match_the_batch_rule_bit_for_bit_after_every_step() -> None:
    deltas = walk(20)
    accumulator = TiesAccumulator(None, density=0.8)
    for index, delta in enumerate(deltas):
        accumulator.add(delta)
        assert same(accumulator.merged(), batch_ties(deltas[: index + 1], [1.0] * (index + 1), 0.8))


@pytest.mark.parametrize("alpha", [0.1, 0.5, 0.9])
def test_an_exponential_average_is_ties_with_closed_form_weights(alpha: float) -> None:
    deltas = walk(15)
    accumulator = TiesAccumulator(None, density=0.6, decay=alpha)
    for index, delta in enumerate(deltas):
        accumulator.add(delta)
        expected = batch_ties(deltas[: index + 1], list(ema_weights(index + 1, alpha)), 0.6)
        assert close(accumulator.merged(), expected)


@pytest.mark.parametrize("start", ["first", "corrected"])
def test_the_shares_are_the_closed_form_ones(start: str) -> None:
    accumulator = make_accumulator(
        "linear",
        ema_alpha=0.3,
        options=TiesOptions(ema_init=start),
    )
    for delta in walk(5):
        accumulator.add(delta)
    expected = ema_weights(5, 0.3, start)
    assert list(accumulator.weights().values()) == pytest.approx(expected)


def test_the_linear_mean_follows_the_recursion() -> None:
    accumulator = make_accumulator("linear", ema_alpha=0.25)
    mean = torch.zeros(())
    for index, delta in enumerate(walk(30)):
        accumulator.add(delta)
        mean = delta["gain"] if index == 0 else 0.25 * delta["gain"] + 0.75 * mean
    assert float(accumulator.merged()["gain"]) == pytest.approx(float(mean), rel=1e-5)


def test_a_postponed_decay_is_carried_out_long_before_it_underflows() -> None:
    accumulator = TiesAccumulator(None, density=0.8, decay=0.5)
    for delta in walk(400):
        accumulator.add(delta)
    expected = batch_ties(walk(400)[-40:], list(ema_weights(40, 0.5)), 0.8)
    assert close(accumulator.merged(), expected)


def test_an_entry_kept_only_long_ago_is_dropped() -> None:
    accumulator = TiesAccumulator(None, density=0.5, decay=0.5)
    accumulator.add({"w": torch.tensor([1.0, 0.1])})
    for age in range(1, 40):
        accumulator.add({"w": torch.tensor([0.1, 1.0])})
        # 2^-19 of the weight is above the limit of 1e-6, 2^-20 below.
        assert float(accumulator.merged()["w"][0]) == (1.0 if age <= 19 else 0.0)


def test_a_window_is_a_rebuild_from_its_checkpoints() -> None:
    deltas = walk(30)
    accumulator = TiesAccumulator(None, density=0.8, window=4)
    for index, delta in enumerate(deltas):
        accumulator.add(delta)
        last = deltas[max(0, index - 3) : index + 1]
        assert close(accumulator.merged(), batch_ties(last, [1.0] * len(last), 0.8))
    assert list(accumulator.weights()) == [f"checkpoint-{i}" for i in range(26, 30)]


def test_what_leaves_a_window_leaves_no_trace() -> None:
    accumulator = TiesAccumulator(None, density=0.5, window=1)
    accumulator.add({"w": torch.tensor([1e6, 1.0])})
    accumulator.add({"w": torch.tensor([1e-3, 1.0])})
    assert accumulator.merged()["w"].tolist() == [0.0, 1.0]


def test_added_then_removed_is_never_added() -> None:
    first, second, third = walk(3)
    accumulator = TiesAccumulator(None)
    accumulator.add(first)
    accumulator.add(second, name="second")
    accumulator.add(third)
    accumulator.remove(second, name="second")
    assert close(accumulator.merged(), batch_ties([first, third], [1.0, 1.0], 0.8))


def test_removing_the_only_checkpoint_empties_the_merge() -> None:
    (only,) = walk(1)
    accumulator = LinearAccumulator(None)
    accumulator.add(only)
    accumulator.remove(only)
    with pytest.raises(MergeError, match="nothing to merge"):
        accumulator.merged()


def test_removing_what_was_never_added_is_refused() -> None:
    first, second = walk(2)
    accumulator = TiesAccumulator(None)
    accumulator.add(first)
    accumulator.add(first)
    before = accumulator.merged()
    with pytest.raises(MergeError, match="not part of this merge"):
        accumulator.remove({name: -value for name, value in second.items()})
    assert same(accumulator.merged(), before)
    with pytest.raises(MergeError, match="no checkpoint of weight 3"):
        accumulator.remove(first, weight=3.0)
    with pytest.raises(MergeError, match='no checkpoint named "update-9"'):
        accumulator.remove(first, name="update-9")


def test_one_checkpoint_at_density_one_comes_back_exactly() -> None:
    base = {"w": torch.tensor([1.0, 1e8, -0.0, 3.0])}
    checkpoint = {"w": torch.tensor([1e-9, 0.1, -0.0, -7e-12])}
    for method in ("ties", "linear"):
        accumulator = make_accumulator(method, base=base, density=1.0)
        accumulator.add(checkpoint, weight=0.3)
        assert same(accumulator.merged(), checkpoint)
        tensors, manifest = accumulator.state()
        assert same(restore_accumulator(tensors, manifest, base).merged(), checkpoint)


def test_unchanged_entries_keep_the_bits_of_the_base() -> None:
    base = {"w": torch.tensor([-0.0, 0.0, 1e-45, 5.0])}
    accumulator = TiesAccumulator(base)
    accumulator.add(base)
    accumulator.add(base)
    assert fingerprint(accumulator.merged()) == fingerprint(base)


def test_the_base_is_copied_and_not_followed() -> None:
    base = {"w": torch.zeros(2)}
    accumulator = TiesAccumulator(base, density=1.0)
    base["w"] += 100.0
    accumulator.add({"w": torch.ones(2)})
    accumulator.add({"w": torch.ones(2)})
    assert accumulator.merged()["w"].tolist() == [1.0, 1.0]


def test_results_are_rounded_once_to_the_type_of_the_base() -> None:
    base = {"w": torch.ones(2, dtype=torch.bfloat16)}
    accumulator = TiesAccumulator(base, density=1.0)
    for values in ([1.0078125, 1.0078125], [1.0078125, 1.015625], [1.015625, 1.0]):
        accumulator.add({"w": torch.tensor(values, dtype=torch.bfloat16)})
    merged = accumulator.merged()["w"]
    assert merged.dtype == torch.bfloat16
    assert merged.tolist() == [1.0078125, 1.015625]


def test_a_refused_checkpoint_leaves_no_trace() -> None:
    good, bad = walk(2)
    bad["gain"] = torch.tensor(float("nan"))
    accumulator = TiesAccumulator(None, decay=0.5)
    with pytest.raises(MergeError, match=r'"gain" of checkpoint-0 has 1 NaN'):
        accumulator.add(bad)
    accumulator.add(good)
    with pytest.raises(MergeError, match=r'"gain" of checkpoint "bad" has 1 NaN'):
        accumulator.add(bad, name="bad")
    with pytest.raises(MergeError, match="must be finite and at least 0, got -1"):
        accumulator.add(good, weight=-1.0)
    with pytest.raises(MergeError, match="already part"):
        accumulator.add(good, name="checkpoint-0")
    assert list(accumulator.weights()) == ["checkpoint-0"]
    assert same(accumulator.merged(), batch_ties([good], [1.0], 0.8))


def test_a_weight_of_zero_counts_for_nothing() -> None:
    first, second = walk(2)
    accumulator = TiesAccumulator(None)
    accumulator.add(first, weight=0.0)
    with pytest.raises(MergeError, match="total weight 0"):
        accumulator.merged()
    accumulator.add(second, weight=2.0)
    assert same(accumulator.merged(), batch_ties([second], [1.0], 0.8))


def test_a_decay_of_zero_forgets_everything() -> None:
    first, second = walk(2)
    accumulator = LinearAccumulator(None)
    accumulator.add(first)
    accumulator.decay(0.0)
    accumulator.add(second)
    assert same(accumulator.merged(), second)
    assert list(accumulator.weights()) == ["checkpoint-1"]
    with pytest.raises(MergeError, match=r"lie in \[0, 1\], got 1.5"):
        accumulator.decay(1.5)
    with pytest.raises(MergeError, match=r"lie in \[0, 1\], got -1"):
        TiesAccumulator(None).decay(-1.0)


def test_a_hand_made_decay_halves_the_past() -> None:
    accumulator = TiesAccumulator(None, density=1.0)
    accumulator.add({"w": torch.tensor([4.0])})
    accumulator.decay(0.5)
    accumulator.add({"w": torch.tensor([1.0])})
    assert accumulator.merged()["w"].tolist() == [2.0]
    assert list(accumulator.weights().values()) == pytest.approx([1 / 3, 2 / 3])


VARIANTS = {
    "ties": lambda base: TiesAccumulator(base),
    "ties ema": lambda base: TiesAccumulator(base, decay=0.3),
    "ties window": lambda base: TiesAccumulator(base, window=3),
    "ties global total": lambda base: TiesAccumulator(
        base, scale=0.5, options=TiesOptions(scope="global", denominator="total")
    ),
    "ties int32": lambda base: TiesAccumulator(base, options=TiesOptions(sum_format="int32")),
    "linear": lambda base: LinearAccumulator(base),
    "linear ema": lambda base: LinearAccumulator(base, decay=0.3),
    "linear window": lambda base: LinearAccumulator(base, window=3),
}


@pytest.mark.parametrize("kind", VARIANTS)
@pytest.mark.parametrize("with_base", [False, True])
@pytest.mark.parametrize("stop", [0, 1, 2, 7])
def test_a_restored_accumulator_has_the_same_future(
    kind: str, with_base: bool, stop: int, tmp_path: Path
) -> None:
    base = {name: torch.ones(shape) for name, shape in SHAPES.items()} if with_base else None
    deltas = walk(10)
    whole: AbstractAccumulator = VARIANTS[kind](base)
    for delta in deltas[:stop]:
        whole.add(delta)
    whole.save(tmp_path)
    tensors, manifest = whole.state()
    copied = restore_accumulator(tensors, json.loads(json.dumps(manifest)), base)
    loaded = load_accumulator(tmp_path, base)
    for delta in deltas[stop:]:
        for accumulator in (whole, copied, loaded):
            accumulator.add(delta)
        assert same(copied.merged(), whole.merged())
        assert same(loaded.merged(), whole.merged())
    assert type(loaded) is type(whole)
    assert fingerprint(loaded.state()[0]) == fingerprint(whole.state()[0])
    assert loaded.state()[1] == whole.state()[1]
    assert loaded.diagnostics() == whole.diagnostics()


def test_saving_again_replaces_the_state(tmp_path: Path) -> None:
    first, second = walk(2)
    accumulator = TiesAccumulator(None)
    accumulator.add(first)
    accumulator.save(tmp_path)
    accumulator.add(second)
    accumulator.save(tmp_path)
    assert len(list(tmp_path.iterdir())) == 2
    assert same(TiesAccumulator.load(tmp_path).merged(), accumulator.merged())


def test_a_kill_between_sums_and_manifest_leaves_the_old_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = walk(2)
    accumulator = TiesAccumulator(None)
    accumulator.add(first)
    accumulator.save(tmp_path)
    before = accumulator.merged()
    accumulator.add(second)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("gtr_turbo.merging.io.write_json", killed)
        with pytest.raises(KeyboardInterrupt):
            accumulator.save(tmp_path)
    assert same(TiesAccumulator.load(tmp_path).merged(), before)
    accumulator.save(tmp_path)
    assert same(TiesAccumulator.load(tmp_path).merged(), accumulator.merged())


def test_a_state_of_another_kind_or_base_is_refused(tmp_path: Path) -> None:
    base = {"w": torch.zeros(2)}
    accumulator = TiesAccumulator(base)
    accumulator.add({"w": torch.ones(2)})
    accumulator.save(tmp_path)
    with pytest.raises(MergeError, match='that of a "ties" merge, not "linear"'):
        LinearAccumulator.load(tmp_path, base)
    with pytest.raises(MergeError, match="relative to base"):
        TiesAccumulator.load(tmp_path, {"w": torch.ones(2)})
    with pytest.raises(MergeError, match="relative to base"):
        TiesAccumulator.load(tmp_path)
    tensors, manifest = accumulator.state()
    manifest["settings"]["rule_version"] = 0
    with pytest.raises(MergeError, match="rule version 0"):
        TiesAccumulator.from_state(tensors, manifest, base)


def test_damage_on_disk_is_found(tmp_path: Path) -> None:
    accumulator = LinearAccumulator(None)
    accumulator.add({"w": torch.ones(2)})
    accumulator.save(tmp_path)
    (sums,) = tmp_path.glob("*.safetensors")
    sums.write_bytes(sums.read_bytes()[:-1] + b"!")
    with pytest.raises(CheckpointError, match="its manifest says"):
        LinearAccumulator.load(tmp_path)
    sums.unlink()
    with pytest.raises(CheckpointError, match="not there"):
        LinearAccumulator.load(tmp_path)
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(CheckpointError, match="not JSON"):
        LinearAccumulator.load(tmp_path)
    with pytest.raises(CheckpointError, match="no merge state"):
        LinearAccumulator.load(tmp_path / "nowhere")


def test_a_restored_accumulator_owns_its_sums() -> None:
    first, second = walk(2)
    accumulator = TiesAccumulator(None)
    accumulator.add(first)
    restored = TiesAccumulator.from_state(*accumulator.state())
    accumulator.add(second)
    assert same(restored.merged(), batch_ties([first], [1.0], 0.8))
