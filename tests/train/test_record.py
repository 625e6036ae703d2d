"""Numbers that describe an update, counted by hand; and which episodes are kept."""

from dataclasses import replace

import pytest
import torch

from gtr_turbo.core.batch import Guidance
from gtr_turbo.core.turns import Episode, EpisodeEnd
from gtr_turbo.metrics import METRICS
from gtr_turbo.ops.sameness import self_bleu
from gtr_turbo.train import record
from gtr_turbo.train.gtr_turbo import assign_credit
from tests.truths.conftest import played as played
from tests.truths.conftest import session as session
from tests.truths.played import Played


def guidance(played: Played) -> Guidance:
    count = len(played.turns)
    return Guidance(kl=torch.arange(count).float(), is_guided=torch.arange(count) >= count // 2)


def described(played: Played, given: Guidance | None) -> dict[str, record.Number]:
    session = played.session
    batch, _ = assign_credit(
        session.policy, played.episodes, played.rows, played.scores, given, session.config
    )
    return record.describe(played.episodes, given, batch)


def test_rates_and_means_are_counted_over_what_their_names_say(played: Played) -> None:
    found = described(played, None)
    ended = [e for e in played.episodes if e.end is not EpisodeEnd.UPDATE_BOUNDARY]
    turns = played.turns
    assert ended
    assert found["episodes"] == len(ended)
    assert found["return"] == pytest.approx(sum(e.task_return for e in ended) / len(ended))
    assert found["success_rate"] == sum(e.success for e in ended) / len(ended)
    assert found["legal_rate"] == sum(t.legal for t in turns) / len(turns)
    valid = sum(t.parsed.valid_format for t in turns)
    assert found["valid_format_rate"] == valid / len(turns)
    tokens = sum(len(t.reply.token_ids) for t in turns)
    assert found["reply_tokens"] == pytest.approx(tokens / len(turns))
    assert found["guidance_kl"] is None
    assert found["guided_share"] == 0
    assert set(found) <= set(METRICS)


def test_the_kl_is_that_of_the_guided_turns(played: Played) -> None:
    """Turns 4 to 7 of 8 are guided, with a KL of 4, 5, 6 and 7."""
    found = described(played, guidance(played))
    assert found["guidance_kl"] == 5.5
    assert found["guided_share"] == 0.5
    nobody = Guidance(kl=torch.ones(8), is_guided=torch.zeros(8, dtype=torch.bool))
    assert described(played, nobody)["guidance_kl"] is None


def test_an_update_in_which_nothing_ended_has_no_rates(played: Played) -> None:
    still_open = [
        Episode(
            turns=e.turns,
            task_id=e.task_id,
            environment=e.environment,
            seed=e.seed,
            end=EpisodeEnd.UPDATE_BOUNDARY,
            next_prompt=e.turns[0].prompt,
        )
        for e in played.episodes
    ]
    session = played.session
    batch, _ = assign_credit(
        session.policy, still_open, played.rows, played.scores, None, session.config
    )
    found = record.describe(still_open, None, batch)
    assert (found["success_rate"], found["return"], found["episode_length"]) == (None, None, None)
    assert found["episodes"] == 0
    assert len(record.sampled_episodes(still_open, None, batch.old_value, 2)) == 2


def test_sampled_episodes_keep_their_own_turns_kl_and_values(played: Played) -> None:
    values = 10 * torch.arange(len(played.turns)).float()
    chosen = record.sampled_episodes(played.episodes, guidance(played), values, 100)
    starts = {id(e): sum(len(b.turns) for b in played.episodes[:i])
              for i, e in enumerate(played.episodes)}  # fmt: skip
    assert chosen
    for episode, kl, seen in chosen:
        start = starts[id(episode)]
        assert kl == [float(start + k) or None for k in range(len(episode.turns))]
        assert seen == [10.0 * (start + k) for k in range(len(episode.turns))]
        assert episode.end is not EpisodeEnd.UPDATE_BOUNDARY
    assert record.sampled_episodes(played.episodes, None, values, 0) == []


def test_a_turn_that_was_not_compared_has_no_kl_unless_it_was_charged(played: Played) -> None:
    count = len(played.turns)
    kl = torch.zeros(count)
    kl[1] = 100.0  # malformed, and charged
    found = Guidance(is_guided=torch.arange(count) == 0, kl=kl)
    whole = [replace(episode, end=EpisodeEnd.TERMINATED) for episode in played.episodes]
    chosen = record.sampled_episodes(whole, found, torch.zeros(count), len(whole))
    seen = [value for _, own, _ in chosen for value in own]
    assert seen == [0.0, 100.0] + [None] * (count - 2)


def test_records_name_a_picture_for_each_turn(played: Played) -> None:
    values = torch.zeros(len(played.turns))
    chosen = record.sampled_episodes(played.episodes, None, values, 2)
    records, pictures = record.episode_records(chosen, 7)
    named = [turn["picture"] for entry in records for turn in entry["turns"]]
    assert sorted(named) == sorted(pictures)
    assert named[0] == "update-0007-e0-t0.png"
    first = chosen[0][0].turns[0]
    assert (pictures[named[0]] == first.observation.picture).all()
    entry = records[0]["turns"][0]
    assert entry["reply"] == first.reply.text
    assert entry["kl"] is None
    assert entry["rewards"] == dict(first.rewards)


def test_thoughts_are_compared_within_episodes_and_across_states(played: Played) -> None:
    found = described(played, None)
    thoughts = [
        [t.reply.token_ids[: t.reply.num_thought_tokens] for t in e.turns] for e in played.episodes
    ]
    several = [self_bleu(own) for own in thoughts if len(own) > 1]
    assert several
    assert found["self_bleu"] == pytest.approx(sum(v for v in several if v is not None)
                                               / len(several))  # fmt: skip
    pairs = [(t.observation.state_key, t.reply.token_ids[: t.reply.num_thought_tokens])
             for t in played.turns]  # fmt: skip
    across = [(a, b) for i, a in enumerate(pairs) for b in pairs[:i] if a[0] != b[0]]
    assert found["shared_thought_rate"] == sum(a[1] == b[1] for a, b in across) / len(across)
