import pytest
import torch

from gtr_turbo.core.batch import Scores, TokenRows
from gtr_turbo.ops.collate import left_padded, score_in_chunks, token_rows, vision_inputs
from tests.rows import layout, picture, prompt, reply

PAD = 99


def test_the_layout_of_the_worked_example() -> None:
    # core/batch.py: a prompt of 4, a thought of 2, an action of 2, padded to 9 by a longer turn.
    rows = token_rows(
        [prompt((1, 2, 3, 4)), prompt((1, 2, 3, 4), level=1.0)],
        [reply((5, 6, 7, 8), 2), reply((5, 6, 6, 7, 8), 3)],
        PAD,
    )
    assert rows.token_ids[0].tolist() == [1, 2, 3, 4, 5, 6, 7, 8, PAD]
    assert rows.is_prompt[0].int().tolist() == [1, 1, 1, 1, 0, 0, 0, 0, 0]
    assert rows.is_thought[0].int().tolist() == [0, 0, 0, 0, 1, 1, 0, 0, 0]
    assert rows.is_action[0].int().tolist() == [0, 0, 0, 0, 0, 0, 1, 1, 0]
    assert rows.is_padding[0].int().tolist() == [0, 0, 0, 0, 0, 0, 0, 0, 1]
    assert rows.is_thought[1].int().tolist() == [0, 0, 0, 0, 1, 1, 1, 0, 0]


def test_reply_positions_count_on_from_the_largest_of_the_prompt() -> None:
    # A picture squeezes positions: 6 prompt tokens that reach only position 3.
    rows = token_rows([prompt((1, 2, 2, 2, 2, 3), [0, 1, 1, 2, 2, 3])], [reply((7, 8), 1)], PAD)
    assert rows.position_ids[0].tolist() == [[0, 1, 1, 2, 2, 3, 4, 5]] * 3


def test_positions_of_the_three_axes_stay_apart() -> None:
    uneven = prompt((1, 2, 3))
    uneven.position_ids[1] = [0, 5, 2]
    rows = token_rows([uneven], [reply((7,), 0)], PAD)
    assert rows.position_ids[0].tolist() == [[0, 1, 2, 6], [0, 5, 2, 6], [0, 1, 2, 6]]


def test_padding_is_in_no_mask_whatever_its_id() -> None:
    rows = token_rows([prompt((1,)), prompt((1, 1))], [reply((1,), 0), reply((1, 1), 1)], 1)
    assert rows.is_padding.int().tolist() == [[0, 0, 1, 1], [0, 0, 0, 0]]


def test_pictures_follow_one_another() -> None:
    found = vision_inputs([picture((1, 2, 2), 3.0), picture((1, 1, 2), 5.0)])
    assert found.patches[:, 0].tolist() == [3.0] * 4 + [5.0] * 2
    assert found.grids.tolist() == [[1, 2, 2], [1, 1, 2]]
    assert found.hashes == ("picture-3", "picture-5")


def test_prompts_end_together_for_sampling() -> None:
    ids, attended, positions, pictures = left_padded([prompt((1, 2, 3)), prompt((4,))], PAD)
    assert ids.tolist() == [[1, 2, 3], [PAD, PAD, 4]]
    assert attended.tolist() == [[1, 1, 1], [0, 0, 1]]
    assert positions.tolist() == [[[0, 1, 2], [0, 0, 0]]] * 3
    assert pictures.grids.tolist() == [[1, 2, 2]] * 2
    assert all(tensor.dtype == torch.int64 for tensor in (ids, attended, positions))


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("asked", [True, False])
def test_scores_come_back_in_the_order_of_the_rows(size: int, asked: bool) -> None:
    """Rows of like length are scored together; each score goes back to its own row."""
    rows = layout("ptaaa.", "pa....", "ptaa..", "paaaaa", "pta...")
    widths = []

    def score(part: TokenRows) -> Scores:
        widths.append(part.token_ids.shape[1])
        first = part.token_ids[:, 0].float()
        return Scores(
            token_logprob=(part.token_ids * part.is_response).float(),
            reference_token_logprob=-part.token_ids.float() * part.is_response,
            entropy=first + 0.5 if asked else None,
            value=first + 0.25 if asked else None,
        )

    scores = score_in_chunks(score, rows, size)
    assert widths == sorted(widths)
    assert torch.equal(scores.token_logprob, (rows.token_ids * rows.is_response).float())
    assert torch.equal(scores.reference_token_logprob, -scores.token_logprob)
    if asked:
        assert scores.value is not None
        assert scores.entropy is not None
        assert scores.entropy.tolist() == [n + 0.5 for n in rows.token_ids[:, 0].tolist()]
        assert torch.equal(scores.value, scores.entropy - 0.25)
    else:
        assert scores.value is None
        assert scores.entropy is None
