"""Truths 4, 5 and 6: a teacher that moves, agrees with itself, and an agent that is one."""

from typing import Any

import pytest
import torch
from torch import Tensor

from gtr_turbo import history as history_module
from gtr_turbo.core.config import MergeConfig
from gtr_turbo.errors import LogprobMismatchError, StaleAdapterError, StaleTeacherError
from gtr_turbo.history import CheckpointHistory
from gtr_turbo.merging import fingerprint
from gtr_turbo.ops.kl import ESTIMATORS
from gtr_turbo.policies.base import WeightChange
from gtr_turbo.rollout import Rollout
from gtr_turbo.teachers.merged import WeightTeacher
from gtr_turbo.train import checks
from gtr_turbo.train.gtr_turbo import train
from gtr_turbo.train.session import Session
from tests.truths.played import Played

# -- 4: each merge makes another teacher --------------------------------------------------------


def test_fault_the_teacher_is_frozen(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """The released code of the paper merges once; here the run stops at the second merge."""
    original = CheckpointHistory.merge

    def once(self: CheckpointHistory) -> dict[str, Tensor]:
        return original(self) if self.teacher is None else self.teacher

    monkeypatch.setattr(CheckpointHistory, "merge", once)
    with pytest.raises(StaleTeacherError, match="as it was") as refusal:
        train(session)
    assert session.update == 2
    assert "freeze_after" in str(refusal.value.hint)


def test_one_checkpoint_merged_is_that_checkpoint(played: Played) -> None:
    change = played.session.policy.change()
    history = CheckpointHistory(MergeConfig(density=1.0), 1)
    history.add(1, change)
    assert fingerprint(history.merge()) == fingerprint(change)


def ema_by_hand(checkpoints: list[float], alpha: float) -> float:
    value = checkpoints[0]
    for checkpoint in checkpoints[1:]:
        value = alpha * checkpoint + (1 - alpha) * value
    return value


@pytest.mark.parametrize("is_inverted", [False, True])
def test_fault_the_rate_of_the_exponential_average_is_inverted(
    monkeypatch: pytest.MonkeyPatch, is_inverted: bool
) -> None:
    if is_inverted:
        real = history_module.make_accumulator
        monkeypatch.setattr(
            history_module,
            "make_accumulator",
            lambda method, *, ema_alpha, **rest: real(method, ema_alpha=1 - ema_alpha, **rest),
        )
    history = CheckpointHistory(MergeConfig(method="linear", weights="ema", ema_alpha=0.8), 3)
    values = [1.0, 3.0, -2.0]
    for number, value in enumerate(values, start=1):
        history.add(number, {"w": torch.full((2, 2), value)})
    expected = ema_by_hand(values, 0.8)
    found = float(history.merge()["w"][0, 0])
    assert (abs(found - expected) < 1e-5) == (not is_inverted)


# -- 5: agreement is zero -----------------------------------------------------------------------


def kl_to(played: Played, change: WeightChange, estimator: str) -> Tensor:
    session = played.session
    config = session.config.guidance.model_copy(update={"estimator": estimator, "tokens": "reply"})
    teacher = WeightTeacher(config, config.temperature, 8)
    teacher.become(change, must_differ=False)
    guidance = teacher.guide(session.policy, played.turns, played.rows, played.scores)
    assert guidance.is_guided.any(), "somebody was to be guided"
    assert guidance.kl is not None
    return guidance.kl


@pytest.mark.parametrize("estimator", sorted(set(ESTIMATORS) - {"k1"}))
def test_a_teacher_that_is_the_agent_disagrees_with_nothing(played: Played, estimator: str) -> None:
    own = kl_to(played, played.session.policy.change(), estimator)
    assert float(own.abs().max()) < 1e-5


@pytest.mark.parametrize("estimator", sorted(ESTIMATORS))
def test_another_teacher_disagrees(played: Played, estimator: str) -> None:
    zero = {n: torch.zeros_like(t) for n, t in played.session.policy.change().items()}
    assert float(kl_to(played, zero, estimator).abs().max()) > 1e-4


def test_fault_the_teacher_scores_at_a_temperature_of_its_own(
    played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = played.session.policy.change()
    original = WeightTeacher.score

    def warmer(self: WeightTeacher, *args: Any) -> Tensor:
        self._temperature = 2.0
        return original(self, *args)

    monkeypatch.setattr(WeightTeacher, "score", warmer)
    assert float(kl_to(played, change, "abs").max()) > 1e-2


# -- 6: who samples is who trains ---------------------------------------------------------------


def test_the_turns_carry_the_fingerprint_of_who_sampled(played: Played) -> None:
    now = played.session.policy.fingerprint()
    assert {turn.policy_version for turn in played.turns} == {now}
    checks.check_provenance(played.session.policy, played.turns)


@torch.no_grad()
def test_fault_one_bit_of_the_weights_changed_since(played: Played) -> None:
    _, parameter = next(played.session.policy.policy_parameters())
    first = parameter.view(-1)[:1]
    first.copy_(torch.nextafter(first, torch.ones(1)))
    with pytest.raises(StaleAdapterError, match="were sampled by weights"):
        checks.check_provenance(played.session.policy, played.turns)


@pytest.mark.parametrize("is_honest", [True, False], ids=["its-version", "a-false-version"])
def test_fault_a_stale_adapter_samples(
    session: Session, monkeypatch: pytest.MonkeyPatch, is_honest: bool
) -> None:
    """The first update's weights sample for ever; under a false version only the scores tell."""
    original = Rollout.collect
    start = {n: p.detach().clone() for n, p in session.policy.policy_parameters()}

    @torch.no_grad()
    def stale(self: Rollout, policy: Any, *args: Any) -> Any:
        trained = {n: p.detach().clone() for n, p in policy.policy_parameters()}
        version = policy.fingerprint()
        put(policy, start)
        with monkeypatch.context() as patch:
            if not is_honest:
                patch.setattr(type(policy), "fingerprint", lambda _: version)
            episodes = original(self, policy, *args)
        put(policy, trained)
        return episodes

    def put(policy: Any, weights: dict[str, Tensor]) -> None:
        for name, parameter in policy.policy_parameters():
            parameter.copy_(weights[name])

    monkeypatch.setattr(Rollout, "collect", stale)
    with pytest.raises((StaleAdapterError, LogprobMismatchError)):
        train(session)
    assert session.update >= 1
