import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from rich.console import Console as RichConsole

from gtr_turbo.commands.play import play_in_terminal
from gtr_turbo.core.arguments import PlayArguments
from gtr_turbo.envs import make_task
from gtr_turbo.errors import ConfigError
from tests.console import Console
from tests.console import console as console

RULES = ("picture=compact", "prompt=compact")


def played(tmp_path: Path, lines: list[str], **options: Any) -> str:
    """Return what a session prints."""
    printed = io.StringIO()
    options = {"name": "ezpoints", "rules": RULES, "picture": tmp_path / "play.png"} | options
    console = RichConsole(file=printed, width=80)
    play_in_terminal(PlayArguments(**options), console, [f"{line}\n" for line in lines])
    return printed.getvalue()


def winning_lines(seed: int) -> list[str]:
    task = make_task("ezpoints", {"picture": "compact", "prompt": "compact"}, 0)
    task.reset(seed)
    return [turn.reply for turn in task.demonstrate(np.random.default_rng(0))]


def test_an_episode_is_won_with_whole_replies(tmp_path: Path) -> None:
    out = played(tmp_path, winning_lines(4), seed=4)
    assert out.count("→") == 4
    assert "solved." in out
    assert "reward: task 10; so far: 10" in out


def test_actions_alone_are_replies_too_and_bad_ones_are_told(tmp_path: Path) -> None:
    out = played(tmp_path, ["+", "no such action", "="])
    assert "→ +; reward: task 0" in out
    assert "→ no action (the action is not one of the task's); reward: task -1" in out
    assert "over, and not solved." in out
    assert "actions: " in out


@pytest.mark.parametrize("line", ["", "quit"])
def test_a_player_may_leave(tmp_path: Path, line: str) -> None:
    assert played(tmp_path, ["+", line, "="]).count("→") == 1


def test_the_picture_is_saved_and_can_be_shown(tmp_path: Path) -> None:
    out = played(tmp_path, [], seed=7, columns=20)
    saved = np.asarray(Image.open(tmp_path / "play.png"))
    task = make_task("ezpoints", {"picture": "compact", "prompt": "compact"}, 0)
    assert np.array_equal(saved, task.reset(7).picture)
    assert "▀" in out
    assert "▀" not in played(tmp_path, [], seed=7)


def test_a_record_is_played_again(tmp_path: Path) -> None:
    record = tmp_path / "game.jsonl"
    played(tmp_path, ["+", "nothing", "="], seed=3, record=record)
    rows = [json.loads(line) for line in record.read_text().splitlines()]
    assert (rows[0]["task"], rows[0]["seed"], len(rows)) == ("ezpoints", 3, 4)
    assert [row["rewards"]["task"] for row in rows[1:]] == [0, -1, -1]
    out = played(tmp_path, [], replay=record)
    assert "is what happens: 3 turns, return -2." in out


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows[1]["rewards"].update(task=5.0), "differs at turn 1: `rewards`"),
        (lambda rows: rows[0].update(seed=99), "differs at the start"),
        (lambda rows: rows[2].update(picture_sha256="0"), "differs at turn 2: `picture_sha256`"),
        (lambda rows: rows.append(rows[-1]), "goes on after its episode's end"),
        (lambda rows: rows[1].pop("reply"), "turn 1 has no reply"),
        (lambda rows: rows[0].pop("rules"), "is no record"),
        (lambda rows: rows[0].update(task="points24"), 'is a record of "points24"'),
        (lambda rows: rows.clear(), "is no record"),
    ],
)
def test_a_changed_record_is_found_out(tmp_path: Path, change: Any, message: str) -> None:
    record = tmp_path / "game.jsonl"
    played(tmp_path, ["+", "nothing", "="], seed=3, record=record)
    rows = [json.loads(line) for line in record.read_text().splitlines()]
    change(rows)
    record.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    with pytest.raises(ConfigError, match=message):
        played(tmp_path, [], replay=record)


@pytest.mark.parametrize("text", ["no json", "[" * 200_000, "[]", "\xff"])
def test_what_is_no_record_is_refused(tmp_path: Path, text: str) -> None:
    record = tmp_path / "game.jsonl"
    record.write_bytes(text.encode("latin-1"))
    with pytest.raises(ConfigError, match="is no record"):
        played(tmp_path, [], replay=record)


def test_files_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no record"):
        played(tmp_path, [], replay=tmp_path / "none.jsonl")
    with pytest.raises(ConfigError, match="names a file in"):
        played(tmp_path, [], picture=tmp_path / "no" / "play.png")


def test_the_command_reads_standard_input(
    console: Console, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("=\n"))
    picture = tmp_path / "play.png"
    code, out, err = console.run("play", "ezpoints", "--rules", *RULES, "--picture", picture)
    assert (code, err) == (0, "")
    assert "over, and not solved." in out
    assert "there is no task" in console.refused("play", "ezpoint")
