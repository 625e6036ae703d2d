"""`gtr-turbo play`: a person plays a task, and what was played can be checked.

A record is JSON lines: the first names the task, its rules and the episode's seed; each other one
is a turn: the reply, and what followed from it.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from PIL import Image
from rich.console import Console

from gtr_turbo.commands.env import parse_rules, print_line
from gtr_turbo.core.arguments import PlayArguments
from gtr_turbo.core.turns import Observation, StepResult, picture_hash
from gtr_turbo.envs.base import AbstractTask
from gtr_turbo.envs.registry import make_task
from gtr_turbo.errors import ConfigError
from gtr_turbo.report.terminal import blocks

RECORD_VERSION: Final = 1
MAX_RECORD_BYTES: Final = 50_000_000
"""Longer records are not read."""
_COLUMNS: Final = 60
_QUIT: Final = ("", "quit", "exit")


def play_in_terminal(arguments: PlayArguments, console: Console, lines: Iterable[str]) -> None:
    """Play an episode with the replies in `lines`, or play a record again.

    A line is an action, or a whole reply when it starts with a brace. An empty line, `quit` or the
    end of the lines stops. Raises ConfigError for a record that can't be read, or that was played
    by other rules than it says.
    """
    if arguments.replay is not None:
        _replay(arguments, console)
        return
    for path in filter(None, (arguments.picture, arguments.record)):
        if not path.absolute().parent.is_dir():
            raise ConfigError(f"{path} names a file in {path.parent}, which there is not.")
    rules = parse_rules(arguments.rules)
    task = make_task(arguments.name, rules, arguments.seed)
    rows = [_first_row(arguments.name, rules, arguments.seed, task.reset(arguments.seed))]
    _show(task.observation, arguments, console)
    _show_actions(task, console)
    total = 0.0
    for line in lines:
        text = line.strip()
        if text in _QUIT:
            break
        reply = text if text.startswith("{") else task.write_action(text)
        result = task.step(reply)
        rows.append(_row(reply, result))
        total += result.rewards["task"]
        _show_result(result, total, console)
        _show(result.observation, arguments, console)
        if result.terminated or result.truncated:
            print_line(console, "solved." if result.success else "over, and not solved.")
            break
        _show_actions(task, console)
    if arguments.record is not None:
        text = "".join(f"{json.dumps(row)}\n" for row in rows)
        arguments.record.write_text(text, encoding="utf-8")
        print_line(console, f"wrote {len(rows) - 1} turns to {arguments.record}")


def _first_row(name: str, rules: dict[str, Any], seed: int, shown: Observation) -> dict[str, Any]:
    return {
        "version": RECORD_VERSION,
        "task": name,
        "rules": rules,
        "seed": seed,
        "picture_sha256": picture_hash(shown.picture),
        "prompt": shown.prompt,
    }


def _row(reply: str, result: StepResult) -> dict[str, Any]:
    return {
        "reply": reply,
        "action": result.parsed.action,
        "legal": result.legal,
        "rewards": dict(result.rewards),
        "terminated": result.terminated,
        "truncated": result.truncated,
        "success": result.success,
        "picture_sha256": picture_hash(result.observation.picture),
        "prompt": result.observation.prompt,
    }


def _show(shown: Observation, arguments: PlayArguments, console: Console) -> None:
    Image.fromarray(shown.picture).save(arguments.picture)
    columns = arguments.columns
    if columns is None:
        columns = _COLUMNS if console.is_terminal else 0
    if columns > 0:
        console.print(blocks(shown.picture, columns))
    print_line(console, f"\n{shown.prompt}\n(picture: {arguments.picture})")


def _show_actions(task: AbstractTask, console: Console) -> None:
    actions = task.admissible_actions
    print_line(console, f"actions: {', '.join(actions) or 'none that are known'}")


def _show_result(result: StepResult, total: float, console: Console) -> None:
    parsed = result.parsed
    if parsed.action is None:
        verdict = f"no action ({parsed.reason})"
    else:
        verdict = f"{parsed.action}{'' if result.legal else ' (illegal)'}"
    rewards = ", ".join(f"{name} {value:g}" for name, value in result.rewards.items())
    print_line(console, f"\n→ {verdict}; reward: {rewards}; so far: {total:g}")


# ----------------------------------------------------------------------------------------- records


def _replay(arguments: PlayArguments, console: Console) -> None:
    path = arguments.replay or Path()
    first, *turns = _read_record(path)
    if first["task"] != arguments.name:
        raise ConfigError(
            f'{path} is a record of "{first["task"]}", not of "{arguments.name}".',
            hint=f"gtr-turbo play {first['task']} --replay {path}",
        )
    task = make_task(first["task"], first["rules"], 0)
    found = _first_row(first["task"], first["rules"], first["seed"], task.reset(first["seed"]))
    _compare(path, 0, first, found)
    ended = False
    for number, turn in enumerate(turns, start=1):
        if ended:
            raise ConfigError(f"{path} goes on after its episode's end, from turn {number} on.")
        result = task.step(turn["reply"])
        _compare(path, number, turn, _row(turn["reply"], result))
        ended = result.terminated or result.truncated
    total = sum(turn["rewards"]["task"] for turn in turns)
    print_line(console, f"{path} is what happens: {len(turns)} turns, return {total:g}.")


def _compare(path: Path, number: int, recorded: dict[str, Any], found: dict[str, Any]) -> None:
    for key, value in found.items():
        if recorded.get(key) != value:
            where = f"turn {number}" if number else "the start"
            raise ConfigError(
                f"{path} differs at {where}: `{key}` is recorded as {recorded.get(key)!r:.200},"
                f" but {value!r:.200} is what happens.",
                hint="the record was changed, or the task's code was.",
            )


def _read_record(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a record. Raises ConfigError when it is none."""
    if not path.is_file():
        raise ConfigError(f"there is no record {path}.")
    if path.stat().st_size > MAX_RECORD_BYTES:
        raise ConfigError(f"{path} has more than {MAX_RECORD_BYTES} bytes; it is not read.")
    try:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is no record: {error}.") from error
    kinds = {"task": str, "rules": dict, "seed": int, "version": int}
    is_head = bool(rows) and isinstance(rows[0], dict)
    is_head = is_head and all(isinstance(rows[0].get(key), kind) for key, kind in kinds.items())
    if not is_head or rows[0]["version"] != RECORD_VERSION:
        raise ConfigError(
            f"{path} is no record: its first line names no task, rules, seed and version"
            f" {RECORD_VERSION}."
        )
    for number, row in enumerate(rows[1:], start=1):
        if not isinstance(row, dict) or not isinstance(row.get("reply"), str):
            raise ConfigError(f"{path} is no record: turn {number} has no reply.")
    return rows
