import pytest
import torch

from gtr_turbo.errors import MergeError
from gtr_turbo.merging import merge
from gtr_turbo.merging.dare import drop_seed, kept_at_random

GENERATOR = torch.Generator().manual_seed(0)
CHANGES = [{"w": torch.randn(2000, generator=GENERATOR)} for _ in range(3)]
ZERO = {"w": torch.zeros(2000)}


def test_the_same_seed_drops_the_same_entries() -> None:
    one = merge(ZERO, CHANGES, method="dare_ties", density=0.5, seed=3)["w"]
    assert torch.equal(one, merge(ZERO, CHANGES, method="dare_ties", density=0.5, seed=3)["w"])
    assert not torch.equal(one, merge(ZERO, CHANGES, method="dare_ties", density=0.5, seed=4)["w"])


def test_seeds_differ_by_checkpoint_and_tensor() -> None:
    seeds = {drop_seed(0, 0, "a"), drop_seed(0, 1, "a"), drop_seed(0, 0, "b"), drop_seed(1, 0, "a")}
    assert len(seeds) == 4


def test_the_share_that_stays_is_the_density() -> None:
    kept = kept_at_random(100_000, 0.3, 5)
    assert float(kept.float().mean()) == pytest.approx(0.3, abs=0.01)


def test_kept_entries_are_divided_by_the_density() -> None:
    (only,) = CHANGES[:1]
    found = merge(ZERO, [only], method="dare_linear", density=0.25, seeds=[9])["w"]
    is_kept = found != 0.0
    torch.testing.assert_close(found[is_kept], only["w"][is_kept] * 4.0)
    assert float(is_kept.float().mean()) == pytest.approx(0.25, abs=0.05)


def test_density_one_drops_nothing() -> None:
    found = merge(ZERO, CHANGES, method="dare_linear", density=1.0)["w"]
    expected = merge(ZERO, CHANGES, method="task_arithmetic")["w"]
    assert torch.equal(found, expected)
    ties = merge(ZERO, CHANGES, method="dare_ties", density=1.0, normalize=True)["w"]
    torch.testing.assert_close(ties, merge(ZERO, CHANGES, method="ties", density=1.0)["w"])


def test_masks_by_hand() -> None:
    changes = [
        {"w": torch.tensor([1.0, 2.0, 3.0, 4.0])},
        {"w": torch.tensor([2.0, 2.0, -2.0, 1.0])},
    ]
    masks = [{"w": torch.tensor([1, 1, 1, 0])}, {"w": torch.tensor([1, 0, 1, 0])}]
    base = {"w": torch.zeros(4)}
    found = merge(base, changes, method="dare_ties", density=0.5, masks=masks)["w"]
    # Doubled: (2, 4, 6, –) and (4, –, −4, –); + wins everywhere.
    assert found.tolist() == [6.0, 4.0, 6.0, 0.0]
    normal = merge(base, changes, method="dare_ties", density=0.5, masks=masks, normalize=True)
    assert normal["w"].tolist() == [3.0, 4.0, 6.0, 0.0]


def test_what_cannot_be_dropped_is_refused() -> None:
    with pytest.raises(MergeError, match=r"must lie in \(0, 1\], got 0"):
        merge(ZERO, CHANGES, method="dare_linear", density=0.0)
    with pytest.raises(MergeError, match="2 seeds were given for 3"):
        merge(ZERO, CHANGES, method="dare_linear", seeds=[1, 2])
    with pytest.raises(MergeError, match="1 masks were given for 3"):
        merge(ZERO, CHANGES, method="dare_ties", masks=[{}])
    with pytest.raises(MergeError, match='mask of tensor "w" of checkpoint-0 must have 2000'):
        merge(ZERO, CHANGES, method="dare_ties", masks=[{}, {}, {}])
