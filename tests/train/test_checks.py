"""What a run measures about itself, and when; the faults are in tests/truths/."""

import pytest

from gtr_turbo.train import checks
from gtr_turbo.train.session import Session
from tests.truths.conftest import played as played
from tests.truths.conftest import session as session
from tests.truths.played import Played


def test_measurements_of_a_sound_update(played: Played) -> None:
    found = checks.check(played.session, 1, played.turns, played.rows, played.scores)
    assert set(found) == {
        "logprob_gap",
        "picture_effect_agent",
        "picture_effect_teacher",
        "thought_state_effect",
    }
    gap, effect = found["logprob_gap"], found["picture_effect_agent"]
    assert gap is not None
    assert effect is not None
    assert 0 <= gap < 1e-5 < effect
    assert found["picture_effect_teacher"] is None, "there is no teacher yet"


def test_the_probe_runs_first_with_the_first_teacher_and_at_intervals(session: Session) -> None:
    assert session.config.run.check_interval == 10
    due = [update for update in range(1, 4) if session.is_check_due(update)]
    session.teacher.become(session.policy.change(), must_differ=False)
    due += [update for update in range(4, 31) if session.is_check_due(update)]
    assert due == [1, 4, 10, 20, 30]


def test_an_update_without_a_probe_still_checks_the_log_probabilities(played: Played) -> None:
    found = checks.check(played.session, 2, played.turns, played.rows, played.scores)
    assert found["logprob_gap"] is not None
    assert found["picture_effect_agent"] is None


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_tolerance_fits_the_precision(dtype: str) -> None:
    epsilon = {"float32": 2**-23, "bfloat16": 2**-8}[dtype]
    assert 10 * epsilon < checks.LOGPROB_TOLERANCE[dtype] <= 0.1
