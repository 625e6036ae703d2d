import pytest
import torch

from gtr_turbo.errors import MergeError
from gtr_turbo.merging.problem import make_problem
from gtr_turbo.merging.sources import InMemory

BASE = InMemory({"w": torch.tensor([[1.0, 2.0]]), "ids": torch.arange(2)}, "the base")


def checkpoint(value: float, ids: int = 0) -> InMemory:
    tensors = {"w": torch.tensor([[value, value]]), "ids": torch.arange(2) + ids}
    return InMemory(tensors, f"checkpoint {value}")


def test_parts_are_read_one_by_one() -> None:
    problem = make_problem(BASE, [checkpoint(3.0), checkpoint(5.0)], weights=[1, 3], scale=0.5)
    (part,) = problem.parts()
    assert (part.name, part.num_entries) == ("w", 2)
    assert [(w, c.whole().tolist()) for w, c in part.changes()] == [(1, [2, 1]), (3, [4, 3])]
    assert [(w, c.whole().tolist()) for w, c in part.values()] == [(1, [3, 3]), (3, [5, 5])]
    name, value = part.finish(torch.tensor([2.0, 4.0]))
    assert (name, value.tolist()) == ("w", [[2.0, 4.0]])
    assert part.finish_mean(torch.tensor([8.0, 8.0]).double(), 2.0)[1].tolist() == [[2.5, 3.0]]
    assert part.sole() is None


def test_the_only_checkpoint_that_counts_is_known() -> None:
    problem = make_problem(None, [checkpoint(3.0), checkpoint(5.0)], weights=[0, 2])
    (part,) = problem.parts()
    assert part.sole() == 1
    assert part.finish_with(1)[1].tolist() == [[5.0, 5.0]]
    assert part.finish(torch.tensor([2.0, 4.0]))[1].tolist() == [[2.0, 4.0]]


def test_subsets_keep_their_weights() -> None:
    problem = make_problem(BASE, [checkpoint(1.0), checkpoint(2.0)], weights=[1, 3])
    assert problem.subset([1]).weights == (3.0,)
    assert problem.reweighted((0.5, 0.5)).weights == (0.5, 0.5)
    assert problem.has_own_weights


def test_results_are_completed_with_what_is_not_merged() -> None:
    problem = make_problem(BASE, [checkpoint(1.0)])
    found = dict(problem.complete(iter([("w", torch.zeros(1, 2))])))
    assert found["ids"].tolist() == [0, 1]
    found["ids"] += 1
    assert BASE.read("ids").tolist() == [0, 1]


def test_what_cannot_be_merged_is_refused() -> None:
    with pytest.raises(MergeError, match="there is no checkpoint to merge"):
        make_problem(BASE, [])
    with pytest.raises(MergeError, match=r'"ids" .* differs between the base and checkpoint 1\.0'):
        make_problem(BASE, [checkpoint(1.0, ids=1)])
    with pytest.raises(MergeError, match="must be finite"):
        make_problem(BASE, [checkpoint(1.0)], scale=float("nan"))
