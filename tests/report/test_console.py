import io
import time
from pathlib import Path

import pytest
from rich.console import Console

from gtr_turbo.report.console import COLUMNS, PHASES, NullProgress, RunProgress, duration
from tests.report.fake_run import evaluation

METRICS_LINE = {
    "update": 7, "env_steps": 7168, "env_steps_per_second": 132.44, "success_rate": 0.425,
    "guidance_kl": 0.1234, "clip_fraction": 0.021, "explained_variance": -0.31, "entropy": 0.412,
    "seconds_act": 12.2, "seconds_improve": 5.5, "seconds_teach": None,
}  # fmt: skip
SUMMARY = {
    "initial": evaluation(0.125), "agent": evaluation(0.75) | {"weights_sha256": "ab" * 32},
    "teacher": None, "env_steps": 30720, "updates": 30, "wall_seconds": 372.4,
}  # fmt: skip


def show(run_dir: str = "runs/demo", **console: object) -> tuple[RunProgress, io.StringIO]:
    text = io.StringIO()
    return RunProgress(Path(run_dir), Console(file=text, **console)), text  # type: ignore[arg-type]


def test_a_file_gets_one_plain_aligned_line_per_update() -> None:
    progress, text = show()
    with progress:
        for name in PHASES:
            progress.phase(name)
            progress.step(3, 10)
        progress.update(METRICS_LINE)
        progress.update(METRICS_LINE | {"update": 8, "guidance_kl": None})
    lines = text.getvalue().splitlines()
    assert lines[0].startswith("sft: ")
    assert lines[1].startswith("evaluate: ")
    heads, seventh, eighth = lines[2:]
    assert heads.split() == ["update", "env", "steps", "steps/s", "success", "KL", "clip",
                             "expl.var", "entropy", "seconds"]  # fmt: skip
    assert seventh.split() == ["7", "7,168", "132.4", "42.5%", "0.123", ".021", "-0.310", "0.412",
                               "17.7"]  # fmt: skip
    assert eighth.split()[4] == "-"
    assert len({len(line) for line in (heads, seventh, eighth)}) == 1
    assert len(seventh) == sum(width for _, width in COLUMNS) < 80
    assert "\x1b" not in text.getvalue()


def test_a_long_phase_is_heard_of_in_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    progress, text = show()
    progress.phase("act")
    start = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: start + 31.0)
    progress.step(320, 1024)
    progress.step(321, 1024)
    assert text.getvalue() == "act: 320 of 1024\n"


def test_the_header_comes_back_after_a_screen() -> None:
    progress, text = show()
    for update in range(1, 42):
        progress.update({"update": update})
    assert text.getvalue().count("expl.var") == 3


def test_a_terminal_gets_a_bar_and_loses_it_again() -> None:
    progress, text = show(force_terminal=True, width=100)
    with progress:
        progress.phase("act")
        progress.step(5, 10)
        progress.update(METRICS_LINE)
    assert "playing" in text.getvalue()
    assert "42.5%" in text.getvalue()
    assert text.getvalue().rstrip().endswith("\x1b[2K")


def test_the_closing_table_says_what_came_out_and_what_is_next() -> None:
    progress, text = show("runs/[demo] with a long name " + "x" * 80)
    progress.summary_table(SUMMARY)
    shown = text.getvalue()
    assert "before (initial)     12.5%    5.7% to 19.3%" in shown
    assert "agent                75.0%   68.2% to 81.8%" in shown
    assert "teacher" not in shown
    assert "30 updates, 30,720 environment steps, 6 min 12 s" in shown
    assert f"weights  sha256 {'ab' * 32}" in shown
    assert f"report   runs/[demo] with a long name {'x' * 80}/report.html\n" in shown
    assert "next     gtr-turbo eval 'runs/[demo] with a long name" in shown
    assert "\x1b" not in shown


def test_silence_is_complete(capsys: pytest.CaptureFixture[str]) -> None:
    progress = NullProgress()
    progress.phase("act")
    progress.step(1, 2)
    progress.update(METRICS_LINE)
    progress.summary_table(SUMMARY)
    progress.close()
    assert capsys.readouterr().out == ""


def test_an_unknown_phase_is_a_mistake() -> None:
    with pytest.raises(KeyError):
        show()[0].phase("lunch")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0 s"), (59.6, "1 min 00 s"), (372.4, "6 min 12 s"), (7200.0, "2 h 00 min 00 s")],
)
def test_durations_in_words(seconds: float, text: str) -> None:
    assert duration(seconds) == text
