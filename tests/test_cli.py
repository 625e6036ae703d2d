from pathlib import Path
from typing import Any

import pytest

from gtr_turbo.core.config import Config, flatten, parse_config, to_yaml
from gtr_turbo.presets import PRESETS, make_preset
from gtr_turbo.runstate import RunDirectory
from tests.console import TINY, Console
from tests.console import console as console

# ----------------------------------------------------------------------------------- configuration


@pytest.mark.parametrize("name", PRESETS)
def test_a_dry_run_prints_what_can_be_read_back(console: Console, name: str) -> None:
    assert console.config("--preset", name) == make_preset(name)


def test_without_a_preset_the_class_defaults_count(console: Console) -> None:
    assert console.config() == Config()


@pytest.mark.parametrize(
    ("arguments", "key", "value"),
    [
        (["--guidance.coef", "0.5"], "guidance.coef", 0.5),
        (["--guidance.coef=0.5"], "guidance.coef", 0.5),
        (["--guidance.token-cap", "null"], "guidance.token_cap", None),
        (["--guidance.token_cap", "3"], "guidance.token_cap", 3.0),
        (["--ppo.learning_rate", "3e-4"], "ppo.learning_rate", 3e-4),
        (["--format.invalid", "-7"], "format.invalid", -7.0),
        (["--critic.hidden-sizes", "[3]"], "critic.hidden_sizes", (3,)),
        (["--guidance.kind", "none"], "guidance.kind", "none"),
        (["--ppo.dropout", "true"], "ppo.dropout", True),
        (["--task.rules.max_steps", "7"], "task.rules.max_steps", 7),
        (["--task.rules.max-steps=7"], "task.rules.max_steps", 7),
        (["--seed", "12"], "run.seed", 12),
        (["--updates", "3"], "run.num_updates", 3),
        (["--run.seed", "12", "--seed", "12"], "run.seed", 12),
    ],
)
def test_one_override_changes_one_field(
    console: Console, arguments: list[str], key: str, value: Any
) -> None:
    before = flatten(make_preset("ezpoints-tiny").model_dump())
    after = flatten(console.config(*TINY, *arguments).model_dump())
    assert after == before | {key: value}


def test_a_file_goes_on_top_of_the_preset_and_options_on_top_of_it(
    console: Console, tmp_path: Path
) -> None:
    file = tmp_path / "my.yaml"
    file.write_text("guidance: {coef: 0.5, estimator: k3}\ntask: {rules: {max_steps: 9}}\n")
    found = console.config(*TINY, "--config", file, "--guidance.coef", "0.25")
    before = flatten(make_preset("ezpoints-tiny").model_dump())
    assert flatten(found.model_dump()) == before | {
        "guidance.coef": 0.25,
        "guidance.estimator": "k3",
        "task.rules.max_steps": 9,
    }


def test_a_whole_dry_run_can_be_given_back(console: Console, tmp_path: Path) -> None:
    file = tmp_path / "my.yaml"
    file.write_text(to_yaml(make_preset("points24-tiny")))
    assert console.config("--config", file) == make_preset("points24-tiny")


def test_a_resume_without_a_preset_takes_the_runs_own_configuration(
    console: Console, tmp_path: Path
) -> None:
    config = parse_config({"ppo": {"clip": 0.3}})
    RunDirectory.open(tmp_path / "run", config, resume=False).close()
    assert console.config("--resume", "--run-dir", tmp_path / "run") == config
    assert console.config("--run-dir", tmp_path / "run") == Config()


# --------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        ("trian", 'UnknownNameError: there is no command "trian".', 'did you mean "train"?'),
        ("env lst", 'UnknownNameError: there is no command "env lst".', 'did you mean "list"?'),
        ("env check ezpoint", 'UnknownNameError: there is no task named "ezpoint".', '"ezpoints"?'),
        ("train --preset point24-paper", 'there is no preset named "point24-paper".',
         'did you mean "points24-paper"?'),
        ("train --sed 3", "there is no option `--sed`.", 'did you mean "--seed"?'),
        ("train --guidance.kond kl", "there is no configuration key `guidance.kond`.", '"kind"?'),
        ("train --guidence.kind kl", "there is no configuration key `guidence`.", '"guidance"?'),
        ("train --task.name point24", 'there is no task named "point24".', '"points24"?'),
        ("train --preset ezpoints-tiny --task.rules.max_step 3", 'no rule named "max_step".',
         'did you mean "max_steps"?'),
        ("train --preset ezpoints-tiny --task.evaluation_rules.max_step 3",
         'no rule named "max_step".', 'did you mean "max_steps"?'),
        ("train --preset ezpoints-tiny --critic.trunk own_adapter",
         '`critic.trunk` "own_adapter" needs adapters', 'use critic.trunk "frozen"'),
        ("train --rollout.num_environments 7", "must be a multiple of", "the same number of turns"),
        ("train --merge.density 80", "`merge.density` must be less than or equal to 1, got 80.",
         "Share of each tensor's largest changes"),
        ("train --ppo.clip", "`--ppo.clip` needs a value.", "write --ppo.clip VALUE."),
        ("train --seed 1 --run.seed 2", "`run.seed` is asked for twice, as 1 and as 2.",
         "give one of them"),
        ("train --corrector.url http://localhost:80x/v1", "`corrector.url` must be an http or https"
         ' address or "scripted", got "http://localhost:80x/v1".', "give the base URL of the API"),
        ("train stray", "`stray` is no option.", "--section.field VALUE"),
        ("train --ppo.clip [", "the value of `--ppo.clip` is not plain YAML", ""),
        ("train --config no/such.yaml", "there is no configuration file no/such.yaml.", ""),
        ("train --model.path no-such-model", "ModelError: there is no model directory", "hub id"),
        ("train --model.path /no/such/model", "ModelError: there is no model directory", "hub id"),
        ("train --model.path tests", "ModelError: tests holds no config.json", "save_pretrained"),
        ("sft --out x --preset points24-paper", "`sft.num_steps` is 0", "give --sft.num_steps"),
        ("eval no/such", "no/such is no run directory: it has no config.yaml.", "--run-dir"),
        ("report no/such", "no/such is no run directory: it has no config.yaml.", "--run-dir"),
        ("merge", "a merge needs checkpoints, or a recipe (--config).", "gtr-turbo merge --base"),
        ("merge a --config b", "nothing but --out goes with it", "leave the other options"),
        ("merge --config no/such.yaml", "there is no configuration file no/such.yaml.", ""),
    ],
)  # fmt: skip
def test_bad_input_is_one_error_and_a_hint(
    console: Console,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    arguments: str,
    message: str,
    hint: str,
) -> None:
    (tmp_path / "tests").mkdir()
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    error, _, tail = console.refused(*arguments.split()).partition("\n\nhint: ")
    assert message in error
    assert "\n" not in error.strip()
    assert hint in tail
    assert sorted(tmp_path.rglob("*")) == before  # nothing was written


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("train --seed x", ["--seed", "'x'"]),
        ("train --preset", ["--preset"]),
        ("eval", ["PATH"]),
        ("eval run --who nobody", ["--who", "agent", "teacher", "initial"]),
        ("eval run --bogus 3", ["--bogus"]),
        ("sft", ["--out"]),
        ("env check", ["STR"]),
        ("report a b", ["b"]),
    ],
)
def test_bad_options_of_a_command_are_explained_too(
    console: Console, arguments: str, words: list[str]
) -> None:
    error = console.refused(*arguments.split())
    assert all(word in error for word in words)


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--episodes", "0", "`--episodes` must be at least 1, got 0."),
        ("--temperature", "0", "`--temperature` must be positive and finite, got 0.0."),
        ("--temperature", "nan", "`--temperature` must be positive and finite, got nan."),
        ("--json", "no/such/x.json", "`--json` names a file in no/such, which there is not."),
        ("--json", "/", "`--json` names /, a directory.\n\nhint: name a file in it."),
    ],
)
def test_an_evaluation_that_makes_no_sense_is_refused_at_once(
    console: Console, tmp_path: Path, option: str, value: str, message: str
) -> None:
    (tmp_path / "config.yaml").write_text("{}")
    assert message in console.refused("eval", tmp_path, option, value)
