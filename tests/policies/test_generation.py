"""Sampling by itself, from a made-up distribution."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from gtr_turbo.core.turns import PictureInputs, Prompt, SamplingSettings
from gtr_turbo.errors import NonFiniteError
from gtr_turbo.policies.generation import sample

STOP = 3
PROBABILITIES = torch.tensor([0.1, 0.2, 0.4, 0.3])


def prompts(count: int) -> list[Prompt]:
    picture = PictureInputs(patches=np.zeros((1, 2), np.float32), grid=(1, 1, 1), sha256="0")
    return [
        Prompt(
            token_ids=(0,) * (1 + row % 3),
            position_ids=np.tile(np.arange(1 + row % 3), (3, 1)),
            picture=picture,
        )
        for row in range(count)
    ]


def draw(
    count: int, scores: Tensor, *, temperature: float = 1.0, length: int = 20, seed: int = 0
) -> tuple[list[tuple[list[int], np.ndarray]], list[tuple[int, ...]]]:
    """Return what is drawn when every token has the same scores, and the batches' shapes."""
    shapes: list[tuple[int, ...]] = []

    def forward(ids: Tensor, mask: Tensor, positions: Tensor, vision: object, **_: Any) -> Tensor:
        assert mask.shape[0] == ids.shape[0] == positions.shape[1]
        shapes.append(tuple(mask.shape))
        return torch.zeros(*ids.shape, 1)

    drawn = sample(
        prompts(count),
        SamplingSettings(temperature=temperature, max_new_tokens=length, suppressed=()),
        torch.Generator().manual_seed(seed),
        forward=forward,
        logits=lambda hidden: scores.expand(len(hidden), -1),
        stop_ids=frozenset({STOP}),
        pad_id=0,
    )
    return drawn, shapes


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_frequencies_are_those_of_the_distribution(temperature: float) -> None:
    drawn, _ = draw(4000, PROBABILITIES.log(), temperature=temperature, length=1)
    expected = PROBABILITIES ** (1 / temperature)
    expected = expected / expected.sum()
    counts = np.bincount([ids[0] for ids, _ in drawn], minlength=4) / 4000
    assert np.abs(counts - expected.numpy()).max() < 0.03
    for ids, logprobs in drawn[:20]:
        assert logprobs[0] == pytest.approx(float(expected[ids[0]].log()), abs=1e-6)


def test_each_row_ends_at_its_own_stop_and_the_batch_shrinks() -> None:
    drawn, shapes = draw(32, PROBABILITIES.log())
    for ids, logprobs in drawn:
        assert STOP not in ids[:-1]
        assert ids[-1] == STOP or len(ids) == 20
        assert len(ids) == len(logprobs)
    sizes = [rows for rows, _ in shapes]
    assert sizes[0] == 32
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < 16
    widths = [width for _, width in shapes]
    assert widths == list(range(3, 3 + len(widths))), "one column more at each step"


def test_nothing_is_computed_after_the_last_token() -> None:
    _, shapes = draw(4, torch.tensor([0.0, 0.0, 0.0, -torch.inf]), length=5)
    assert len(shapes) == 5, "the prompt, and four of the five tokens"


def test_a_nan_is_refused() -> None:
    with pytest.raises(NonFiniteError, match="NaN") as refusal:
        draw(2, torch.tensor([0.0, float("nan"), 0.0, 0.0]))
    assert "checkpoint" in str(refusal.value.hint)
