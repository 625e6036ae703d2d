"""Equal seeds give equal runs, and a run that was killed anywhere ends as if it had not been."""

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.structure.source import ROOT
from tests.world import LORA, World

FULL: dict[str, Any] = {
    "model": "tiny:qwen2_5_vl",
    "sft__num_steps": 4,
    "sft__num_episodes": 20,
    "rollout__max_new_tokens": 12,
    "rollout__turns_per_update": 8,
    "ppo__micro_batch_size": 4,
    "ppo__minibatch_size": 4,
    "evaluation__num_episodes": 2,
    "evaluation__num_parallel": 2,
    "evaluation__interval": 2,
    "critic__warmup_updates": 0,
}
LORA_FIELDS: dict[str, Any] = {
    **{key.replace(".", "__"): value for key, value in LORA.items()},
    "model__finetuning": "lora",
    "lora__dropout": 0.2,
    "ppo__dropout": True,
    "critic__trunk": "own_adapter",
    "merge__weights": "ema",
    "merge__interval": 2,
    "run__num_updates": 4,
}
KILLS = {
    "config.written:1": "before anything but the configuration",
    "write.filled:1": "the tiny model's directory filled, not named",
    "sft.trained:1": "trained, not written",
    "write.renamed:1": "the start of RL written",
    "evaluated:1": "the initial evaluation made, not written",
    "write.manifest:1": "in the empty teacher",
    "write.filled:2": "in the first checkpoint",
    "phase.teach:1": "at the start of update 1",
    "phase.act:1": "before playing",
    "scored:1": "scored",
    "phase.credit:1": "guided",
    "phase.improve:1": "before the first step",
    "phase.remember:1": "after the last step",
    "metrics.written:1": "in the line of metrics",
    "metrics.appended:1": "with metrics, without a checkpoint",
    "write.synced:1": "in the teacher of update 1",
    "write.renamed:1#2": "the teacher written, its checkpoint not",
    "write.set_aside:1": "the same teacher being replaced",
    "write.filled:2#2": "in the checkpoint of update 1",
    "write.renamed:2": "the checkpoint written, `latest` not moved",
    "evaluated:2": "the teacher's evaluation of update 2 made, not written",
    "phase.teach:2": "update 2 done, update 3 begun",
    "prune.manifest:1": "while an old teacher is deleted",
    "summary:1": "evaluated for the last time, no summary",
    "file.written:2": "in the summary's files",
}
"""Where the run dies, in the order of its life; `#` tells equal points apart."""


@pytest.fixture(scope="module")
def found(world: World, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the results of all jobs of this file, made by one process and its forks."""
    folder = tmp_path_factory.mktemp("runs")
    lora = {"model": str(world.trained), **LORA_FIELDS}
    small = {**FULL, **lora, "sft__num_steps": 0}
    jobs = [
        {"name": "whole", "fields": FULL, "kills": []},
        {"name": "twin", "fields": FULL, "kills": []},
        {"name": "seed1", "fields": {**FULL, "run__seed": 1}, "kills": []},
        {"name": "killed", "fields": FULL, "kills": [kill.split("#")[0] for kill in KILLS]},
        {"name": "lora", "fields": small, "kills": []},
        {
            "name": "lora-killed",
            "fields": small,
            "kills": ["phase.improve:2", "write.filled:1", "phase.teach:2", "metrics.appended:1"],
        },
    ]
    plan = {"folder": str(folder), "jobs": jobs, "result": str(folder / "result.json")}
    (folder / "plan.json").write_text(json.dumps(plan))
    done = subprocess.run(
        [sys.executable, "-m", "tests.train.crash_worker", str(folder / "plan.json")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads((folder / "result.json").read_text())
    for name, result in found.items():
        assert "end" in result, f"{name}: {done.stderr[-4000:]}"
    return found


def test_the_same_seed_gives_the_same_run(found: dict[str, Any]) -> None:
    assert found["whole"]["end"] == found["twin"]["end"]
    assert found["whole"]["weights"] == found["twin"]["weights"]
    assert len(set(found["whole"]["weights"].values())) == 4, "each update moved the weights"


def test_another_seed_gives_another_run(found: dict[str, Any]) -> None:
    ends = [found[name]["end"] for name in ("whole", "seed1")]
    assert ends[0]["metrics"] != ends[1]["metrics"]
    hashes = [end["summary"]["agent"]["weights_sha256"] for end in ends]
    assert hashes[0] != hashes[1]


@pytest.mark.parametrize("number", range(len(KILLS)), ids=list(KILLS))
def test_each_death_leaves_whole_checkpoints_of_the_same_run(
    found: dict[str, Any], number: int
) -> None:
    death, whole = found["killed"]["deaths"][number], found["whole"]["weights"]
    assert death["killed"], "the run did not die where it was to"
    assert death["weights"].items() <= whole.items()
    if death["weights"]:
        assert death["newest"] == f"checkpoints/{max(death['weights'])}"


def test_a_run_that_died_everywhere_ends_like_one_that_never_did(found: dict[str, Any]) -> None:
    assert found["killed"]["end"]["metrics"] == found["whole"]["end"]["metrics"]
    assert found["killed"]["end"] == found["whole"]["end"]
    assert found["killed"]["weights"] == found["whole"]["weights"]


def test_adapters_dropout_and_an_old_teacher_resume_too(found: dict[str, Any]) -> None:
    assert all(death["killed"] for death in found["lora-killed"]["deaths"])
    assert found["lora-killed"]["end"] == found["lora"]["end"]
    assert found["lora-killed"]["weights"] == found["lora"]["weights"]
    ages = [line["teacher_updates"] for line in found["lora"]["end"]["metrics"]]
    assert ages == [0, 1, 1, 3], "the second merge waits for two more checkpoints"
    seen = [line["teacher_fingerprint"] for line in found["lora"]["end"]["metrics"]]
    assert seen[1] == seen[2] != seen[3]
