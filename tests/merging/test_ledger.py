import json

import pytest

from gtr_turbo.errors import MergeError
from gtr_turbo.merging.ledger import Ledger


def filled(*weights: float) -> Ledger:
    ledger = Ledger()
    for weight in weights:
        ledger.enter(ledger.name_next(None), weight)
    return ledger


def test_the_first_weight_is_the_unit() -> None:
    ledger = filled(2.5, 2.5, 5.0)
    assert ledger.raw_weights == [1.0, 1.0, 2.0]
    assert ledger.scale == 2.5
    assert list(ledger.weights().values()) == [0.25, 0.25, 0.5]


def test_a_weight_of_zero_does_not_set_the_unit() -> None:
    ledger = filled(0.0, 4.0, 8.0)
    assert ledger.raw_weights == [0.0, 1.0, 2.0]


def test_a_decay_makes_later_checkpoints_heavier() -> None:
    ledger = filled(1.0)
    ledger.decay(0.5)
    ledger.enter("newest", 0.5)
    assert ledger.raw_weights == [1.0, 1.0]
    assert list(ledger.weights()) == ["checkpoint-0", "newest"]


def test_a_postponed_decay_is_carried_out_by_a_power_of_two() -> None:
    ledger = filled(1.0)
    assert ledger.rescale(2.0**-40) is None
    for _ in range(41):
        ledger.decay(0.5)
    assert ledger.rescale(2.0**-40) == 2.0**-41
    assert (ledger.raw_weights, ledger.scale) == ([2.0**-41], 1.0)
    ledger.decay(0.7)
    assert ledger.rescale(1.0) == 0.5
    assert ledger.scale == 1.4
    assert ledger.weights() == {"checkpoint-0": 1.0}


def test_a_small_unit_is_not_a_decay() -> None:
    ledger = filled(1e-30)
    ledger.decay(0.5)
    assert ledger.rescale(2.0**-40) is None


def test_finding_and_leaving() -> None:
    ledger = filled(1.0, 2.0, 1.0)
    assert ledger.find(1.0, None) == 2
    assert ledger.find(9.0, "checkpoint-1") == 1
    with pytest.raises(MergeError, match="no checkpoint of weight 9"):
        ledger.find(9.0, None)
    with pytest.raises(MergeError, match='named "x"'):
        ledger.find(1.0, "x")
    with pytest.raises(MergeError, match="already part"):
        ledger.name_next("checkpoint-1")
    for _ in range(3):
        ledger.leave(0)
    assert (ledger.num_inside, ledger.num_seen, ledger.scale) == (0, 3, 1.0)


def test_decaying_nothing_changes_nothing() -> None:
    ledger = Ledger()
    ledger.decay(0.5)
    assert ledger.scale == 1.0


def test_it_survives_json() -> None:
    ledger = filled(0.3, 0.1)
    ledger.decay(0.7)
    assert Ledger.from_json(json.loads(json.dumps(ledger.to_json()))) == ledger
