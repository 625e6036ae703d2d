import pytest

from gtr_turbo.ops.means import TurnMeans


def test_batches_count_by_their_turns() -> None:
    means = TurnMeans()
    means.add(3, loss=1.0, entropy=0.5)
    means.add(1, loss=5.0, entropy=0.1)
    assert means.means() == pytest.approx({"loss": 2.0, "entropy": 0.4})


def test_a_name_that_some_batches_lack_is_averaged_over_the_others() -> None:
    means = TurnMeans()
    means.add(2, loss=1.0)
    means.add(2, loss=3.0, imitation=7.0)
    assert means.means() == {"loss": 2.0, "imitation": 7.0}


def test_no_batch_has_no_means() -> None:
    assert TurnMeans().means() == {}
