"""The command line: train, sft, eval, merge, report, env list, env check."""

import dataclasses
import json
import logging
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import tyro
import yaml
from rich.console import Console
from rich.table import Table

from gtr_turbo.core.config import Config, parse_config, read_yaml, to_yaml
from gtr_turbo.errors import ConfigError, GtrTurboError, UnknownNameError, nearest_hint
from gtr_turbo.presets import make_preset

EXIT_BAD_INPUT = 2
EXIT_INTERRUPTED = 130


@dataclasses.dataclass(frozen=True)
class TrainArguments:
    """Train an agent. Any configuration field can be overridden: --guidance.coef 0.5 …"""

    run_dir: Path = Path("runs/latest")
    """Where the run lives."""
    preset: str | None = None
    """Complete configuration by name: ezpoints-tiny, points24-tiny, points24-paper."""
    config: Path | None = None
    """YAML file on top of the preset (or of the defaults)."""
    seed: int | None = None
    """Seed of the run (run.seed)."""
    updates: int | None = None
    """Number of updates (run.num_updates)."""
    resume: bool = False
    """Continue the run in --run-dir from its newest whole checkpoint."""
    dry_run: bool = False
    """Print the resolved configuration as YAML and stop."""


@dataclasses.dataclass(frozen=True)
class SftArguments:
    """Make the supervised start of a run alone, and write it as a model directory."""

    out: Path
    """Where the model directory goes."""
    preset: str | None = None
    """Complete configuration by name."""
    config: Path | None = None
    """YAML file on top of the preset (or of the defaults)."""
    seed: int | None = None
    """Seed of the run (run.seed)."""


@dataclasses.dataclass(frozen=True)
class EvalArguments:
    """Measure a run's policy on the fixed panel."""

    run_dir: Annotated[Path, tyro.conf.Positional]
    """Directory of the run."""
    episodes: int | None = None
    """Hands of the panel; the run's own number by default."""
    who: str = "agent"
    """agent, teacher or initial."""
    temperature: float | None = None
    """Sampling temperature; the run's own by default."""
    json: Path | None = None
    """Write the numbers to this file as well."""


@dataclasses.dataclass(frozen=True)
class ReportArguments:
    """Write report.html of a run again."""

    run_dir: Annotated[Path, tyro.conf.Positional]
    """Directory of the run."""


@dataclasses.dataclass(frozen=True)
class EnvCheckArguments:
    """Run the conformance laws on a task."""

    name: Annotated[str, tyro.conf.Positional]
    """Registered task."""


def resolve_config(
    preset: str | None, file: Path | None, overrides: Sequence[str], fixed: dict[str, Any]
) -> Config:
    """Return preset ← YAML file ← dotted overrides ← `fixed` (dotted), checked as a whole."""
    values = (Config() if preset is None else make_preset(preset)).model_dump(mode="json")
    if file is not None:
        _merge(values, read_yaml(file))
    for key, value in [*_parse_overrides(overrides), *fixed.items()]:
        nested: Any = value
        for part in reversed(key.split(".")):
            nested = {part: nested}
        _merge(values, nested)
    return parse_config(values)


def _merge(values: dict[str, Any], other: dict[str, Any]) -> None:
    """Put `other` into `values`, section by section."""
    for key, value in other.items():
        if isinstance(value, dict) and isinstance(values.get(key), dict):
            _merge(values[key], value)
        else:
            values[key] = value


def _parse_overrides(arguments: Sequence[str]) -> list[tuple[str, Any]]:
    """Return (dotted key, YAML value) pairs of `--a.b VALUE` or `--a.b=VALUE`.

    Raises ConfigError for anything else.
    """
    pairs: list[tuple[str, Any]] = []
    rest = list(arguments)
    while rest:
        flag = rest.pop(0)
        if not flag.startswith("--") or len(flag) <= len("--"):
            raise ConfigError(f"`{flag}` is no option.",
                              hint="configuration fields are given as --section.field VALUE.")  # fmt: skip
        key, equals, text = flag[2:].partition("=")
        if not equals:
            if not rest:
                raise ConfigError(f"`{flag}` needs a value.")
            text = rest.pop(0)
        pairs.append((key.replace("-", "_"), _plain_yaml(flag, text)))
    return pairs


def _plain_yaml(flag: str, text: str) -> Any:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        raise ConfigError(f"the value of `{flag}` cannot be read: {text}.") from None


def _train(arguments: Sequence[str]) -> None:
    args, overrides = tyro.cli(
        TrainArguments, prog="gtr-turbo train", args=list(arguments), return_unknown_args=True
    )
    fixed = {
        key: value
        for key, value in {"run.seed": args.seed, "run.num_updates": args.updates}.items()
        if value is not None
    }
    file = args.config
    if (
        args.resume
        and args.preset is None
        and file is None
        and (args.run_dir / "config.yaml").is_file()
    ):
        file = args.run_dir / "config.yaml"
    config = resolve_config(args.preset, file, overrides, fixed)
    _check_task(config)
    if args.dry_run:
        sys.stdout.write(to_yaml(config))
        return
    from gtr_turbo.report.console import RunProgress  # noqa: PLC0415  torch loads only now
    from gtr_turbo.train.pipeline import run_training  # noqa: PLC0415

    with RunProgress(args.run_dir) as progress:
        summary = run_training(config, args.run_dir, progress, resume=args.resume)
        progress.summary_table(summary)


def _check_task(config: Config) -> None:
    """Refuse an unknown task or rule before anything is loaded."""
    from gtr_turbo.envs.registry import make_task  # noqa: PLC0415

    for rules in (config.task.rules, {**config.task.rules, **config.task.evaluation_rules}):
        make_task(config.task.name, rules, 0)


def _sft(arguments: Sequence[str]) -> None:
    args, overrides = tyro.cli(
        SftArguments, prog="gtr-turbo sft", args=list(arguments), return_unknown_args=True
    )
    fixed = {} if args.seed is None else {"run.seed": args.seed}
    config = resolve_config(args.preset, args.config, overrides, fixed)
    _check_task(config)
    if config.sft.num_steps == 0:
        raise ConfigError("`sft.num_steps` is 0, so there is nothing to do.",
                          hint="give --sft.num_steps, or a preset that has some.")  # fmt: skip
    from gtr_turbo.report.console import RunProgress  # noqa: PLC0415
    from gtr_turbo.runstate import RunDirectory  # noqa: PLC0415
    from gtr_turbo.train.pipeline import start_config  # noqa: PLC0415

    with RunProgress(args.out) as progress, RunDirectory.open(args.out, config, resume=True) as run:
        start = start_config(config, run, progress)
    Console().print(f"the model that RL can start from is in {start.model.path}")


def _eval(arguments: Sequence[str]) -> None:
    args = tyro.cli(EvalArguments, prog="gtr-turbo eval", args=list(arguments))
    from gtr_turbo.train.pipeline import evaluate_run  # noqa: PLC0415

    found = evaluate_run(args.run_dir, args.who, args.episodes, args.temperature)
    low, high = found["ci95"]
    table = Table(title=f"{args.who} of {args.run_dir} on panel {found['panel_sha256'][:12]}")
    for column in ("success", "95 % interval", "return", "episodes", "success on solvable hands"):
        table.add_column(column)
    solvable = found["solvable_success_rate"]
    table.add_row(
        f"{found['success_rate']:.1%}",
        f"{low:.1%} – {high:.1%}",
        f"{found['return']:.2f}",
        str(found["episodes"]),
        "-" if solvable is None else f"{solvable:.1%} of {found['solvable_episodes']}",
    )
    Console().print(table)
    if args.json is not None:
        args.json.write_text(json.dumps(found, indent=2) + "\n")


def _report(arguments: Sequence[str]) -> None:
    args = tyro.cli(ReportArguments, prog="gtr-turbo report", args=list(arguments))
    if not (args.run_dir / "config.yaml").is_file():
        raise ConfigError(f"{args.run_dir} is no run directory: it has no config.yaml.")
    from gtr_turbo.report.page import write_report  # noqa: PLC0415

    Console().print(f"wrote {write_report(args.run_dir)}")


def _env(arguments: Sequence[str]) -> None:
    from gtr_turbo.envs.registry import TASKS, default_rules, make_task  # noqa: PLC0415

    action = arguments[0] if arguments else "list"
    if action == "list":
        table = Table("task", "what it is")
        for name, entry in sorted(TASKS.items()):
            table.add_row(name, entry.summary)
        Console().print(table)
    elif action == "check":
        args = tyro.cli(EnvCheckArguments, prog="gtr-turbo env check", args=list(arguments[1:]))
        from gtr_turbo.envs.check import check_task  # noqa: PLC0415

        rules = default_rules(args.name)
        report = check_task(lambda seed: make_task(args.name, rules, seed))
        Console().print(str(report))
    else:
        raise UnknownNameError(f'there is no command "env {action}".',
                               hint=nearest_hint(action, ["list", "check"], "env commands"))  # fmt: skip


COMMANDS: dict[str, tuple[Callable[[Sequence[str]], None], str]] = {
    "train": (_train, "train an agent with a free teacher"),
    "sft": (_sft, "make the supervised start alone"),
    "eval": (_eval, "measure a run's agent or teacher on the fixed panel"),
    "report": (_report, "write a run's report.html again"),
    "env": (_env, "list: the tasks; check NAME: the laws every task obeys"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code: 0, 2 for bad input, 130 when interrupted."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        _usage()
        return 0 if arguments else EXIT_BAD_INPUT
    try:
        name = arguments[0]
        if name not in COMMANDS:
            raise UnknownNameError(f'there is no command "{name}".',
                                   hint=nearest_hint(name, COMMANDS, "commands"))  # fmt: skip
        COMMANDS[name][0](arguments[1:])
    except GtrTurboError as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return EXIT_BAD_INPUT
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; the newest whole checkpoint is kept (--resume goes on).\n")
        return EXIT_INTERRUPTED
    return 0


def _usage() -> None:
    lines = [f"  {name:8} {text}" for name, (_, text) in COMMANDS.items()]
    sys.stdout.write(
        "usage: gtr-turbo COMMAND …\n\n" + "\n".join(lines) + "\n\n"
        "  gtr-turbo train --preset ezpoints-tiny --run-dir runs/demo\n"
        "  gtr-turbo COMMAND --help\n"
    )
