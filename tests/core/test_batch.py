from dataclasses import replace

import pytest
import torch

from gtr_turbo.core.batch import TokenRows, VisionInputs, turn_logprob
from gtr_turbo.errors import SpanError, VisionMismatchError
from tests.rows import batch, layout, vision

ROWS = ("ppttaa.", "ptaa...", "ppptaaa", "pa.....")
"""Lengths 6, 4, 7 and 2."""


def test_responses_and_padding_follow_from_the_masks() -> None:
    rows = layout("pptaa.")
    assert rows.is_response.tolist() == [[False, False, True, True, True, False]]
    assert rows.is_padding.tolist() == [[False, False, False, False, False, True]]
    assert rows.num_turns == 1


@pytest.mark.parametrize("pair", [("is_prompt", "is_thought"), ("is_prompt", "is_action"),
                                  ("is_thought", "is_action")])  # fmt: skip
def test_masks_that_overlap_are_refused(pair: tuple[str, str]) -> None:
    rows = layout("pptaa.")
    first, second = pair
    with pytest.raises(SpanError, match="must not overlap"):
        replace(rows, **{first: getattr(rows, first) | getattr(rows, second)})


@pytest.mark.parametrize("bad", ["ppttt.", "ttaaaa"])
def test_a_turn_without_prompt_or_action_is_refused_by_its_number(bad: str) -> None:
    with pytest.raises(SpanError, match=r"rows \[1\] lack a prompt or an action"):
        layout("pptaa.", bad)


def test_a_turn_may_have_no_thought() -> None:
    assert not layout("ppaa").is_thought.any()


def test_patches_must_fit_the_grids() -> None:
    good = vision([(1, 2, 2), (1, 1, 3)])
    with pytest.raises(VisionMismatchError, match="6 patches and 2 hashes for grids that need 7"):
        replace(good, patches=good.patches[:-1])
    with pytest.raises(VisionMismatchError, match="7 patches and 1 hashes"):
        replace(good, hashes=("one",))


def test_each_turn_needs_a_picture() -> None:
    rows = layout(*ROWS)
    with pytest.raises(VisionMismatchError, match="4 turns need as many pictures, got 3"):
        replace(rows, vision=vision([(1, 1, 1)] * 3))


def test_ragged_pictures_are_selected_whole_and_in_order() -> None:
    pictures = vision([(1, 2, 2), (1, 1, 1), (1, 2, 3)])
    chosen = pictures.select(torch.tensor([2, 0, 2]))
    assert chosen.patches[:, 0].tolist() == [2.0] * 6 + [0.0] * 4 + [2.0] * 6
    assert chosen.grids.tolist() == [[1, 2, 3], [1, 2, 2], [1, 2, 3]]
    assert chosen.hashes == ("picture-2", "picture-0", "picture-2")


def test_no_rows_are_a_selection_too() -> None:
    none = torch.zeros(0, dtype=torch.int64)
    assert layout(*ROWS).select(none).token_ids.shape == (0, 0)
    assert vision([(1, 2, 2)]).select(none).patches.shape == (0, 4)


def test_blank_pictures_keep_their_shape_and_lose_their_content() -> None:
    pictures = vision([(1, 1, 1), (1, 1, 2)])
    assert pictures.blank().patches.tolist() == [[0.0] * 4] * 3
    assert pictures.patches[1:].eq(1).all()
    assert isinstance(pictures.blank(), VisionInputs)


def test_selected_rows_are_cut_to_the_longest() -> None:
    rows = layout(*ROWS)
    short = rows.select(torch.tensor([3, 1]))
    assert short.token_ids.tolist() == [[30, 31, 32, 33], [10, 11, 12, 13]]
    assert short.is_padding.tolist() == [[False, False, True, True], [False] * 4]
    assert short.position_ids.shape == (2, 3, 4)
    assert short.vision.patches[:, 0].tolist() == [3.0] * 4 + [1.0] * 2
    assert rows.select(torch.tensor([0, 2])).token_ids.shape == (2, 7)


def test_chunks_keep_the_order_and_leave_a_rest() -> None:
    pieces = list(layout(*ROWS).chunks(3))
    assert [piece.token_ids[:, 0].tolist() for piece in pieces] == [[0, 10, 20], [30]]
    assert [piece.token_ids.shape[1] for piece in pieces] == [7, 2]
    turns = list(batch(*ROWS).chunks(3))
    assert [piece.old_logprob.tolist() for piece in turns] == [[0, 1, 2], [3]]


def test_every_field_of_a_batch_follows_the_selection() -> None:
    chosen = batch(*ROWS).select(torch.tensor([2, 0]))
    assert chosen.rows.token_ids[:, 0].tolist() == [20, 0]
    assert chosen.old_logprob.tolist() == [2.0, 0.0]
    assert chosen.old_value.tolist() == [2.25, 0.25]
    assert chosen.advantage.tolist() == [2.5, 0.5]
    assert chosen.value_target.tolist() == [2.75, 0.75]
    assert chosen.is_solved.tolist() == [True, True]
    assert chosen.tokens is not None
    assert chosen.tokens.old_logprob[:, :2].tolist() == [[-2.0, -2.125], [0.0, -0.125]]
    assert chosen.tokens.advantage[0].tolist() == [2 + p / 8 for p in range(7)]


def test_credit_of_tokens_is_cut_with_the_rows() -> None:
    chosen = batch(*ROWS).select(torch.tensor([3, 1]))
    assert chosen.tokens is not None
    assert chosen.tokens.advantage.shape == chosen.rows.token_ids.shape == (2, 4)
    assert chosen.tokens.advantage[1].tolist() == [1 + p / 8 for p in range(4)]


def flat(pieces: list[list[float]]) -> list[float]:
    return [number for piece in pieces for number in piece]


def order(seed: int, size: int) -> list[list[float]]:
    generator = torch.Generator().manual_seed(seed)
    turns = batch(*("ptaa",) * 7)
    return [piece.old_logprob.tolist() for piece in turns.minibatches(size, generator)]


def test_minibatches_hold_each_row_once_in_an_order_of_the_generator() -> None:
    pieces = order(1, 3)
    assert [len(piece) for piece in pieces] == [3, 3, 1]
    assert sorted(flat(pieces)) == [0, 1, 2, 3, 4, 5, 6]
    assert pieces == order(1, 3)
    assert pieces != order(2, 3)
    everyone = sorted(flat(order(1, 2)))
    assert everyone == sorted(flat(pieces))


def test_the_rows_of_a_minibatch_go_from_short_to_long() -> None:
    turns = batch("ptaaa.", "pa....", "ptaa..", "paa...", "pta...", "paaaaa")
    assert turns.rows.by_length().tolist() == [1, 3, 4, 2, 0, 5]
    pieces = list(turns.minibatches(4, torch.Generator().manual_seed(0)))
    assert sorted(n for piece in pieces for n in piece.old_logprob.tolist()) == [0, 1, 2, 3, 4, 5]
    for piece in pieces:
        lengths = (~piece.rows.is_padding).sum(dim=1).tolist()
        assert lengths == sorted(lengths)


def test_minibatches_leave_the_global_generator_alone() -> None:
    before = torch.get_rng_state()
    order(5, 2)
    assert torch.equal(before, torch.get_rng_state())


LOGPROBS = [[0.0, 0.0, -1.0, -2.0, -0.25, -0.5, 0.0], [0.0, -4.0, -1.0, -1.0, 0.0, 0.0, 0.0]]


def test_thoughts_weigh_lambda_and_actions_one() -> None:
    rows = layout("ppttaa.", "ptaa...")
    found = turn_logprob(torch.tensor(LOGPROBS), rows, 0.5)
    assert found.tolist() == [0.5 * -3.0 - 0.75, 0.5 * -4.0 - 2.0]
    assert turn_logprob(torch.tensor(LOGPROBS), rows, 0.0).tolist() == [-0.75, -2.0]


def test_with_lambda_one_the_whole_reply_is_summed() -> None:
    found = turn_logprob(torch.tensor(LOGPROBS), layout("ppttaa.", "ptaa..."), 1.0)
    assert found.tolist() == [sum(LOGPROBS[0]), sum(LOGPROBS[1])]


def test_sums_are_float32_when_the_tokens_are_bfloat16() -> None:
    # 1 + 2^-8 has no bfloat16: there the sum of these two would be 1.
    tokens = torch.tensor([[0.0, 1.0, 2.0**-8]], dtype=torch.bfloat16)
    found = turn_logprob(tokens, layout("pta"), 1.0)
    assert found.dtype == torch.float32
    assert found.tolist() == [1.0 + 2.0**-8]
    assert (tokens[0, 1] + tokens[0, 2]).item() == 1.0


def test_the_sum_passes_gradients_on() -> None:
    tokens = torch.tensor(LOGPROBS, requires_grad=True)
    turn_logprob(tokens, layout("ppttaa.", "ptaa..."), 0.5).sum().backward()
    assert tokens.grad is not None
    assert tokens.grad.tolist() == [[0, 0, 0.5, 0.5, 1, 1, 0], [0, 0.5, 1, 1, 0, 0, 0]]


def test_shapes_are_checked() -> None:
    rows = layout("pta")
    with pytest.raises(Exception, match="is_action"):
        TokenRows(
            token_ids=rows.token_ids,
            position_ids=rows.position_ids,
            is_prompt=rows.is_prompt,
            is_thought=rows.is_thought,
            is_action=rows.is_action.float(),  # pyright: ignore[reportArgumentType]
            vision=rows.vision,
        )
