"""`gtr-turbo eval`: a run's policies on the fixed panel, once or several times each hand."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Final, get_args

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from gtr_turbo.commands.env import print_line
from gtr_turbo.core.arguments import EvalArguments, Who
from gtr_turbo.core.combinations import TINY_PREFIX
from gtr_turbo.core.config import Config, parse_config, read_yaml
from gtr_turbo.core.files import dump_json, write_text_atomically
from gtr_turbo.errors import ConfigError
from gtr_turbo.evaluate import evaluate_samples
from gtr_turbo.history import make_history
from gtr_turbo.policies.make import load_policy
from gtr_turbo.policies.vlm import VlmPolicy
from gtr_turbo.runstate import CONFIG_FILE, TEACHERS, newest_checkpoint
from gtr_turbo.studies.starts import FOLDERS

MODEL, START = FOLDERS
SHOWN_PASSES: Final = 8
"""Values of k that a line has room for."""


def evaluate_in_terminal(arguments: EvalArguments, console: Console) -> None:
    """Measure a run's policy, print what it reached and write it down where that is asked for."""
    found = measure(
        arguments.run_dir,
        arguments.who,
        num_episodes=arguments.episodes,
        temperature=arguments.temperature,
        num_samples=arguments.samples,
    )
    console.print(_table(arguments, found))
    if len(found["by_kind"]) > 1:
        for kind, own in found["by_kind"].items():
            print_line(console, f"{kind}: {own['success_rate']:.1%} of {own['episodes']}")
    passes = found.get("pass_at", {})
    for first in range(0, len(passes), SHOWN_PASSES):
        some = list(passes.items())[first : first + SHOWN_PASSES]
        print_line(console, "  ".join(f"pass@{k} {rate:.1%}" for k, rate in some))
    if arguments.json is not None:
        write_text_atomically(arguments.json, dump_json(found, indent=2) + "\n")


def measure(
    path: Path,
    who: str,
    *,
    num_episodes: int | None = None,
    temperature: float | None = None,
    num_samples: int = 1,
) -> dict[str, Any]:
    """Return the panel numbers of a run's `agent`, `teacher` or `initial` policy; writes nothing.

    The agent and the teacher are those of the newest whole checkpoint. With more than one sample
    each hand is played so many times, and the chances of pass@k come with the numbers. Raises
    ConfigError for a directory that is no run, or a policy that the run does not have.
    """
    if not (path / CONFIG_FILE).is_file():
        raise ConfigError(f"{path} is no run directory: it has no {CONFIG_FILE}.")
    if who not in get_args(Who):
        raise ConfigError(f'`who` must be agent, teacher or initial, got "{who}".')
    config = parse_config(read_yaml(path / CONFIG_FILE))
    if temperature is not None:
        evaluation = config.evaluation.model_copy(update={"temperature": temperature})
        config = config.model_copy(update={"evaluation": evaluation})
    checkpoint = newest_checkpoint(path)
    if checkpoint is None:
        raise ConfigError(f"{path} has no whole checkpoint yet.", hint="let the run start first.")
    policy = _start_policy(path, config)
    if who != "initial":
        policy.load(path / checkpoint)
    teaching = _as_teacher(policy, config, path, Path(checkpoint).name)
    with teaching if who == "teacher" else nullcontext():
        found = evaluate_samples(policy, config, num_episodes, num_samples)
        return found | {"weights_sha256": policy.fingerprint()}


def _start_policy(path: Path, config: Config) -> VlmPolicy:
    """Return the policy that a run's updates began with."""
    model = config.model
    if config.sft.num_steps or model.path.startswith(TINY_PREFIX):
        start = path / (START if config.sft.num_steps else MODEL)
        model = model.model_copy(update={"path": str(start)})
    return load_policy(config.model_copy(update={"model": model}))


@contextmanager
def _as_teacher(policy: VlmPolicy, config: Config, path: Path, update: str) -> Iterator[None]:
    """Let the policy wear the merge that a run has after an update."""
    directory = path / TEACHERS / update
    history = make_history(config)
    if history is None or not directory.is_dir():
        raise ConfigError(f"{path} has no teacher: it was trained without merging.")
    history.load(directory)
    if not history.updates:
        raise ConfigError(f"{path} has no teacher yet.", hint="the first merge needs an update.")
    with policy.wearing(history.next_teacher()):
        yield


def _table(arguments: EvalArguments, found: Mapping[str, Any]) -> Table:
    low, high = found["ci95"]
    solvable = found["solvable_success_rate"]
    title = f"{arguments.who} of {arguments.run_dir}, panel {found['panel_sha256'][:12]}"
    table = Table(title=escape(title))
    for column in ("success", "95 % interval", "return", "episodes", "success on solvable ones"):
        table.add_column(column)
    table.add_row(
        f"{found['success_rate']:.1%}",
        f"{low:.1%} – {high:.1%}",
        f"{found['return']:.2f}",
        str(found["episodes"]),
        "-" if solvable is None else f"{solvable:.1%} of {found['solvable_episodes']}",
    )
    return table
