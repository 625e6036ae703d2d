import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from gtr_turbo.core.lock import DirectoryLock
from gtr_turbo.envs.check import LAWS
from gtr_turbo.presets import make_preset
from gtr_turbo.runstate import LOCK_FILE, RunDirectory
from tests.console import TINY, Console
from tests.console import console as console


def contents(directory: Path) -> dict[str, bytes]:
    """Return every file below a directory, but for the lock's signature."""
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file() and path.name != LOCK_FILE
    }


# --------------------------------------------------------------------------------- run directories


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    """Return a run that was started under the small preset and left."""
    path = tmp_path / "run"
    RunDirectory.open(path, make_preset("ezpoints-tiny"), resume=False).close()
    (path / "metrics.jsonl").write_text('{"update": 1}\n')
    return path


def test_a_run_is_not_overwritten(console: Console, run_dir: Path) -> None:
    before = contents(run_dir)
    error = console.refused("train", *TINY, "--run-dir", run_dir)
    assert f"ResumeError: {run_dir} already holds a run." in error
    assert "hint: continue it with --resume, or choose another --run-dir." in error
    assert contents(run_dir) == before


def test_a_run_is_not_resumed_with_another_seed(console: Console, run_dir: Path) -> None:
    for option in ("--run.seed", "--seed"):
        error = console.refused("train", *TINY, "--run-dir", run_dir, "--resume", option, "7")
        assert "run.seed: 0 → 7" in error


def test_a_run_is_not_resumed_under_another_configuration(console: Console, run_dir: Path) -> None:
    before = contents(run_dir)
    error = console.refused("train", *TINY, "--run-dir", run_dir, "--resume", "--ppo.clip", "0.3")
    assert "was started under another configuration" in error
    assert f"ppo.clip: {make_preset('ezpoints-tiny').ppo.clip} → 0.3" in error
    assert contents(run_dir) == before


def test_a_run_in_use_is_left_alone(console: Console, run_dir: Path) -> None:
    before = contents(run_dir)
    lock = DirectoryLock.take(run_dir, LOCK_FILE, create=True)
    try:
        lock.sign()
        error = console.refused("train", *TINY, "--run-dir", run_dir, "--resume")
    finally:
        lock.release()
    assert f"RunLockedError: {run_dir} is in use by process " in error
    assert contents(run_dir) == before


def test_a_run_directory_that_is_a_file_is_refused(console: Console, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("precious")
    error = console.refused("train", *TINY, "--run-dir", file)
    assert f"CheckpointError: {file} cannot be used as a run directory" in error
    assert file.read_text() == "precious"


def test_a_device_that_is_not_there_is_refused_before_the_run_is_made(
    console: Console, tmp_path: Path
) -> None:
    path = tmp_path / "run"
    error = console.refused("train", *TINY, "--run-dir", path, "--model.device", "gpu")
    assert '`model.device` "gpu" is no torch device.' in error
    assert not path.exists()


def test_a_small_run_from_start_to_report(console: Console, tmp_path: Path) -> None:
    path = tmp_path / "run"
    small = {
        "sft.num_steps": 0,
        "sft.num_episodes": 30,
        "critic.hidden_sizes": "[8]",
        "evaluation.num_episodes": 4,
        "rollout.max_new_tokens": 4,
        "run.tensorboard": "false",
    }
    options = [f"--{key}={value}" for key, value in small.items()]
    code, out, _ = console.run("train", *TINY, "--updates", "0", "--run-dir", path, *options)
    assert code == 0
    assert "agent" in out.lower()
    summary = json.loads((path / "summary.json").read_text())

    again = tmp_path / "again.json"
    code, out, _ = console.run("eval", path, "--episodes", "3", "--json", again)
    assert code == 0
    assert "agent of " in out
    assert json.loads(again.read_text())["episodes"] == 3
    assert console.run("eval", path, "--who", "initial", "--json", again)[0] == 0
    measured = json.loads(again.read_text())
    assert measured["panel_sha256"] == summary["initial"]["panel_sha256"]
    assert "has no teacher" in console.refused("eval", path, "--who", "teacher")

    (path / "report.html").unlink()
    code, out, _ = console.run("report", path)
    assert (code, out) == (0, f"wrote {path / 'report.html'}\n")
    assert (path / "report.html").is_file()


def test_the_supervised_start_can_be_made_alone(console: Console, tmp_path: Path) -> None:
    out = tmp_path / "start"
    options = ["--sft.num_steps=1", "--sft.num_episodes=20", "--sft.batch_size=4"]
    code, printed, _ = console.run("sft", *TINY, "--out", out, *options)
    assert code == 0
    assert printed.endswith(f"the model that RL can start from is in {out / 'sft'}\n")
    before = contents(out)
    assert {"sft/model.safetensors", "sft/config.json"} <= before.keys()
    assert console.run("sft", *TINY, "--out", out, *options)[0] == 0
    assert contents(out) == before  # what is there is kept
    model = ["--model.path", out / "sft", "--sft.num_steps", "0"]
    assert console.config(*TINY, *model).model.path == str(out / "sft")


# ----------------------------------------------------------------------------------- other commands


def test_tasks_are_listed_with_what_they_are(console: Console) -> None:
    code, out, _ = console.run("env", "list")
    lines = dict(line.split(maxsplit=1) for line in out.splitlines())
    assert code == 0
    assert lines["points24"] == "four cards, target 24: the paper's card game"
    assert list(lines) == sorted(lines)
    assert console.run("env")[1] == out


def test_a_task_is_checked_law_by_law(console: Console) -> None:
    code, out, _ = console.run("env", "check", "ezpoints")
    assert code == 0
    assert "holds: a snapshot continues bit-equally\n" in out
    assert f"ezpoints-v0 keeps all {len(LAWS)} laws (" in out


def checkpoint(path: Path, value: float) -> Path:
    path.mkdir()
    (path / "config.json").write_text("{}")
    save_file({"layer.weight": torch.full((2, 3), float(value))}, path / "model.safetensors")
    return path


def test_checkpoints_are_merged(console: Console, tmp_path: Path) -> None:
    base, one, two = (checkpoint(tmp_path / name, v) for name, v in (("b", 1), ("c", 2), ("d", 4)))
    out = tmp_path / "merged"
    options = ["--base", base, "--out", out, "--density", "1", "--weights", "3", "1"]
    code, printed, _ = console.run("merge", one, two, *options)
    assert code == 0
    assert f"ties of 2 checkpoints: a model of 6 parameters in {out}" in printed
    # Changes 1 and 3, weighted 3 to 1: 1 + (3 · 1 + 1 · 3) / 4
    assert load_file(out / "model.safetensors")["layer.weight"].tolist() == [[2.5] * 3] * 2
    assert "exists already" in console.refused("merge", one, two, *options)


def test_a_mergekit_recipe_is_a_merge_too(console: Console, tmp_path: Path) -> None:
    checkpoint(tmp_path / "one", 2.0)
    checkpoint(tmp_path / "two", 4.0)
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("merge_method: linear\nmodels:\n- model: one\n- model: two\n")
    assert console.run("merge", "--config", recipe, "--out", tmp_path / "out")[0] == 0
    merged = load_file(tmp_path / "out" / "model.safetensors")
    assert merged["layer.weight"].tolist() == [[3.0] * 3] * 2


def test_an_unknown_merge_method_is_answered_with_the_list(
    console: Console, tmp_path: Path
) -> None:
    one = checkpoint(tmp_path / "one", 2.0)
    error = console.refused("merge", one, "--method", "tise", "--out", tmp_path / "out")
    assert 'MergeError: there is no merge method named "tise".' in error
    assert 'did you mean "ties"? Known methods: ' in error
    assert not (tmp_path / "out").exists()
