import io
from pathlib import Path

from rich.console import Console

from gtr_turbo.core.config import Config
from gtr_turbo.studies.progress import StudyProgress, num_updates


def test_a_file_gets_a_line_for_each_event() -> None:
    file = io.StringIO()
    with StudyProgress(3, Console(file=file)) as progress:
        progress.started("kl-seed0")
        progress.show([("kl-seed0", Path("nowhere"), Config())])
        progress.finished("kl-seed0")
        progress.failed("kl-seed1", "it ended with exit code 2")
    lines = file.getvalue().splitlines()
    assert lines == [
        "started   kl-seed0",
        "finished  kl-seed0 (1 of 3, 0 s)",
        "FAILED    kl-seed1: it ended with exit code 2 (2 of 3)",
    ]


def test_a_terminal_sees_how_far_each_run_is(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text("{}\n{}\n")
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=100)
    config = Config()
    with StudyProgress(3, console) as progress:
        progress.started("kl-seed0")
        progress.show([("kl-seed0", tmp_path, config)])
    assert f"2/{config.run.num_updates}" in file.getvalue()


def test_updates_are_counted_in_the_log(tmp_path: Path) -> None:
    assert num_updates(tmp_path) == 0
    (tmp_path / "metrics.jsonl").write_text('{"update": 1}\n{"update": 2}\n{"upd')
    assert num_updates(tmp_path) == 2
