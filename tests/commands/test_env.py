import pytest

from gtr_turbo.commands.env import parse_rules
from gtr_turbo.envs.check import EXPERT_LAWS, LAWS
from gtr_turbo.errors import ConfigError
from tests.console import Console
from tests.console import console as console
from tests.envs.gymnasium_task.corridor import name


def test_every_task_is_listed(console: Console) -> None:
    code, out, _ = console.run("env", "list")
    assert code == 0
    assert "ezpoints     two cards, target 12" in out


def test_a_check_names_the_laws_and_measures(console: Console) -> None:
    arguments = ["--episodes", "3", "--rules", "max_steps=3"]
    code, out, err = console.run("env", "check", name(), *arguments)
    assert (code, err) == (0, "")
    assert all(f"holds: {law}\n" in out for law in LAWS)
    assert f"{name()} keeps all {len(LAWS)} laws (6 episodes, 6 of them solvable" in out
    expert = next(line for line in out.splitlines() if "expert" in line and "100.0%" in line)
    assert "1.00" in expert
    assert sum("from " in line for line in out.splitlines()) >= 2  # a line for each sort
    assert "play at random" in out


def test_a_task_without_an_expert_is_told_apart(console: Console) -> None:
    found = console.run("env", "check", name("Text"), "--episodes", "0", "--rules", "max_steps=3")
    code, out, _ = found
    assert code == 0
    assert not any(f"holds: {law}\n" in out for law in EXPERT_LAWS)
    assert "the laws about an expert don't apply" in out
    assert "has no expert" in out


def test_rules_are_yaml() -> None:
    assert parse_rules(["max-steps=7", "ranks=[1, 2]", "picture_size=null"]) == {
        "max_steps": 7,
        "ranks": [1, 2],
        "picture_size": None,
    }


@pytest.mark.parametrize("pair", ["max_steps", "=7"])
def test_what_is_no_rule_is_refused(pair: str) -> None:
    with pytest.raises(ConfigError, match="is no rule"):
        parse_rules([pair])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--episodes", "-1"], "`--episodes` must not be negative, got -1."),
        (["--rules", "max_step=3"], 'no rule named "max_step".'),
    ],
)
def test_bad_options_are_refused(console: Console, arguments: list[str], message: str) -> None:
    assert message in console.refused("env", "check", "ezpoints", *arguments)
