"""Truths 7 and 8: no global generator, and every generator in the checkpoint."""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, final

import numpy as np
import pytest
import torch

from gtr_turbo.core.seeding import Seeds
from gtr_turbo.errors import GtrTurboError
from gtr_turbo.history import CheckpointHistory
from gtr_turbo.policies import generation
from gtr_turbo.report.console import AbstractProgress, NullProgress
from gtr_turbo.rollout import Rollout
from gtr_turbo.train.gtr_turbo import train
from gtr_turbo.train.optim import Optimizer
from gtr_turbo.train.pipeline import run_training
from gtr_turbo.train.session import Session
from tests.train.runs import numbers
from tests.truths.played import QUICK
from tests.world import LORA, World, numpy_state, tiny_config


@final
class Interfering(AbstractProgress):
    """Draws from every global generator at each step that it is told of, and may stop the run."""

    def __init__(self, stop_after: int | None = None, *, draws: bool = False) -> None:
        self._stop_after, self._draws = stop_after, draws

    def phase(self, name: str) -> None:
        self.step(0, 0)

    def step(self, done: int, total: int) -> None:
        if self._draws:
            torch.rand(3)
            np.random.rand(3)  # noqa: NPY002

    def update(self, metrics: Mapping[str, Any]) -> None:
        if metrics["update"] == self._stop_after:
            raise InterruptedError

    def summary_table(self, summary: Mapping[str, Any]) -> None: ...

    def close(self) -> None: ...


def outcome(path: Path) -> dict[str, Any]:
    found = numbers(path)
    return {"metrics": found["metrics"], "summary": found["summary"]}


# -- 7 ------------------------------------------------------------------------------------------


def test_training_leaves_the_global_generators_alone(session: Session) -> None:
    before = torch.get_rng_state(), numpy_state()
    train(session)
    assert session.update == 3
    assert torch.equal(before[0], torch.get_rng_state())
    assert before[1] == numpy_state()


@pytest.fixture(scope="module")
def whole(world: World, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the outcome of a run that nobody disturbed."""
    path = tmp_path_factory.mktemp("whole") / "run"
    run_training(tiny_config(world.trained, **QUICK), path, NullProgress(), resume=False)
    return outcome(path)


@pytest.mark.parametrize("is_global", [False, True])
def test_fault_replies_are_drawn_from_the_global_generator(
    world: World,
    whole: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    is_global: bool,
) -> None:
    """Somebody else's draws change nothing, unless the replies come from the same generator."""
    if is_global:
        real = generation._draw
        monkeypatch.setattr(
            generation, "_draw", lambda scores, t, _: real(scores, t, torch.default_generator)
        )
    config = tiny_config(world.trained, **QUICK)
    run_training(config, tmp_path / "run", Interfering(draws=True), resume=False)
    assert (outcome(tmp_path / "run") == whole) == (not is_global)


# -- 8 ------------------------------------------------------------------------------------------

DROPPING = {
    **{key.replace(".", "__"): value for key, value in LORA.items()},
    "model__finetuning": "lora",
    "lora__dropout": 0.3,
    "ppo__dropout": True,
}


@final
class Interrupted:
    """A run that was stopped after two updates, and what it would have become."""

    def __init__(self, folder: Path, fields: dict[str, Any], world: World) -> None:
        self.config = tiny_config(world.trained, **QUICK, **fields)
        self.path = folder / "stopped"
        run_training(self.config, folder / "whole", NullProgress(), resume=False)
        with pytest.raises(InterruptedError):
            run_training(self.config, self.path, Interfering(2), resume=False)
        self.expected = outcome(folder / "whole")

    def resumed(self, path: Path) -> dict[str, Any] | None:
        """Return the outcome of a copy that goes on; None when it stops with a named error."""
        shutil.copytree(self.path, path)
        try:
            run_training(self.config, path, NullProgress(), resume=True)
        except GtrTurboError:
            return None
        return outcome(path)


@pytest.fixture(scope="module")
def stopped(world: World, tmp_path_factory: pytest.TempPathFactory) -> Interrupted:
    return Interrupted(tmp_path_factory.mktemp("full"), {}, world)


@pytest.fixture(scope="module")
def dropping(world: World, tmp_path_factory: pytest.TempPathFactory) -> Interrupted:
    return Interrupted(tmp_path_factory.mktemp("lora"), DROPPING, world)


def forget(generator: str) -> Callable[[pytest.MonkeyPatch], None]:
    """Return the fault that one generator keeps the state it has at a start."""
    real = Seeds.restore

    def restore(self: Seeds, state: dict[str, Any]) -> None:
        real(self, {**state, generator: self.state()[generator]})

    return lambda patch: patch.setattr(Seeds, "restore", restore)


def skip(owner: type, method: str) -> Callable[[pytest.MonkeyPatch], None]:
    """Return the fault that a part is not restored at all."""
    return lambda patch: patch.setattr(owner, method, lambda *_: None)


def forget_sums(patch: pytest.MonkeyPatch) -> None:
    """Plant the fault that the teacher is restored, but not what it is made from."""
    real = CheckpointHistory.load

    def load(self: CheckpointHistory, directory: Path) -> None:
        empty = self._sums
        real(self, directory)
        self._sums = empty

    patch.setattr(CheckpointHistory, "load", load)


FAULTS = {
    "sampler": forget("sampler"),
    "shuffle": forget("shuffle"),
    "environments": skip(Rollout, "restore"),
    "moments": skip(Optimizer, "load"),
    "merge sums": forget_sums,
    "history": skip(CheckpointHistory, "load"),
}


def test_a_resumed_run_is_the_run_that_never_stopped(stopped: Interrupted, tmp_path: Path) -> None:
    assert stopped.resumed(tmp_path / "copy") == stopped.expected


@pytest.mark.parametrize("part", FAULTS)
def test_fault_one_part_is_left_out_at_resume(
    stopped: Interrupted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    FAULTS[part](monkeypatch)
    assert stopped.resumed(tmp_path / "copy") != stopped.expected


@pytest.mark.parametrize("is_forgotten", [False, True])
def test_fault_the_dropout_generator_is_left_out_at_resume(
    dropping: Interrupted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_forgotten: bool
) -> None:
    if is_forgotten:
        forget("global")(monkeypatch)
    assert (dropping.resumed(tmp_path / "copy") == dropping.expected) == (not is_forgotten)
