"""Alarms about numbers of an update, and when they put the agent back."""

import json
import logging
from typing import Any

import pytest
from pydantic.fields import FieldInfo

from gtr_turbo.core.config import GuardConfig
from gtr_turbo.metrics import METRICS
from gtr_turbo.train.guard import _LIMITS, MIN_EPISODES, Guard

HEALTHY: dict[str, Any] = {
    "valid_format_rate": 0.98,
    "unfinished_rate": 0.01,
    "legal_rate": 0.9,
    "distinct_thought_share": 0.6,
    "self_bleu": 0.4,
    "shared_thought_rate": 0.01,
    "thought_state_effect": 0.8,
    "thought_tokens": 40.0,
    "entropy": 0.5,
    "success_rate": 0.6,
    "episodes": 100,
}
QUIET: dict[str, Any] = {"max_self_bleu": 0.9, "min_entropy": 0.1}
"""The two limits that never fire by themselves, set."""


def guard(**fields: Any) -> Guard:
    return Guard(GuardConfig(**{**QUIET, **fields}))


def resetting(**fields: Any) -> Guard:
    return guard(action="reset_to_teacher", **fields)


def alarms(watched: Guard, update: int = 1, **values: Any) -> list[str]:
    """Return the metrics that an update with these values raises an alarm about."""
    return [text.split()[0] for text in watched.observe(update, {**HEALTHY, **values})]


# -- alarms -------------------------------------------------------------------------------------


def test_a_healthy_run_is_silent() -> None:
    watched = resetting()
    for update in range(1, 20):
        assert alarms(watched, update) == []
        assert not watched.is_reset_due(update)


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        ("valid_format_rate", 0.49),
        ("unfinished_rate", 0.11),
        ("legal_rate", 0.29),
        ("distinct_thought_share", 0.019),
        ("self_bleu", 0.91),
        ("shared_thought_rate", 0.51),
        ("thought_state_effect", -0.001),
        ("thought_tokens", 11.9),
        ("entropy", 0.09),
        ("success_rate", 0.29),
    ],
)
def test_each_number_raises_its_own_alarm_beyond_its_limit(metric: str, value: float) -> None:
    watched = guard()
    assert alarms(watched, 1) == []
    assert alarms(watched, 2, **{metric: value}) == [metric]


def test_at_the_limit_there_is_no_alarm() -> None:
    watched = guard(min_valid_format_rate=0.5, max_self_bleu=0.9)
    assert alarms(watched, 1, valid_format_rate=0.5, self_bleu=0.9) == []


def test_the_text_names_value_limit_and_field(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        texts = guard().observe(7, {**HEALTHY, "legal_rate": 0.125})
    assert texts == ["legal_rate is 0.125, below 0.3 (guard.min_legal_rate)"]
    assert [r.getMessage() for r in caplog.records] == [f"update 7: {texts[0]}."]
    assert caplog.records[0].levelno == logging.WARNING


def test_numbers_that_do_not_exist_raise_nothing() -> None:
    assert guard().observe(1, dict.fromkeys(HEALTHY)) == []
    assert guard().observe(1, {}) == []


def test_whoever_asks_for_nothing_gets_nothing(caplog: pytest.LogCaptureFixture) -> None:
    assert guard(action="none").observe(1, {"legal_rate": 0.0}) == []
    assert not caplog.records


def test_the_length_of_thoughts_is_that_of_the_first_update() -> None:
    watched = guard()
    assert alarms(watched, 1, thought_tokens=20.0) == []
    assert alarms(watched, 2, thought_tokens=100.0) == []
    assert alarms(watched, 3, thought_tokens=6.1) == []
    assert alarms(watched, 4, thought_tokens=5.9) == ["thought_tokens"]


def test_success_is_held_against_the_best_update_that_had_enough_episodes() -> None:
    watched = guard()
    assert alarms(watched, 1, success_rate=1.0, episodes=MIN_EPISODES - 1) == []
    assert alarms(watched, 2, success_rate=0.5, episodes=MIN_EPISODES) == []
    assert alarms(watched, 3, success_rate=0.21) == []
    assert alarms(watched, 4, success_rate=0.0, episodes=MIN_EPISODES - 1) == []
    assert alarms(watched, 5, success_rate=0.19) == ["success_rate"]
    assert alarms(watched, 6, success_rate=None, episodes=0) == []


def test_every_limit_watches_a_metric_and_is_a_field() -> None:
    fields: dict[str, FieldInfo] = GuardConfig.model_fields
    assert {limit.field for limit in _LIMITS} == fields.keys() - {"action", "interval", "patience"}
    assert {limit.metric for limit in _LIMITS} <= METRICS.keys()


# -- resets -------------------------------------------------------------------------------------


@pytest.mark.parametrize("action", ["none", "alarm"])
def test_only_who_asks_for_resets_gets_them(action: str) -> None:
    watched = guard(action=action, interval=1)
    watched.observe(1, {"legal_rate": 0.0})
    assert not watched.is_reset_due(1)


def test_an_alarm_resets_and_the_count_begins_anew() -> None:
    watched = resetting()
    alarms(watched, 1, legal_rate=0.0)
    assert watched.is_reset_due(1)
    watched.note_reset(1)
    assert watched.num_resets == 1
    assert not watched.is_reset_due(1)
    assert alarms(watched, 2) == []
    assert not watched.is_reset_due(2)


def test_patience_waits_for_alarms_in_a_row() -> None:
    watched = resetting(patience=3)
    due = []
    for update, legal in enumerate([0.0, 0.0, 0.9, 0.0, 0.0, 0.0], start=1):
        alarms(watched, update, legal_rate=legal)
        due.append(watched.is_reset_due(update))
    assert due == [False] * 5 + [True]


def test_different_alarms_in_a_row_count_together() -> None:
    watched = resetting(patience=2)
    alarms(watched, 1, legal_rate=0.0)
    alarms(watched, 2, self_bleu=1.0)
    assert watched.is_reset_due(2)


def test_a_schedule_resets_without_an_alarm() -> None:
    watched = resetting(interval=3)
    due = [update for update in range(1, 10) if not alarms(watched, update)
           and watched.is_reset_due(update)]  # fmt: skip
    assert due == [3, 6, 9]


def test_what_the_teacher_itself_does_wrong_resets_only_once() -> None:
    """The teacher's success is low as well: the agent may learn on; other alarms put it back."""
    watched = resetting()
    alarms(watched, 1, success_rate=0.9)
    alarms(watched, 2, success_rate=0.1)
    assert watched.is_reset_due(2)
    watched.note_reset(2)
    for update in range(3, 7):
        assert alarms(watched, update, success_rate=0.4) == ["success_rate"]
        assert not watched.is_reset_due(update)
    alarms(watched, 7, success_rate=0.4, legal_rate=0.0)
    assert watched.is_reset_due(7)


def test_an_alarm_that_was_silent_once_counts_again() -> None:
    watched = resetting()
    alarms(watched, 1, legal_rate=0.0)
    watched.note_reset(1)
    due = []
    for update, legal in enumerate([0.1, 0.1, 0.9, 0.1], start=2):
        alarms(watched, update, legal_rate=legal)
        due.append(watched.is_reset_due(update))
    assert due == [False, False, False, True]


# -- resume -------------------------------------------------------------------------------------


def test_a_resume_goes_on_where_the_run_stood() -> None:
    """Alarms and resets after every cut of a run are those of the run that was not cut."""
    legal = [0.9, 0.1, 0.1, 0.1, 0.9, 0.1, 0.1, 0.9, 0.1, 0.1]
    success = [0.9, 0.9, 0.3, 0.5, 0.5, 0.8, 0.2, 0.7, 0.6, 0.1]

    def step(watched: Guard, update: int) -> tuple[list[str], bool, int]:
        found = alarms(watched, update, legal_rate=legal[update], success_rate=success[update])
        due = watched.is_reset_due(update)
        if due:
            watched.note_reset(update)
        return found, due, watched.num_resets

    whole = resetting(patience=2)
    expected = [step(whole, update) for update in range(10)]
    assert len({due for _, due, _ in expected}) == 2
    for cut in range(10):
        first = resetting(patience=2)
        for update in range(cut):
            step(first, update)
        second = resetting(patience=2)
        second.restore(json.loads(json.dumps(first.state())))
        assert [step(second, update) for update in range(cut, 10)] == expected[cut:]
        assert second.state() == whole.state()
