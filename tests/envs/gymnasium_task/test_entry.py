import pytest

from gtr_turbo.envs import default_rules, list_tasks, make_task
from gtr_turbo.envs.gymnasium_task.entry import gymnasium_entry, make_gymnasium_task
from gtr_turbo.errors import ConfigError, UnknownNameError
from tests.envs.gymnasium_task.corridor import HOME, name


def test_the_entry_makes_what_its_id_says() -> None:
    entry = gymnasium_entry(f"{HOME}:Corridor-v0")
    assert "Corridor-v0" in entry.summary
    rules = entry.default_rules()
    assert rules["kwargs"] == []
    assert entry.make(rules, 3).task_id == name()


def test_the_registry_knows_the_prefix_and_lists_none() -> None:
    assert default_rules("gym:FrozenLake-v1")["action_names"] == ["left", "down", "right", "up"]
    assert not any(task.startswith("gym:") for task in list_tasks())
    with pytest.raises(UnknownNameError, match="Gymnasium knows no environment"):
        make_task("gym:NoSuch-v0", {}, 0)


def test_bad_rules_and_seeds_are_refused() -> None:
    with pytest.raises(ConfigError, match='no rule named "max_stepps"'):
        make_gymnasium_task(f"{HOME}:Corridor-v0", {"max_stepps": 3}, 0)
    with pytest.raises(ConfigError, match="must not be negative"):
        make_gymnasium_task(f"{HOME}:Corridor-v0", {}, -1)
