"""The command line: train, sft, eval, merge, report, judge, compare, env list, env check, play."""

import dataclasses
import logging
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import tyro
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress, TaskID
from rich.table import Table

from gtr_turbo import __version__
from gtr_turbo.arms import ARMS, make_arm
from gtr_turbo.commands.env import check_one, show_tasks
from gtr_turbo.commands.play import play_in_terminal
from gtr_turbo.core.arguments import (
    CompareArguments,
    EnvCheckArguments,
    EnvListArguments,
    EvalArguments,
    JudgeArguments,
    MergeArguments,
    PlayArguments,
    ReportArguments,
    SftArguments,
    TrainArguments,
)
from gtr_turbo.core.combinations import TINY_PREFIX
from gtr_turbo.core.config import (
    Config,
    flatten,
    parse_config,
    read_yaml,
    to_yaml,
)
from gtr_turbo.core.fields import describe, option_lines
from gtr_turbo.core.overrides import merge_into, parse_overrides, put
from gtr_turbo.core.plain_yaml import read_text
from gtr_turbo.envs.registry import make_task
from gtr_turbo.errors import ConfigError, GtrTurboError, ModelError, UnknownNameError, nearest_hint
from gtr_turbo.presets import PRESETS, make_preset

# What needs torch is imported inside the commands: help, lists and dry runs answer at once.

EXIT_BAD_INPUT = 2
EXIT_INTERRUPTED = 130

OPTION_WIDTH = 38
"""Columns of an option with its value in `train --help`; what is longer stands beside it."""

_PLAIN_FLAGS = (tyro.conf.DisallowNone, tyro.conf.FlagCreatePairsOff)

# -------------------------------------------------------------------------------- configuration


def resolve_config(
    preset: str | None,
    file: Path | None,
    overrides: Sequence[str],
    fixed: dict[str, Any],
    arm: str | None = None,
) -> Config:
    """Return preset ← arm ← YAML file ← dotted overrides ← `fixed` (dotted), checked as a whole.

    Raises ConfigError or UnknownNameError for whatever is wrong in them.
    """
    values = (Config() if preset is None else make_preset(preset)).model_dump(mode="json")
    for key, value in ({} if arm is None else make_arm(arm).overrides).items():
        put(values, key, value)
    if file is not None:
        merge_into(values, read_yaml(file))
    own = _overridden(overrides)
    for key, value in fixed.items():
        if own.get(key, value) != value:
            raise ConfigError(
                f"`{key}` is asked for twice, as {value} and as {own[key]}.",
                hint="its short option and its field are the same; give one of them.",
            )
    for key, value in {**own, **fixed}.items():
        put(values, key, value)
    return parse_config(values)


def _overridden(overrides: Sequence[str]) -> dict[str, Any]:
    """Return the fields that the command line sets by their dotted names; the last one counts."""
    return dict(parse_overrides(overrides, [f.name for f in dataclasses.fields(TrainArguments)]))


def _check_task(config: Config) -> None:
    """Refuse an unknown task or rule before anything is loaded or written."""
    rules = config.task.rules
    for own in (config.training_task.rules, rules | config.task.evaluation_rules):
        make_task(config.task.name, own, 0)


def _check_model(config: Config) -> None:
    """Refuse a model directory that is not there before a run directory is made for it."""
    name = config.model.path
    directory = Path(name)
    if name.startswith(TINY_PREFIX) or (directory / "config.json").is_file():
        return
    if directory.exists():
        raise ModelError(
            f"{name} holds no config.json, so it is no model directory.",
            hint="`model.path` is a directory that `save_pretrained` has written.",
        )
    if directory.is_absolute() or name.count("/") != 1:
        raise ModelError(
            f"there is no model directory {name}.",
            hint="`model.path` is a local directory or a hub id OWNER/NAME.",
        )


# ------------------------------------------------------------------------------------- commands

Arguments = TypeVar("Arguments")


def _read(kind: type[Arguments], command: str, arguments: Sequence[str]) -> Arguments:
    prog = f"gtr-turbo {command}"
    return tyro.cli(kind, prog=prog, args=list(arguments), config=_PLAIN_FLAGS)


def _read_with_fields(
    kind: type[Arguments], command: str, arguments: Sequence[str]
) -> tuple[Arguments, list[str]]:
    """Return the arguments and what is left for the configuration; help lists its fields."""
    try:
        return tyro.cli(
            kind,
            prog=f"gtr-turbo {command}",
            args=list(arguments),
            config=_PLAIN_FLAGS,
            return_unknown_args=True,
        )
    except SystemExit as stop:
        if stop.code in (0, None):
            _print_fields(arguments)
        raise


def _print_fields(arguments: Sequence[str]) -> None:
    """Print the configuration's fields with the values of the preset that is asked about."""
    words = [word for argument in arguments for word in argument.split("=", 1)]
    named = words[words.index("--preset") + 1 :][:1] if "--preset" in words else []
    preset = named[0] if named and named[0] in PRESETS else None
    print(
        f"\nPresets: {', '.join(PRESETS)}.\n"
        f"\nArms: {', '.join(ARMS)}.\n"
        "\nAny field of the configuration can be set as --section.field VALUE (or =VALUE), with the"
        "\nvalue in YAML; null switches off where that is allowed. Rules: --task.rules.NAME VALUE."
        f"\nBelow: {f'the values of {preset}' if preset else 'the class defaults'}"
        " (--preset NAME --help shows those of a preset).\n"
    )
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(ratio=1)
    for section in describe(make_preset(preset) if preset else Config()):
        table.add_row(f"[bold]{section.name}[/]", f"[bold]{escape(section.help)}[/]")
        for option, text in option_lines(section, OPTION_WIDTH):
            table.add_row(escape(option), escape(text))
    Console().print(table, highlight=False)


def _train(arguments: Sequence[str]) -> None:
    args, overrides = _read_with_fields(TrainArguments, "train", arguments)
    named = {"run.seed": args.seed, "run.num_updates": args.updates}
    fixed = {key: value for key, value in named.items() if value is not None}
    file, own = args.config, args.run_dir / "config.yaml"
    if args.resume and own.is_file():
        if args.preset is None and file is None:
            file = own
        else:  # what the command does not say about its own flags stays as the run was started
            started = flatten(read_yaml(own))
            said = fixed.keys() | _overridden(overrides).keys()
            fixed |= {k: started[k] for k in named if k in started and k not in said}
    config = resolve_config(args.preset, file, overrides, fixed, args.arm)
    _check_task(config)
    if args.dry_run:
        sys.stdout.write(to_yaml(config))
        return
    _check_model(config)
    from gtr_turbo.policies.loading import resolve_device
    from gtr_turbo.report.console import RunProgress
    from gtr_turbo.train.pipeline import run_training

    resolve_device(config.model.device)
    with RunProgress(args.run_dir) as progress:
        summary = run_training(config, args.run_dir, progress, resume=args.resume)
        progress.summary_table(summary)


def _sft(arguments: Sequence[str]) -> None:
    args, overrides = _read_with_fields(SftArguments, "sft", arguments)
    fixed = {} if args.seed is None else {"run.seed": args.seed}
    config = resolve_config(args.preset, args.config, overrides, fixed)
    _check_task(config)
    if config.sft.num_steps == 0:
        raise ConfigError(
            "`sft.num_steps` is 0, so there is nothing to do.",
            hint="give --sft.num_steps, or a preset that has some.",
        )
    _check_model(config)
    from gtr_turbo.policies.loading import resolve_device
    from gtr_turbo.report.console import RunProgress
    from gtr_turbo.runstate import RunDirectory
    from gtr_turbo.train.pipeline import start_config

    resolve_device(config.model.device)
    again = (args.out / "config.yaml").is_file()
    with (
        RunProgress(args.out) as progress,
        RunDirectory.open(args.out, config, resume=again) as run,
    ):
        start = start_config(config, run, progress)
    print(f"the model that RL can start from is in {start.model.path}")


def _eval(arguments: Sequence[str]) -> None:
    args = _read(EvalArguments, "eval", arguments)
    _check_run(args.run_dir)
    if args.episodes is not None and args.episodes < 1:
        raise ConfigError(f"`--episodes` must be at least 1, got {args.episodes}.")
    if args.samples < 1:
        raise ConfigError(f"`--samples` must be at least 1, got {args.samples}.")
    if args.temperature is not None and not 0 < args.temperature < float("inf"):
        raise ConfigError(f"`--temperature` must be positive and finite, got {args.temperature}.")
    _check_json(args.json)
    from gtr_turbo.commands.evaluation import evaluate_in_terminal

    evaluate_in_terminal(args, Console())


def _check_run(path: Path) -> None:
    if not (path / "config.yaml").is_file():
        raise ConfigError(
            f"{path} is no run directory: it has no config.yaml.",
            hint="name the --run-dir of a training.",
        )


def _check_json(path: Path | None) -> None:
    """Refuse a file that could not be written, before there is anything to write."""
    if path is None:
        return
    if path.is_dir():
        raise ConfigError(f"`--json` names {path}, a directory.", hint="name a file in it.")
    if not path.absolute().parent.is_dir():
        raise ConfigError(f"`--json` names a file in {path.parent}, which there is not.")


def _merge(arguments: Sequence[str]) -> None:
    args = _read(MergeArguments, "merge", arguments)
    if args.config is None and not args.checkpoints:
        raise ConfigError(
            "a merge needs checkpoints, or a recipe (--config).",
            hint="gtr-turbo merge --base START CHECKPOINT… --out DIRECTORY",
        )
    if args.config is not None and args != MergeArguments(out=args.out, config=args.config):
        raise ConfigError(
            "a recipe (--config) says all about a merge; nothing but --out goes with it.",
            hint="leave the other options and the checkpoints out, or write them into the recipe.",
        )
    from gtr_turbo.merging.directories import run_merge
    from gtr_turbo.merging.mergekit_recipes import read_mergekit
    from gtr_turbo.merging.requests import MergeRequest

    if args.config is not None:
        text = read_text(args.config)
        request = read_mergekit(text, args.out, args.config.absolute().parent)
    else:
        request = MergeRequest(
            checkpoints=args.checkpoints,
            out=args.out,
            base=args.base,
            method=args.method,
            density=args.density,
            weights=args.weights,
            scale=args.scale,
            form=args.form,
            rank=args.rank,
            dtype=args.dtype,
        )
    with Progress(console=Console(stderr=True), transient=True) as bar:
        tasks: dict[str, TaskID] = {}

        def tick(phase: str, done: int, total: int) -> None:
            if phase not in tasks:
                tasks[phase] = bar.add_task(phase, total=total)
            bar.update(tasks[phase], completed=done)

        report = run_merge(request, tick)
    print(
        f"{report.method} of {report.num_checkpoints} checkpoints: a {report.form} of"
        f" {report.num_parameters:,} parameters in {report.out}"
        f" ({report.num_changed_tensors} of {report.num_tensors} tensors changed,"
        f" fingerprint {report.fingerprint[:12]})"
    )


def _report(arguments: Sequence[str]) -> None:
    args = _read(ReportArguments, "report", arguments)
    _check_run(args.run_dir)
    from gtr_turbo.report.page import write_report

    print(f"wrote {write_report(args.run_dir)}")


def _judge(arguments: Sequence[str]) -> None:
    from gtr_turbo.commands.judge import judge_run

    args = _read(JudgeArguments, "judge", arguments)
    _check_run(args.run_dir)
    _check_json(args.json)
    judge_run(args, Console())


def _compare(arguments: Sequence[str]) -> None:
    from gtr_turbo.commands.compare import compare

    code = compare(_read(CompareArguments, "compare", arguments), Console())
    if code:
        raise SystemExit(code)


def _env(arguments: Sequence[str]) -> None:
    action = arguments[0] if arguments else "list"
    if action in ("-h", "--help"):
        print("usage: gtr-turbo env list | check NAME\n")
        print("  list     the tasks, those of installed plug-ins included")
        print("  check    run the laws that every task obeys on one, and measure its expert")
    elif action == "list":
        _read(EnvListArguments, "env list", arguments[1:])
        show_tasks(Console())
    elif action == "check":
        check_one(_read(EnvCheckArguments, "env check", arguments[1:]), Console())
    else:
        raise UnknownNameError(
            f'there is no command "env {action}".',
            hint=nearest_hint(action, ["list", "check"], "env commands"),
        )


def _play(arguments: Sequence[str]) -> None:
    play_in_terminal(_read(PlayArguments, "play", arguments), Console(), sys.stdin)


COMMANDS: dict[str, tuple[Callable[[Sequence[str]], None], str]] = {
    "train": (_train, "train an agent with a free teacher"),
    "sft": (_sft, "make the supervised start alone"),
    "eval": (_eval, "measure a run's agent or teacher on the fixed panel"),
    "merge": (_merge, "merge checkpoints into a model or an adapter"),
    "report": (_report, "write a run's report.html again"),
    "judge": (_judge, "have a model score the thoughts that a run has saved"),
    "compare": (_compare, "run what a study lacks, and compare its arms"),
    "env": (_env, "list: the tasks; check NAME: the laws every task obeys, its ceilings"),
    "play": (_play, "play a task yourself, in the terminal"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code: 0, 2 for bad input, 130 when interrupted."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    name = arguments[0] if arguments else None
    if name in (None, "-h", "--help", "help"):
        _usage()
        return EXIT_BAD_INPUT if name is None else 0
    if name in ("-V", "--version"):
        print(f"gtr-turbo {__version__}")
        return 0
    try:
        if name not in COMMANDS:
            raise UnknownNameError(
                f'there is no command "{name}".', hint=nearest_hint(str(name), COMMANDS, "commands")
            )
        COMMANDS[name][0](arguments[1:])
    except GtrTurboError as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return EXIT_BAD_INPUT
    except SystemExit as stop:  # tyro has printed help, or what is wrong with an option
        return stop.code if isinstance(stop.code, int) else EXIT_BAD_INPUT
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; the newest whole checkpoint is kept (--resume goes on).\n")
        return EXIT_INTERRUPTED
    return 0


def _usage() -> None:
    print("usage: gtr-turbo COMMAND …\n")
    for name, (_, text) in COMMANDS.items():
        print(f"  {name:8} {text}")
    print(f"\n  gtr-turbo train --preset {next(iter(PRESETS))} --run-dir runs/demo")
    print("  gtr-turbo COMMAND --help")
