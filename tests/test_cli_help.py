import subprocess
import sys
from pathlib import Path

import pytest

from gtr_turbo import cli
from gtr_turbo.arms import ARMS
from gtr_turbo.core.config import Config, flatten
from gtr_turbo.presets import PRESETS
from tests.console import TINY, Console
from tests.console import console as console


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
        ("train", ["--run-dir", "--preset", "--arm", "--resume", "--dry-run", *PRESETS, *ARMS]),
        ("sft", ["--out", "--preset", *PRESETS]),
        ("eval", ["--who", "agent,teacher,initial", "--episodes", "--samples", "--json"]),
        ("merge", ["--method", "--density", "--base", "--weights", "--out", "--config"]),
        ("report", ["PATH"]),
        ("judge", ["PATH", "--url", "--model", "--episodes", "--max-cost", "--json"]),
        ("compare", ["PATH", "--out", "--jobs", "--gpus", "--only", "--reuse", "--dry-run"]),
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
    assert "(none | kl | sft | distillation | constant)" in " ".join(defaults.split())
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
                "report --help", "compare --help", "compare no/such.yaml", "env list",
                "env check ezpoints", "--version",
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
