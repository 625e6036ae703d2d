"""Whole runs that the guard watches: what a reset leaves behind, and that a resume repeats it."""

import logging
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from gtr_turbo.core.config import Config
from gtr_turbo.policies.weights import BESIDE_OFFSET_FILE, FULL_FILE, OFFSET_FILE
from gtr_turbo.train.gtr_turbo import train
from gtr_turbo.train.optim import FILE
from tests.train.runs import lines as metric_lines
from tests.train.runs import numbers, run, session_of
from tests.world import LORA, World, tiny_config

QUICK: dict[str, Any] = {
    "rollout__turns_per_update": 8,
    "rollout__max_new_tokens": 24,
    "evaluation__num_episodes": 1,
    "critic__warmup_updates": 0,
    "guidance__estimator": "k3",
}
ADAPTERS = {"model__finetuning": "lora", **{k.replace(".", "__"): v for k, v in LORA.items()}}
NEVER = {
    "guard__min_valid_format_rate": 0.0,
    "guard__max_unfinished_rate": 1.0,
    "guard__min_legal_rate": 0.0,
    "guard__min_distinct_thought_share": 0.0,
    "guard__min_thought_length_ratio": 0.0,
    "guard__max_shared_thought_rate": 1.0,
    "guard__min_thought_state_effect": -100.0,
    "guard__max_success_drop": 1.0,
}
"""No alarm at all."""
ON_SCHEDULE = {"guard__action": "reset_to_teacher", "guard__interval": 2, **NEVER}


def config_of(world: World, **fields: Any) -> Config:
    return tiny_config(world.trained, **{**QUICK, **fields})


@pytest.mark.parametrize("adapters", [{}, ADAPTERS], ids=["full", "lora"])
def test_a_reset_puts_the_agent_onto_the_last_merge_and_remembers_nothing(
    world: World, tmp_path: Path, adapters: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    session = session_of(config_of(world, **adapters, **ON_SCHEDULE), tmp_path / "run")
    with caplog.at_level(logging.WARNING):
        train(session)
    session.close()
    session.run.close()
    lines = metric_lines(tmp_path / "run" / "metrics.jsonl")
    assert [line["guard_resets"] for line in lines] == [0, 1, 1]
    assert [line["guard_alarms"] for line in lines] == [0, 0, 0]
    assert "put onto its teacher (reset 1)" in caplog.text
    assert lines[0]["agent_distance"] > 0
    assert lines[1]["agent_teacher_distance"] < 1e-5 * lines[1]["teacher_distance"]
    assert lines[2]["agent_teacher_distance"] > 1e-3 * lines[2]["teacher_distance"]
    # Update 2 is in no merge, so the teacher of update 3 is the one that the agent was put onto.
    assert [line["teacher_updates"] for line in lines] == [0, 1, 1]
    assert lines[1]["teacher_fingerprint"] == lines[2]["teacher_fingerprint"]
    assert lines[2]["guidance_kl"] == pytest.approx(0.0, abs=1e-8)
    assert session.history is not None
    assert session.history.updates == (1, 3)
    saved = {p.name for p in (tmp_path / "run" / "checkpoints" / "update-0002").iterdir()}
    expected = {OFFSET_FILE, BESIDE_OFFSET_FILE} if adapters else {FULL_FILE}
    assert expected <= saved


@pytest.mark.parametrize("adapters", [{}, ADAPTERS], ids=["full", "lora"])
def test_a_run_that_stops_after_a_reset_is_resumed_bit_for_bit(
    world: World, tmp_path: Path, adapters: dict[str, Any]
) -> None:
    fields = {**adapters, **ON_SCHEDULE}
    run(config_of(world, **fields, run__num_updates=4), tmp_path / "whole")
    run(config_of(world, **fields, run__num_updates=2), tmp_path / "cut")
    run(config_of(world, **fields, run__num_updates=4), tmp_path / "cut", resume=True)
    whole, cut = numbers(tmp_path / "whole"), numbers(tmp_path / "cut")
    assert whole["metrics"] == cut["metrics"]
    assert whole["summary"]["agent"] == cut["summary"]["agent"]
    assert [line["guard_resets"] for line in cut["metrics"]] == [0, 1, 1, 2]


def test_alarms_are_logged_and_move_nothing(
    world: World, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    found = {}
    for action in ("none", "alarm"):
        fields = {**NEVER, "guard__action": action, "guard__min_entropy": 100.0}
        with caplog.at_level(logging.WARNING):
            run(config_of(world, **fields, run__num_updates=2), tmp_path / action)
        found[action] = numbers(tmp_path / action)
    assert found["none"]["summary"]["agent"] == found["alarm"]["summary"]["agent"]
    assert [line["guard_alarms"] for line in found["none"]["metrics"]] == [0, 0]
    assert [line["guard_alarms"] for line in found["alarm"]["metrics"]] == [1, 1]
    warned = [r.getMessage() for r in caplog.records if "guard.min_entropy" in r.getMessage()]
    assert [text[:9] for text in warned] == ["update 1:", "update 2:"]


def test_without_a_teacher_there_is_nothing_to_go_back_to(world: World, tmp_path: Path) -> None:
    fields = {"guard__action": "reset_to_teacher", "guard__min_entropy": 100.0}
    run(config_of(world, **fields, run__num_updates=1), tmp_path / "run")
    (line,) = numbers(tmp_path / "run")["metrics"]
    assert (line["guard_alarms"] > 0, line["guard_resets"]) == (True, 0)


def test_a_guard_alone_merges_without_guiding(world: World, tmp_path: Path) -> None:
    fields = {"guidance__kind": "none", **ON_SCHEDULE}
    run(config_of(world, **fields), tmp_path / "run")
    lines = numbers(tmp_path / "run")["metrics"]
    assert [line["guided_share"] for line in lines] == [0, 0, 0]
    assert [line["guard_resets"] for line in lines] == [0, 1, 1]
    assert lines[1]["agent_teacher_distance"] < 1e-5 * lines[1]["teacher_distance"]


def test_with_a_lag_what_waits_is_forgotten(world: World, tmp_path: Path) -> None:
    fields = {**ON_SCHEDULE, "guard__interval": 3, "merge__lag": 1, "run__num_updates": 4}
    session = session_of(config_of(world, **fields), tmp_path / "run")
    train(session)
    session.close()
    session.run.close()
    assert session.history is not None
    assert session.history.updates == (1,), "update 2 waited, 3 was reset, 4 waits"
    assert session.guard.num_resets == 1


def test_adam_begins_anew(world: World, tmp_path: Path) -> None:
    session = session_of(config_of(world, **ON_SCHEDULE, run__num_updates=2), tmp_path / "run")
    train(session)
    other = tmp_path / "moments"
    other.mkdir()
    session.optimizer.save(other)
    session.close()
    session.run.close()
    assert load_file(other / FILE) == {}
