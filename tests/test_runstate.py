import json
import logging
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from gtr_turbo.core.config import MUTABLE_AT_RESUME, Config, parse_config, read_yaml
from gtr_turbo.core.faultline import FAULT_VARIABLE, InjectedFaultError, forget_passings
from gtr_turbo.core.files import DISK_FULL_TEXTS
from gtr_turbo.errors import CheckpointError, NonFiniteError, ResumeError, RunLockedError
from gtr_turbo.runstate import RunDirectory, newest_checkpoint
from tests.core.test_files import files_limited_to

CRASH_RUN = Path(__file__).with_name("crash_run.py")


@pytest.fixture
def run(tmp_path: Path) -> Iterator[RunDirectory]:
    with RunDirectory.open(tmp_path / "run", Config(), resume=False) as directory:
        yield directory


@pytest.fixture
def quick_folder(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where there is one: what kill -9 leaves does not depend on the disk."""
    memory = Path("/dev/shm")
    if not (memory.is_dir() and os.access(memory, os.W_OK)):
        yield tmp_path
        return
    folder = Path(tempfile.mkdtemp(dir=memory))
    yield folder
    shutil.rmtree(folder)


def save(directory: RunDirectory, update: int, folder: str = "checkpoints") -> str:
    name = f"{folder}/update-{update:04d}"
    directory.write_directory(name, filling({"update": update}), {"update": update})
    return name


def filling(value: dict[str, Any]) -> Callable[[Path], None]:
    def fill(directory: Path) -> None:
        (directory / "state.json").write_text(json.dumps(value))
        save_file({"weight": np.arange(100, dtype=np.float32)}, directory / "w.safetensors")

    return fill


def listing(path: Path) -> list[str]:
    return sorted(p.relative_to(path).as_posix() for p in path.rglob("*"))


def contents(path: Path) -> dict[str, bytes]:
    return {name: (path / name).read_bytes() for name in listing(path) if (path / name).is_file()}


# ------------------------------------------------------------------------------------------- open
def test_a_new_run_writes_its_configuration(run: RunDirectory) -> None:
    assert listing(run.path) == ["LOCK", "config.yaml"]
    assert parse_config(read_yaml(run.path / "config.yaml")) == Config()
    header = (run.path / "config.yaml").read_text().splitlines()[:2]
    assert "gtr-turbo 0.1.0" in header[0]
    assert "sha256" in header[1]


def test_an_existing_run_is_not_touched_without_resume(tmp_path: Path) -> None:
    path = tmp_path / "run"
    RunDirectory.open(path, Config(), resume=False).close()
    (path / ".tmp-something-1").write_text("left over")
    before = contents(path)
    with pytest.raises(
        ResumeError, match=r"already holds a run.\n\nhint: continue it with --resume"
    ):
        RunDirectory.open(path, Config(), resume=False)
    assert contents(path) == before


def test_resuming_nothing_starts_it_and_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        RunDirectory.open(tmp_path / "run", Config(), resume=True).close()
    assert "starting it" in caplog.text
    assert (tmp_path / "run" / "config.yaml").is_file()


def test_another_configuration_is_refused_field_by_field(tmp_path: Path) -> None:
    path = tmp_path / "run"
    with RunDirectory.open(path, Config(), resume=False) as directory:
        save(directory, 1)
    before = contents(path)
    other = parse_config({"merge": {"density": 0.5}, "guidance": {"kind": "none"}})
    with pytest.raises(ResumeError) as caught:
        RunDirectory.open(path, other, resume=True)
    assert "  guidance.kind: kl → none\n  merge.density: 0.8 → 0.5" in str(caught.value)
    assert "hint:" in str(caught.value)
    after = contents(path)
    assert after.pop("LOCK") != b""
    assert after == {name: before[name] for name in after}
    RunDirectory.open(path, Config(), resume=True).close()


def test_mutable_fields_may_change_and_are_written_down(tmp_path: Path) -> None:
    path = tmp_path / "run"
    RunDirectory.open(path, Config(), resume=False).close()
    longer = parse_config({"run": {"num_updates": 99}})
    assert "run.num_updates" in MUTABLE_AT_RESUME
    RunDirectory.open(path, longer, resume=True).close()
    assert read_yaml(path / "config.yaml")["run"]["num_updates"] == 99


def test_a_run_in_use_is_refused_even_for_a_resume(run: RunDirectory) -> None:
    for resume in (True, False):
        with pytest.raises(RunLockedError, match=f"in use by process {os.getpid()}"):
            RunDirectory.open(run.path, Config(), resume=resume)


@pytest.mark.parametrize("resume", [True, False])
def test_remains_without_a_configuration_are_refused(tmp_path: Path, resume: bool) -> None:
    (tmp_path / "checkpoints").mkdir()
    with pytest.raises(ResumeError, match=r"holds checkpoints, but no config.yaml"):
        RunDirectory.open(tmp_path, Config(), resume=resume)
    assert listing(tmp_path) == ["checkpoints"]


def test_leftovers_are_swept_at_the_start(tmp_path: Path) -> None:
    path = tmp_path / "run"
    with RunDirectory.open(path, Config(), resume=False) as directory:
        save(directory, 1)
    (path / "checkpoints" / ".tmp-update-0002-1").mkdir()
    (path / "checkpoints" / ".tmp-update-0002-1" / "x.json").write_text("{}")
    (path / ".tmp-latest-1").write_text("x")
    RunDirectory.open(path, Config(), resume=True).close()
    assert not [name for name in listing(path) if ".tmp-" in name]
    assert newest_checkpoint(path) == "checkpoints/update-0001"


def test_what_was_set_aside_comes_back_unless_it_was_replaced(tmp_path: Path) -> None:
    path = tmp_path / "run"
    with RunDirectory.open(path, Config(), resume=False) as directory:
        directory.write_directory("sft", filling({"try": 1}))
    whole = contents(path / "sft")
    (path / "sft").rename(path / ".tmp-replaced-sft")
    with RunDirectory.open(path, Config(), resume=True) as directory:
        assert directory.verify_directory("sft")
    shutil.copytree(path / "sft", path / ".tmp-replaced-sft")
    (path / ".tmp-replaced-sft" / "state.json").write_text("older")
    RunDirectory.open(path, Config(), resume=True).close()
    assert contents(path / "sft") == whole
    assert not (path / ".tmp-replaced-sft").exists()


# -------------------------------------------------------------------------------- writing, reading
def test_what_is_written_can_be_verified_and_read(run: RunDirectory) -> None:
    name = save(run, 7)
    assert run.verify_directory(name)
    assert run.read_manifest(name)["update"] == 7
    run.set_latest(name)
    assert (run.path / "latest").read_text() == "checkpoints/update-0007\n"
    assert run.latest() == name


def test_a_redone_directory_replaces_the_old_one(run: RunDirectory) -> None:
    run.write_directory("sft", filling({"try": 1}))
    run.write_directory("sft", filling({"try": 2}))
    assert json.loads((run.path / "sft" / "state.json").read_text()) == {"try": 2}
    assert listing(run.path) == [
        "LOCK",
        "config.yaml",
        "sft",
        "sft/MANIFEST.json",
        "sft/state.json",
        "sft/w.safetensors",
    ]


def test_the_newest_whole_checkpoint_is_found_by_number(
    run: RunDirectory, caplog: pytest.LogCaptureFixture
) -> None:
    assert run.newest_checkpoint() is None
    for update in (9, 10, 10_001):
        save(run, update)
    (run.path / "checkpoints" / "notes").mkdir()
    assert run.newest_checkpoint() == "checkpoints/update-10001"
    (run.path / "checkpoints" / "update-10001" / "state.json").write_text("{}")
    with caplog.at_level(logging.WARNING):
        assert run.newest_checkpoint() == "checkpoints/update-0010"
    assert "update-10001 is damaged and passed over: state.json does not match" in caplog.text
    with pytest.raises(CheckpointError, match=r"update-10001 cannot be used: state.json"):
        run.read_manifest("checkpoints/update-10001")


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "/etc/x", "a/../b", ".hidden", "a/.tmp-b"])
def test_names_stay_inside_the_run(run: RunDirectory, name: str) -> None:
    with pytest.raises(CheckpointError, match="is not a name inside a run directory"):
        run.write_directory(name, filling({}))
    with pytest.raises(CheckpointError, match="is not a name inside a run directory"):
        run.write_json(name, {})


def test_latest_names_only_what_is_there(run: RunDirectory) -> None:
    with pytest.raises(CheckpointError, match="cannot name checkpoints/update-0001"):
        run.set_latest("checkpoints/update-0001")


def test_non_finite_json_is_refused(run: RunDirectory) -> None:
    with pytest.raises(NonFiniteError, match="`loss`"):
        run.write_json("summary.json", {"loss": float("nan")})
    with pytest.raises(NonFiniteError, match="`loss`"):
        run.write_directory("sft", filling({}), {"loss": float("inf")})
    assert listing(run.path) == ["LOCK", "config.yaml"]
    run.write_json("summary.json", {"rate": 0.5})
    assert json.loads((run.path / "summary.json").read_text()) == {"rate": 0.5}


def test_pickles_are_not_written(run: RunDirectory) -> None:
    with pytest.raises(CheckpointError, match=r"optimizer.pt is neither safetensors nor JSON"):
        run.write_directory("sft", lambda path: (path / "optimizer.pt").touch())
    assert listing(run.path) == ["LOCK", "config.yaml"]


# ------------------------------------------------------------------------------------------ pruning
def test_pruning_keeps_the_newest_and_removes_leftovers(run: RunDirectory) -> None:
    for update in range(1, 6):
        save(run, update)
    (run.path / "checkpoints" / "update-0004" / "MANIFEST.json").unlink()
    (run.path / "checkpoints" / "notes.txt").write_text("mine")
    run.prune("checkpoints", 2)
    assert sorted(os.listdir(run.path / "checkpoints")) == [
        "notes.txt",
        "update-0003",
        "update-0005",
    ]


def test_pruning_by_name_never_removes_what_latest_names(run: RunDirectory) -> None:
    for update in (1, 2, 3):
        save(run, update, "teacher")
        save(run, update)
    run.set_latest("checkpoints/update-0003")
    run.prune("checkpoints", {"checkpoints/update-0001"})
    run.prune("teacher", {"update-0002"})
    assert sorted(os.listdir(run.path / "checkpoints")) == ["update-0001", "update-0003"]
    assert os.listdir(run.path / "teacher") == ["update-0002"]
    run.prune("nowhere", 1)
    with pytest.raises(CheckpointError, match="keep = 0"):
        run.prune("checkpoints", 0)


# ----------------------------------------------------------------------------------------- failures
POINTS = ["write.filled", "write.synced", "write.manifest", "write.manifest_synced"]
SET_ASIDE = "write.set_aside"


@pytest.mark.parametrize(
    ("point", "exists"),
    [*((point, False) for point in POINTS), *((point, True) for point in (*POINTS, SET_ASIDE))],
)
def test_a_failure_while_writing_changes_nothing(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch, point: str, exists: bool
) -> None:
    if exists:
        run.write_directory("sft", filling({"try": 1}))
    before = contents(run.path)
    for action, error in (("raise", InjectedFaultError), ("enospc", CheckpointError)):
        forget_passings()
        monkeypatch.setenv(FAULT_VARIABLE, f"{point}:1:{action}")
        with pytest.raises(error):
            run.write_directory("sft", filling({"try": 2}))
        assert contents(run.path) == before


def test_a_full_disk_keeps_the_last_checkpoint(run: RunDirectory) -> None:
    save(run, 1)
    before = contents(run.path)

    def too_much(directory: Path) -> None:
        save_file({"weight": np.zeros(100_000, dtype=np.float32)}, directory / "w.safetensors")

    with files_limited_to(50_000), pytest.raises(CheckpointError) as caught:
        run.write_directory("checkpoints/update-0002", too_much)
    assert "update-0002: it needs" in str(caught.value)
    assert "bytes are free" in str(caught.value)
    assert any(text in str(caught.value.__cause__) for text in DISK_FULL_TEXTS)
    assert contents(run.path) == before
    assert run.newest_checkpoint() == "checkpoints/update-0001"


# ----------------------------------------------------------------------------- order, kill by kill
def test_files_reach_the_disk_before_their_names(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[tuple[str, str]] = []

    def tracked(path: str) -> str:
        return os.path.relpath(path, run.path).replace(f"-{os.getpid()}", "")

    def fsync(descriptor: int) -> None:
        events.append(("sync", tracked(os.readlink(f"/proc/self/fd/{descriptor}"))))

    def recording(name: str, real: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
        def move(source: Any, target: Any) -> None:
            events.append((name, f"{tracked(str(source))} > {tracked(str(target))}"))
            real(source, target)

        return move

    (run.path / "checkpoints").mkdir()
    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "rename", recording("rename", os.rename))
    monkeypatch.setattr(os, "replace", recording("rename", os.replace))
    run.set_latest(save(run, 1))
    temporary = "checkpoints/.tmp-update-0001"
    assert events == [
        ("sync", "."),
        ("sync", f"{temporary}/state.json"),
        ("sync", f"{temporary}/w.safetensors"),
        ("sync", f"{temporary}/MANIFEST.json"),
        ("sync", temporary),
        ("rename", f"{temporary} > checkpoints/update-0001"),
        ("sync", "checkpoints"),
        ("sync", ".tmp-latest"),
        ("rename", ".tmp-latest > latest"),
        ("sync", "."),
    ]


def killed_everywhere(folder: Path, scenario: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, str(CRASH_RUN), str(folder), scenario],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "result.json").read_text())


@pytest.mark.slow
def test_a_run_killed_at_any_point_loses_nothing_and_ends_the_same(quick_folder: Path) -> None:
    result = killed_everywhere(quick_folder, "train")
    assert not result["torch"]
    assert {"checkpoints/update-0003/MANIFEST.json", "metrics.jsonl"} <= set(result["files"])
    found = result["found"]
    assert len(found) > 70
    assert len({kill["point"] for kill in found}) >= 12
    for kill in found:
        assert kill["killed"], kill
        assert kill["reported"] <= kill["newest"] <= kill["reported"] + 1, kill
        assert kill["went_on"], kill
        assert kill["same"], kill


def test_a_replacement_killed_at_any_point_leaves_the_old_or_the_new(quick_folder: Path) -> None:
    found = killed_everywhere(quick_folder, "replace")["found"]
    texts = [kill["text"] for kill in found]
    assert set(texts) == {"old", "new"}
    assert texts == sorted(texts, reverse=True)  # old, …, old, new, …, new
    assert all(kill["killed"] and kill["went_on"] and kill["same"] for kill in found)
