import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from safetensors.torch import load_file, save_file

from gtr_turbo import cli
from gtr_turbo.core.config import Config, flatten, parse_config, to_yaml
from gtr_turbo.core.lock import DirectoryLock
from gtr_turbo.presets import PRESETS, make_preset
from gtr_turbo.runstate import LOCK_FILE, RunDirectory

TINY = ["--preset", "ezpoints-tiny"]


class Console:
    """Runs commands in this process and keeps what they printed."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def run(self, *arguments: str | Path) -> tuple[int, str, str]:
        """Return (exit code, output, errors)."""
        code = cli.main([str(argument) for argument in arguments])
        printed = self._capsys.readouterr()
        return code, printed.out, printed.err

    def config(self, *arguments: str | Path) -> Config:
        """Return what a dry run prints."""
        code, out, err = self.run("train", "--dry-run", *arguments)
        assert (code, err) == (0, "")
        return parse_config(yaml.safe_load(out))

    def refused(self, *arguments: str | Path) -> str:
        """Return the error text of a command that must be refused."""
        code, out, err = self.run(*arguments)
        assert code == 2
        assert out == ""
        assert "Traceback" not in err
        return err


@pytest.fixture
def console(capsys: pytest.CaptureFixture[str]) -> Console:
    return Console(capsys)


def contents(directory: Path) -> dict[str, bytes]:
    """Return every file below a directory, but for the lock's signature."""
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file() and path.name != LOCK_FILE
    }


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
        (["--run.seed", "5", "--seed", "12"], "run.seed", 12),
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
    ],
)
def test_an_evaluation_that_makes_no_sense_is_refused_at_once(
    console: Console, tmp_path: Path, option: str, value: str, message: str
) -> None:
    (tmp_path / "config.yaml").write_text("{}")
    assert message in console.refused("eval", tmp_path, option, value)


# --------------------------------------------------------------------------------- run directories


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    """Return a run that was started under the small preset and left."""
    path = tmp_path / "run"
    RunDirectory.open(path, make_preset("ezpoints-tiny"), resume=False).close()
    (path / "metrics.jsonl").write_text('{"update": 1}\n')
    return path


def test_a_run_is_not_overwritten(console: Console, run_dir: Path) -> None:
    before = contents(run_dir)
    error = console.refused("train", *TINY, "--run-dir", run_dir)
    assert f"ResumeError: {run_dir} already holds a run." in error
    assert "hint: continue it with --resume, or choose another --run-dir." in error
    assert contents(run_dir) == before


def test_a_run_is_not_resumed_under_another_configuration(console: Console, run_dir: Path) -> None:
    before = contents(run_dir)
    error = console.refused("train", *TINY, "--run-dir", run_dir, "--resume", "--ppo.clip", "0.3")
    assert "was started under another configuration" in error
    assert f"ppo.clip: {make_preset('ezpoints-tiny').ppo.clip} → 0.3" in error
    assert contents(run_dir) == before


def test_a_run_in_use_is_left_alone(console: Console, run_dir: Path) -> None:
    before = contents(run_dir)
    lock = DirectoryLock.take(run_dir, LOCK_FILE, create=True)
    try:
        lock.sign()
        error = console.refused("train", *TINY, "--run-dir", run_dir, "--resume")
    finally:
        lock.release()
    assert f"RunLockedError: {run_dir} is in use by process " in error
    assert contents(run_dir) == before


def test_a_run_directory_that_is_a_file_is_refused(console: Console, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("precious")
    error = console.refused("train", *TINY, "--run-dir", file)
    assert f"CheckpointError: {file} cannot be used as a run directory" in error
    assert file.read_text() == "precious"


def test_a_device_that_is_not_there_is_refused_before_the_run_is_made(
    console: Console, tmp_path: Path
) -> None:
    path = tmp_path / "run"
    error = console.refused("train", *TINY, "--run-dir", path, "--model.device", "gpu")
    assert '`model.device` "gpu" is no torch device.' in error
    assert not path.exists()


def test_a_small_run_from_start_to_report(console: Console, tmp_path: Path) -> None:
    path = tmp_path / "run"
    small = {
        "sft.num_steps": 0,
        "sft.num_episodes": 30,
        "critic.hidden_sizes": "[8]",
        "evaluation.num_episodes": 4,
        "rollout.max_new_tokens": 4,
        "run.tensorboard": "false",
    }
    options = [f"--{key}={value}" for key, value in small.items()]
    code, out, _ = console.run("train", *TINY, "--updates", "0", "--run-dir", path, *options)
    assert code == 0
    assert "agent" in out.lower()
    summary = json.loads((path / "summary.json").read_text())

    again = tmp_path / "again.json"
    code, out, _ = console.run("eval", path, "--episodes", "3", "--json", again)
    assert code == 0
    assert "agent of " in out
    assert json.loads(again.read_text())["episodes"] == 3
    assert console.run("eval", path, "--who", "initial", "--json", again)[0] == 0
    measured = json.loads(again.read_text())
    assert measured["panel_sha256"] == summary["initial"]["panel_sha256"]
    assert "has no teacher" in console.refused("eval", path, "--who", "teacher")

    (path / "report.html").unlink()
    code, out, _ = console.run("report", path)
    assert (code, out) == (0, f"wrote {path / 'report.html'}\n")
    assert (path / "report.html").is_file()


# ---------------------------------------------------------------------------------- other commands


def test_tasks_are_listed_with_what_they_are(console: Console) -> None:
    code, out, _ = console.run("env", "list")
    lines = dict(line.split(maxsplit=1) for line in out.splitlines())
    assert code == 0
    assert lines["points24"] == "four cards, target 24: the paper's card game"
    assert list(lines) == sorted(lines)
    assert console.run("env")[1] == out


def test_a_task_is_checked_law_by_law(console: Console) -> None:
    code, out, _ = console.run("env", "check", "ezpoints")
    assert code == 0
    assert "holds: a snapshot continues bit-equally\n" in out
    assert out.splitlines()[-1].startswith("ezpoints-v0 keeps all 12 laws (")


def checkpoint(path: Path, value: float) -> Path:
    path.mkdir()
    (path / "config.json").write_text("{}")
    save_file({"layer.weight": torch.full((2, 3), float(value))}, path / "model.safetensors")
    return path


def test_checkpoints_are_merged(console: Console, tmp_path: Path) -> None:
    base, one, two = (checkpoint(tmp_path / name, v) for name, v in (("b", 1), ("c", 2), ("d", 4)))
    out = tmp_path / "merged"
    options = ["--base", base, "--out", out, "--density", "1", "--weights", "3", "1"]
    code, printed, _ = console.run("merge", one, two, *options)
    assert code == 0
    assert f"ties of 2 checkpoints: a model of 6 parameters in {out}" in printed
    # Changes 1 and 3, weighted 3 to 1: 1 + (3 · 1 + 1 · 3) / 4
    assert load_file(out / "model.safetensors")["layer.weight"].tolist() == [[2.5] * 3] * 2
    assert "exists already" in console.refused("merge", one, two, *options)


def test_a_mergekit_recipe_is_a_merge_too(console: Console, tmp_path: Path) -> None:
    checkpoint(tmp_path / "one", 2.0)
    checkpoint(tmp_path / "two", 4.0)
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("merge_method: linear\nmodels:\n- model: one\n- model: two\n")
    assert console.run("merge", "--config", recipe, "--out", tmp_path / "out")[0] == 0
    merged = load_file(tmp_path / "out" / "model.safetensors")
    assert merged["layer.weight"].tolist() == [[3.0] * 3] * 2


def test_an_unknown_merge_method_is_answered_with_the_list(
    console: Console, tmp_path: Path
) -> None:
    one = checkpoint(tmp_path / "one", 2.0)
    error = console.refused("merge", one, "--method", "tise", "--out", tmp_path / "out")
    assert 'MergeError: there is no merge method named "tise".' in error
    assert 'did you mean "ties"? Known methods: ' in error
    assert not (tmp_path / "out").exists()


# -------------------------------------------------------------------------------------------- help


@pytest.mark.parametrize("flag", ["-h", "--help", "help"])
def test_help_names_every_command(console: Console, flag: str) -> None:
    code, out, _ = console.run(flag)
    assert code == 0
    assert all(f"\n  {name} " in out for name in cli.COMMANDS)


def test_nothing_at_all_is_answered_with_the_help(console: Console) -> None:
    code, out, _ = console.run()
    assert (code, out) == (2, console.run("--help")[1])


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("train", ["--run-dir", "--preset", "--resume", "--dry-run", *PRESETS]),
        ("sft", ["--out", "--preset", *PRESETS]),
        ("eval", ["--who", "agent,teacher,initial", "--episodes", "--temperature", "--json"]),
        ("merge", ["--method", "--density", "--base", "--weights", "--out", "--config"]),
        ("report", ["PATH"]),
        ("env", ["list", "check NAME"]),
        ("env list", ["gtr-turbo env list"]),
        ("env check", ["Registered task"]),
    ],
)
def test_each_command_explains_itself(console: Console, command: str, words: list[str]) -> None:
    code, out, err = console.run(*command.split(), "--help")
    assert (code, err) == (0, "")
    assert all(word in out for word in words)


def test_training_help_lists_every_field_with_its_value(console: Console) -> None:
    _, defaults, _ = console.run("train", "--help")
    _, preset, _ = console.run("train", *TINY, "--help")
    for key in flatten(Config().model_dump()):
        assert f"  --{key}" in defaults
    assert "--guidance.kind kl " in defaults
    assert "(none | kl)" in defaults
    assert "--section.field VALUE" in defaults
    assert "--model.finetuning lora" in defaults
    assert "--model.finetuning full" in preset
    assert "the values of ezpoints-tiny" in preset


def test_the_version_is_told(console: Console) -> None:
    code, out, _ = console.run("--version")
    assert (code, out.split()[0]) == (0, "gtr-turbo")


def test_what_needs_no_model_needs_no_torch(tmp_path: Path) -> None:
    code = """
import sys
from gtr_turbo.cli import main
assert "torch" not in sys.modules, "at import"
for command in ("--help", "train --help", "sft --help", "eval --help", "merge --help",
                "report --help", "env list", "env check ezpoints", "--version",
                "train --preset ezpoints-tiny --dry-run", "train --preset nope",
                "train --ppo.clp 1", "train --model.path /no/such"):
    main(command.split())
    assert "torch" not in sys.modules, command
    assert "transformers" not in sys.modules, command
"""
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert found.returncode == 0, found.stderr


def test_the_installed_command_exits_with_the_code(tmp_path: Path) -> None:
    found = subprocess.run(
        [sys.executable, "-m", "gtr_turbo", "train", "--preset", "nope"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert found.returncode == 2
    assert found.stderr.startswith('UnknownNameError: there is no preset named "nope".\n\nhint: ')
    assert found.stdout == ""


def test_an_interrupt_says_what_is_kept(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setitem(cli.COMMANDS, "train", (interrupted, ""))
    code, _, err = console.run("train")
    assert code == 130
    assert "--resume goes on" in err
