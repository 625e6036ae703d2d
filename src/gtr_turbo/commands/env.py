"""`gtr-turbo env`: the tasks, the laws that they keep, and what can be won without a model."""

from collections.abc import Callable, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from gtr_turbo.core.arguments import EnvCheckArguments
from gtr_turbo.core.plain_yaml import parse_yaml
from gtr_turbo.envs.base import AbstractTask
from gtr_turbo.envs.check import check_task
from gtr_turbo.envs.episodes import make_generator
from gtr_turbo.envs.players import ExpertPlayer, Measurement, RandomPlayer, measure
from gtr_turbo.envs.registry import list_tasks, make_task, task_entry
from gtr_turbo.errors import ConfigError, TaskError


def show_tasks(console: Console) -> None:
    """Print every task with its line."""
    for name in list_tasks():
        print_line(console, f"{name:12} {task_entry(name).summary}")


def parse_rules(pairs: Sequence[str]) -> dict[str, Any]:
    """Return the rules of NAME=VALUE pairs. Raises ConfigError for anything else.

    >>> parse_rules(["max_steps=7", "picture=compact"])
    {'max_steps': 7, 'picture': 'compact'}
    """
    rules: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name:
            raise ConfigError(f"`{pair}` is no rule.", hint="write --rules NAME=VALUE …")
        rules[name.replace("-", "_")] = parse_yaml(text, f"the value of the rule `{name}`")
    return rules


def check_one(arguments: EnvCheckArguments, console: Console) -> None:
    """Print the laws that a task keeps, and what its expert and play at random reach.

    Raises TaskError for the first law that is broken.
    """
    if arguments.episodes < 0:
        raise ConfigError(f"`--episodes` must not be negative, got {arguments.episodes}.")
    rules = parse_rules(arguments.rules)

    def make(seed: int) -> AbstractTask:
        return make_task(arguments.name, rules, seed)

    fault = _expert_fault(make, arguments.seed)
    report = check_task(make, with_expert=fault is None)
    for law in report.laws:
        print_line(console, f"holds: {law}")
    if fault is not None:
        print_line(console, f"the laws about an expert don't apply: {fault}")
    print_line(
        console,
        f"{report.task_id} keeps all {len(report.laws)} laws ({report.num_episodes} episodes,"
        f" {report.num_solvable} of them solvable, {report.num_turns} turns).",
    )
    if arguments.episodes:
        players = {"play at random": RandomPlayer(arguments.seed)}
        if fault is None:
            players = {"expert": ExpertPlayer(arguments.seed), **players}
        reached = {
            who: measure(make, player, arguments.episodes, arguments.seed)
            for who, player in players.items()
        }
        console.print(_table(arguments, reached))


def print_line(console: Console, text: str) -> None:
    """Print a line as it is: nothing in it is markup, and it is not wrapped."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def _expert_fault(make: Callable[[int], AbstractTask], seed: int) -> str | None:
    """Return why a task can't demonstrate anything; None when it can."""
    task = make(seed)
    task.reset(seed)
    try:
        task.demonstrate(make_generator(seed))
    except TaskError as error:
        return error.message
    return None


def _table(arguments: EnvCheckArguments, reached: dict[str, Measurement]) -> Table:
    first, last = arguments.seed, arguments.seed + arguments.episodes - 1
    table = Table(title=f"episodes of the seeds {first} to {last}")
    for column in ("who", "episodes", "number", "solvable", "success", "return", "turns"):
        table.add_column(column)
    for who, found in reached.items():
        rows = {"all": found.total}
        if len(found.by_kind) > 1:
            rows |= found.by_kind
        for kind, count in rows.items():
            means = (f"{found.mean_return:.2f}", f"{found.mean_turns:.1f}")
            table.add_row(
                who if kind == "all" else "",
                escape(kind),
                str(count.num_episodes),
                str(count.num_solvable),
                f"{count.success_rate:.1%}",
                *(means if kind == "all" else ("", "")),
            )
    return table
