from importlib.metadata import EntryPoint

import pytest

from gtr_turbo.envs import TASKS, default_rules, list_tasks, make_task, registry
from gtr_turbo.errors import ConfigError, TaskError, UnknownNameError

SUMMARY = registry.TASKS["ezpoints"].summary

BUILT_IN = ["blackjack", "ezpoints", "household", "numberline", "points24"]
KNOWN = ["alfworld", *BUILT_IN]


def test_the_names() -> None:
    assert sorted(TASKS) == BUILT_IN
    assert list_tasks() == KNOWN
    assert [make_task(name, {}, 0).task_id for name in BUILT_IN] == [f"{n}-v0" for n in BUILT_IN]
    assert all(entry.summary for entry in TASKS.values())


def test_a_task_with_an_extra_says_what_it_lacks() -> None:
    assert registry.task_entry("alfworld").summary
    with pytest.raises(ConfigError, match="data_path"):
        make_task("alfworld", {}, 0)


def test_default_rules_can_be_given_back() -> None:
    for name in TASKS:
        rules = default_rules(name)
        task, same = make_task(name, rules, 4), make_task(name, {}, 4)
        assert task.reset().state_key == same.reset().state_key
    assert default_rules("points24")["target"] == 24
    assert default_rules("ezpoints")["target"] == 12


def test_an_unknown_task_names_the_nearest() -> None:
    for use in (lambda: make_task("point24", {}, 0), lambda: default_rules("point24")):
        with pytest.raises(UnknownNameError, match='no task named "point24"') as caught:
            use()
        known = ", ".join(KNOWN)
        assert caught.value.hint == f'did you mean "points24"? Known tasks: {known}.'


def test_an_unknown_rule_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match='no rule named "max_stepps"') as caught:
        make_task("points24", {"max_stepps": 3}, 0)
    assert caught.value.hint is not None
    assert 'did you mean "max_steps"?' in caught.value.hint


def plug_in(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    point = EntryPoint("twelve", value, registry.PLUGIN_GROUP)
    monkeypatch.setattr(registry, "entry_points", lambda *, group: [point] if group else [])


def test_an_installed_plug_in_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    plug_in(monkeypatch, "gtr_turbo.envs.ezpoints:ENTRY")
    assert list_tasks() == [*KNOWN, "twelve"]
    assert make_task("twelve", {}, 0).task_id == "ezpoints-v0"


def test_a_plug_in_must_be_an_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    plug_in(monkeypatch, "gtr_turbo.envs.ezpoints:GAME")
    with pytest.raises(TaskError, match=r'"twelve" .* is a CardGame') as caught:
        make_task("twelve", {}, 0)
    assert caught.value.hint is not None
    assert "TaskEntry" in caught.value.hint
