import json
import re
from pathlib import Path

import pytest

from gtr_turbo.core.faultline import FAULT_VARIABLE, forget_passings
from gtr_turbo.errors import CheckpointError, NonFiniteError, ResumeError, UnknownNameError
from gtr_turbo.metrics import METRICS, TIMING_METRICS, MetricsLog, read_metrics
from tests.core.test_files import files_limited_to
from tests.structure.source import ROOT


def write(path: Path, updates: range, resume_after: int | None = None) -> None:
    with MetricsLog(path, tensorboard=False, resume_after=resume_after) as log:
        for update in updates:
            log.append({"update": update, "return": update / 3, "guidance_kl": None})


def updates(path: Path) -> list[int]:
    return [line["update"] for line in read_metrics(path)]


def test_one_line_per_update_with_exact_numbers(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    write(path, range(1, 4))
    lines = path.read_text().splitlines()
    assert len(lines) == 3
    assert json.loads(lines[0]) == {"update": 1, "return": 1 / 3, "guidance_kl": None}
    assert updates(path) == [1, 2, 3]


def test_a_resume_holds_each_update_once(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    write(path, range(1, 6))
    whole = path.read_bytes()
    write(path, range(4, 6), resume_after=3)
    assert path.read_bytes() == whole


def test_a_new_run_and_a_resume_before_the_first_checkpoint_start_empty(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    for resume_after in (None, 0):
        write(path, range(1, 3))
        write(path, range(1, 2), resume_after=resume_after)
        assert updates(path) == [1]


def test_a_torn_last_line_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    write(path, range(1, 4))
    whole = path.read_bytes()
    for cut in range(1, 20):
        path.write_bytes(whole[:-cut])
        assert updates(path) == [1, 2]
    write(path, range(3, 4), resume_after=2)
    assert path.read_bytes() == whole


def test_a_damaged_line_in_the_middle_is_named(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    write(path, range(1, 4))
    lines = path.read_text().splitlines(keepends=True)
    for wrong in ("{\n", "[]\n", "{}\n", lines[0]):
        path.write_text(lines[0] + wrong + lines[2])
        with pytest.raises(CheckpointError, match="line 2 of"):
            read_metrics(path)


def test_unknown_names_are_refused_with_the_nearest(tmp_path: Path) -> None:
    with MetricsLog(tmp_path / "m.jsonl", tensorboard=False, resume_after=None) as log:
        with pytest.raises(UnknownNameError, match='did you mean "success_rate"'):
            log.append({"update": 1, "sucess_rate": 0.5})
        assert (tmp_path / "m.jsonl").read_bytes() == b""


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_non_finite_numbers_are_refused_by_name(tmp_path: Path, value: float) -> None:
    with MetricsLog(tmp_path / "m.jsonl", tensorboard=False, resume_after=None) as log:
        with pytest.raises(NonFiniteError, match="metric `grad_norm` of update 4 is"):
            log.append({"update": 4, "grad_norm": value})
        assert (tmp_path / "m.jsonl").read_bytes() == b""


def test_an_update_is_logged_once_and_in_order(tmp_path: Path) -> None:
    with MetricsLog(tmp_path / "m.jsonl", tensorboard=False, resume_after=None) as log:
        log.append({"update": 2})
        for update in (2, 1, None):
            with pytest.raises(ResumeError, match="holds updates up to 2"):
                log.append({"update": update})


def test_a_full_disk_leaves_no_half_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "metrics.jsonl"
    with MetricsLog(path, tensorboard=False, resume_after=None) as log:
        log.append({"update": 1})
        forget_passings()
        monkeypatch.setenv(FAULT_VARIABLE, "metrics.written:1:enospc")
        with pytest.raises(CheckpointError, match=r"metrics.jsonl: it needs 14 bytes"):
            log.append({"update": 2})
        assert updates(path) == [1]
        log.append({"update": 2})
    assert updates(path) == [1, 2]


def test_a_line_that_only_half_fits_is_taken_back(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    with MetricsLog(path, tensorboard=False, resume_after=None) as log:
        log.append({"update": 1})
        with files_limited_to(20), pytest.raises(CheckpointError, match="it needs 14 bytes"):
            log.append({"update": 2})
        assert path.read_bytes() == b'{"update": 1}\n'
        log.append({"update": 3})
    assert path.read_bytes() == b'{"update": 1}\n{"update": 3}\n'


@pytest.mark.slow
def test_tensorboard_gets_the_numbers_and_hides_what_is_redone(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    path = tmp_path / "metrics.jsonl"
    for resume_after, value in ((None, 1.0), (1, 2.0)):
        with MetricsLog(path, tensorboard=True, resume_after=resume_after) as log:
            for update in (1, 2) if resume_after is None else (2, 3):
                log.append({"update": update, "return": value, "teacher_fingerprint": "ab"})
    events = EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    assert [(e.step, e.value) for e in events.Scalars("return")] == [(1, 1.0), (2, 2.0), (3, 2.0)]
    assert "teacher_fingerprint" not in events.Tags()["scalars"]


def test_timing_metrics_are_metrics() -> None:
    assert set(METRICS) > TIMING_METRICS
    assert {"seconds_act", "env_steps_per_second", "peak_memory_mb"} <= TIMING_METRICS
    assert not {"success_rate", "guidance_kl", "update"} & TIMING_METRICS


def test_the_documentation_explains_exactly_these_numbers() -> None:
    page = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-z_]+)` \| (.+) \|$", page, re.MULTILINE)
    assert dict(rows) == METRICS
    assert len(rows) == len(METRICS)
