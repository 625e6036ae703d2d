import numpy as np
import pytest

from gtr_turbo.envs.gymnasium_task.digests import observation_hash

VALUES = [
    0, 1, True, 1.0, None, "", "a", [], [[]], ["a", "b"], ["ab"], {}, {"a": 1}, {"b": 1},
    np.zeros(2), np.zeros((2, 1)), np.zeros(2, np.int64), np.ones(2), [np.zeros(2)],
]  # fmt: skip


def test_different_values_have_different_hashes() -> None:
    hashes = [observation_hash(value) for value in VALUES]
    assert len(set(hashes)) == len(VALUES)


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_equal_values_have_equal_hashes(value: object) -> None:
    assert observation_hash(value) == observation_hash(value)


def test_order_counts_in_lists_alone() -> None:
    assert observation_hash({"a": 1, "b": 2}) == observation_hash({"b": 2, "a": 1})
    assert observation_hash([1, 2]) != observation_hash([2, 1])


def test_of_other_things_only_the_type_counts() -> None:
    assert observation_hash(object()) == observation_hash(object())
