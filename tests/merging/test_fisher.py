import pytest
import torch

from gtr_turbo.errors import MergeError
from gtr_turbo.merging import merge

BASE = {"w": torch.zeros(3)}
MODELS = [{"w": torch.tensor([1.0, 4.0, 6.0])}, {"w": torch.tensor([3.0, 8.0, 2.0])}]


def test_important_entries_count_more() -> None:
    fishers = [{"w": torch.tensor([3.0, 0.0, 0.0])}, {"w": torch.tensor([1.0, 2.0, 0.0])}]
    found = merge(BASE, MODELS, method="fisher", fishers=fishers)["w"]
    # (3·1 + 1·3) / 4, all weight on the second, and the plain mean where nothing is known.
    assert found.tolist() == [1.5, 8.0, 4.0]
    weighted = merge(BASE, MODELS, method="fisher", fishers=fishers, weights=[1, 3])["w"]
    assert weighted.tolist() == [2.0, 8.0, 3.0]


def test_equal_information_gives_the_mean() -> None:
    fishers = [{"w": torch.full((3,), 1e-12)}] * 2
    found = merge(BASE, MODELS, method="fisher", fishers=fishers)["w"]
    torch.testing.assert_close(found, merge(BASE, MODELS, method="linear")["w"])


def test_estimates_that_do_not_fit_are_refused() -> None:
    good = {"w": torch.ones(3)}
    for fishers, message in [
        ([good], "1 Fisher estimates were given for 2"),
        ([good, {}], "must have 3 entries, got none"),
        ([good, {"w": torch.ones(2)}], "got 2 entries"),
        ([good, {"w": -torch.ones(3)}], "negative or not finite"),
        ([good, {"w": torch.full((3,), torch.nan)}], "negative or not finite"),
    ]:
        with pytest.raises(MergeError, match=message):
            merge(BASE, MODELS, method="fisher", fishers=fishers)
    with pytest.raises(MergeError, match='needs the option "fishers"'):
        merge(BASE, MODELS, method="fisher")
