from typing import Any

import pytest

from gtr_turbo.core.overrides import merge_into, parse_overrides, put
from gtr_turbo.errors import ConfigError


@pytest.mark.parametrize(
    ("arguments", "pairs"),
    [
        (["--guidance.coef", "0.5"], [("guidance.coef", 0.5)]),
        (["--guidance.coef=0.5"], [("guidance.coef", 0.5)]),
        (["--guidance.token-cap", "null"], [("guidance.token_cap", None)]),
        (["--guidance.token_cap", "7"], [("guidance.token_cap", 7)]),
        (["--format.invalid", "-2"], [("format.invalid", -2)]),
        (["--critic.hidden-sizes", "[8, 4]"], [("critic.hidden_sizes", [8, 4])]),
        (["--ppo", "{clip: 0.3}"], [("ppo", {"clip": 0.3})]),
        (["--model.path=a=b"], [("model.path", "a=b")]),
        (["--model.path", ""], [("model.path", None)]),
        (["--run.seed", "1", "--run.seed", "2"], [("run.seed", 1), ("run.seed", 2)]),
        ([], []),
    ],
)
def test_overrides_are_pairs(arguments: list[str], pairs: list[tuple[str, Any]]) -> None:
    assert parse_overrides(arguments, []) == pairs


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (["stray"], "`stray` is no option.", "given as --section.field VALUE."),
        (["-x"], "`-x` is no option.", "given as --section.field VALUE."),
        (["--"], "`--` is no option.", "given as --section.field VALUE."),
        (["--ppo..clip", "1"], "`--ppo..clip` is no option.", "--section.field VALUE."),
        (["--ppo.clip"], "`--ppo.clip` needs a value.", "write --ppo.clip VALUE."),
        (["--ppo.clip", "--run.seed", "1"], "`--ppo.clip` needs a value.", "--ppo.clip VALUE."),
        (["--sed", "1"], "there is no option `--sed`.", 'did you mean "--seed"?'),
        (["--run_dri=x"], "there is no option `--run_dri`.", 'did you mean "--run-dir"?'),
        (["--ppo.clip", "[1"], "the value of `--ppo.clip` is not plain YAML: ", ""),
    ],
)
def test_anything_else_is_refused(arguments: list[str], message: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_overrides(arguments, ["seed", "run_dir"])
    assert caught.value.message.startswith(message)
    assert hint in (caught.value.hint or "")


def test_a_dotted_key_is_put_beside_what_is_there() -> None:
    values: dict[str, Any] = {"task": {"rules": {"a": 1}, "name": "x"}}
    put(values, "task.rules.b", 2)
    put(values, "task.rules.a", 3)
    assert values == {"task": {"rules": {"a": 3, "b": 2}, "name": "x"}}


def test_a_mapping_is_merged_into_its_section() -> None:
    values: dict[str, Any] = {"ppo": {"clip": 0.1, "epochs": 4}, "seed": 0}
    merge_into(values, {"ppo": {"clip": 0.2}, "seed": 3, "new": {"x": 1}})
    assert values == {"ppo": {"clip": 0.2, "epochs": 4}, "seed": 3, "new": {"x": 1}}
    put(values, "ppo", {"epochs": 1})
    assert values["ppo"] == {"clip": 0.2, "epochs": 1}


@pytest.mark.parametrize("value", [None, 5, [1]])
def test_no_section_is_dropped_by_something_else_in_its_place(value: Any) -> None:
    values: dict[str, Any] = {"task": {"rules": {"a": 1}}}
    with pytest.raises(ConfigError, match=r"`task\.rules` must be a mapping of fields to values"):
        put(values, "task.rules", value)
    assert values == {"task": {"rules": {"a": 1}}}
