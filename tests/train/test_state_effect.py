"""A thought's dependence on its state: by hand, and under synthetic collapse."""

from dataclasses import replace

import pytest
import torch

from gtr_turbo.core.batch import Scores, TokenRows
from gtr_turbo.core.turns import Turn
from gtr_turbo.ops.collate import token_rows
from gtr_turbo.train.state_effect import NUM_CROSSED, crossed, thought_state_effect
from tests.truths.conftest import played as played
from tests.truths.conftest import session as session
from tests.truths.played import Played


def measured(played: Played, turns: list[Turn] | None = None, size: int = 3) -> float | None:
    return thought_state_effect(
        played.session.policy,
        played.turns if turns is None else turns,
        played.rows,
        played.scores,
        temperature=played.session.config.rollout.temperature,
        micro_batch_size=size,
    )


def in_state(turn: Turn, key: str) -> Turn:
    return replace(turn, observation=replace(turn.observation, state_key=key))


# -- who is put into whose state ----------------------------------------------------------------


def test_each_turn_is_put_into_the_next_state_that_differs(played: Played) -> None:
    turns = [in_state(turn, key) for turn, key in zip(played.turns[:5], "aabca", strict=True)]
    assert crossed(turns) == [(0, 2), (1, 2), (2, 3), (3, 4), (4, 2)]


def test_turns_without_a_thought_are_left_out(played: Played) -> None:
    turns = [in_state(turn, str(k)) for k, turn in enumerate(played.turns[:4])]
    silent = replace(turns[1], reply=replace(turns[1].reply, num_thought_tokens=0))
    assert crossed([turns[0], silent, turns[2], turns[3]]) == [(0, 2), (2, 3), (3, 0)]
    assert crossed([silent, silent]) == []


def test_of_many_turns_some_are_taken_evenly(played: Played) -> None:
    turns = [in_state(played.turns[0], str(k)) for k in range(10 * NUM_CROSSED + 3)]
    pairs = crossed(turns)
    assert [here for here, _ in pairs] == list(range(0, 10 * NUM_CROSSED, 10))


def test_one_state_says_nothing(played: Played) -> None:
    assert measured(played, [in_state(turn, "same") for turn in played.turns]) is None
    assert measured(played, []) is None


# -- the effect ---------------------------------------------------------------------------------


@torch.no_grad()
def test_it_is_the_mean_over_turns_written_out(played: Played) -> None:
    policy, temperature = played.session.policy, played.session.config.rollout.temperature
    effects = []
    for here, there in crossed(played.turns):
        means = []
        for state in (here, there):
            rows = token_rows(
                [played.turns[state].prompt], [played.turns[here].reply], policy.pad_token_id
            )
            scores = policy.score(rows, temperature, temperature, values=False)
            means.append(float(scores.token_logprob[rows.is_thought].mean()))
        effects.append(means[0] - means[1])
    assert effects
    assert measured(played) == pytest.approx(sum(effects) / len(effects), abs=1e-5)


def test_a_policy_that_has_learned_to_look_thinks_of_what_it_sees(played: Played) -> None:
    found = measured(played)
    assert found is not None
    assert found > 0.01


def test_it_does_not_depend_on_the_size_of_the_pieces(played: Played) -> None:
    assert measured(played, size=1) == pytest.approx(measured(played, size=16), abs=1e-5)


def test_synthetic_collapse_has_no_effect_though_no_two_thoughts_are_equal(
    played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each token is as probable in any state: different wordings hide that from all but this."""

    def blind(rows: TokenRows, *_: float, **__: bool) -> Scores:
        logprob = torch.where(rows.is_response, -1.0 - rows.token_ids % 7, 0.0)
        return Scores(
            token_logprob=logprob, reference_token_logprob=logprob, entropy=None, value=None
        )

    monkeypatch.setattr(played.session.policy, "score", blind)
    found = measured(replace(played, scores=blind(played.rows)))
    assert found == pytest.approx(0.0, abs=1e-6)
