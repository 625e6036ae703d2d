"""Runs of every kind of guidance: they learn from what they say, and a resume changes no bit."""

from pathlib import Path
from typing import Any

import pytest

from tests.train.runs import lines
from tests.truths.test_randomness import Interrupted
from tests.world import World

KINDS: dict[str, dict[str, Any]] = {
    "written thoughts": {"guidance__kind": "sft"},
    "corrected thoughts": {"guidance__kind": "sft", "guidance__teacher": "corrector"},
    "distillation": {"guidance__kind": "distillation"},
    "constant": {"guidance__kind": "constant", "guidance__coef": 0.1},
    "rejection": {"guidance__kind": "none", "ppo__objective": "rejection"},
    "previous": {"guidance__teacher": "previous"},
    "shuffled": {"guidance__teacher": "shuffled"},
    "random": {"guidance__teacher": "random"},
    "blind": {"guidance__pictures": "blank"},
    "imitation alone": {"guidance__kind": "sft", "ppo__objective": "none"},
}


@pytest.fixture(scope="module", params=KINDS)
def run(
    request: pytest.FixtureRequest, world: World, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Interrupted]:
    name: str = request.param
    folder = tmp_path_factory.mktemp("kind")
    return name, Interrupted(folder, KINDS[name], world)


def test_a_resumed_run_is_the_run_that_never_stopped(
    run: tuple[str, Interrupted], tmp_path: Path
) -> None:
    assert run[1].resumed(tmp_path / "copy") == run[1].expected


def test_the_metrics_show_what_the_kind_does(run: tuple[str, Interrupted]) -> None:
    name, found = run
    last = lines(found.path.parent / "whole" / "metrics.jsonl")[-1]
    if "thoughts" in name or name == "imitation alone":
        assert last["stored_thoughts"] > 0
        assert last["imitation_loss"] > 0
        assert last["guidance_kl"] is None
    else:
        assert last["stored_thoughts"] is None
        assert "imitation_loss" not in last
    has_weights = name not in ("corrected thoughts", "constant", "rejection")
    assert (last["teacher_fingerprint"] is not None) == has_weights
    assert (last["teacher_distance"] is not None) == has_weights
    is_idle = name == "rejection"  # none of these few episodes was solved
    assert (last["agent_distance"] > 0) == (not is_idle)
    if has_weights:
        between = last["agent_teacher_distance"]
        assert 0 < between < last["agent_distance"] + last["teacher_distance"]
