"""Controls that look like the merged change: what they keep of it, and what they destroy."""

from collections.abc import Callable

import pytest
import torch

from gtr_turbo.teachers.views import View, noise, shuffled_signs, unchanged, view_of

CHANGE = {
    "w": torch.randn(40, 30, generator=torch.Generator().manual_seed(0)),
    "b": torch.tensor([0.0, 1.0, -2.0, 0.0, 3.0]),
}


def test_shuffled_signs_keep_every_magnitude_in_its_place() -> None:
    found = shuffled_signs(3)(CHANGE, 0)
    for name, tensor in CHANGE.items():
        assert torch.equal(found[name].abs(), tensor.abs())
    assert int((found["w"] > 0).sum()) == int((CHANGE["w"] > 0).sum())
    agreement = float((found["w"].sign() == CHANGE["w"].sign()).float().mean())
    assert 0.42 < agreement < 0.58


def test_zeros_turn_no_sign_into_a_plus() -> None:
    """TIES leaves a fifth of a change at 0: their signs must not be dealt out as plus."""
    sparse = CHANGE["w"].clone()
    sparse[:, ::3] = 0.0
    found = shuffled_signs(3)({"w": sparse}, 0)["w"]
    assert torch.equal(found.abs(), sparse.abs())
    assert int((found > 0).sum()) == int((sparse > 0).sum())
    assert int((found < 0).sum()) == int((sparse < 0).sum())


def test_noise_is_as_large_as_the_change_and_nothing_else() -> None:
    found = noise(3)(CHANGE, 0)
    for name, tensor in CHANGE.items():
        assert found[name].shape == tensor.shape
        assert float(found[name].norm()) == pytest.approx(float(tensor.norm()), rel=1e-5)
    cosine = torch.nn.functional.cosine_similarity(
        found["w"].flatten(), CHANGE["w"].flatten(), dim=0
    )
    assert abs(float(cosine)) < 0.1


def test_no_change_stays_no_change() -> None:
    zero = {"w": torch.zeros(3, 2)}
    assert not noise(0)(zero, 0)["w"].any()
    assert not shuffled_signs(0)(zero, 0)["w"].any()


@pytest.mark.parametrize("view", [shuffled_signs, noise])
def test_a_control_depends_on_the_seed_and_the_number_of_the_merge_alone(
    view: Callable[[int], View],
) -> None:
    first = view(1)(CHANGE, 4)["w"]
    assert torch.equal(first, view(1)(CHANGE, 4)["w"])
    assert not torch.equal(first, view(1)(CHANGE, 5)["w"])
    assert not torch.equal(first, view(2)(CHANGE, 4)["w"])


def test_the_configuration_names_the_view() -> None:
    assert view_of("merged", 0) is view_of("previous", 0) is unchanged
    for name, tensor in unchanged(CHANGE, 7).items():
        assert tensor is CHANGE[name]
    assert torch.equal(view_of("random", 2)(CHANGE, 1)["w"], noise(2)(CHANGE, 1)["w"])
    assert torch.equal(view_of("shuffled", 2)(CHANGE, 1)["b"], shuffled_signs(2)(CHANGE, 1)["b"])
