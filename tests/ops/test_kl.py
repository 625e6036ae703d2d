import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gtr_turbo.ops.kl import ESTIMATORS, MAX_EXPONENT, limited, mean_over_tokens

# log π_θ − log π_merged = ln 2, −ln 2 and 0.
AGENT = torch.log(torch.tensor([[0.5, 0.25, 0.125]]))
TEACHER = torch.log(torch.tensor([[0.25, 0.5, 0.125]]))
LN2 = math.log(2)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("k1", [LN2, -LN2, 0.0]),
        ("clip", [LN2, 0.0, 0.0]),
        ("abs", [LN2, LN2, 0.0]),
        ("k3", [LN2 + 0.5 - 1, -LN2 + 2 - 1, 0.0]),
        ("forward", [0.0, LN2, 0.0]),
    ],
)
def test_each_estimator_by_hand(name: str, expected: list[float]) -> None:
    assert ESTIMATORS[name](AGENT, TEACHER)[0].tolist() == pytest.approx(expected, abs=1e-6)


def test_there_are_five_estimators() -> None:
    assert list(ESTIMATORS) == ["k1", "clip", "abs", "k3", "forward"]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_teacher_equal_to_the_agent_says_nothing(name: str) -> None:
    assert ESTIMATORS[name](AGENT, AGENT).eq(0).all()


@pytest.mark.parametrize("name", ["clip", "abs", "k3", "forward"])
@given(
    agent=st.floats(-60, 0, width=32),
    difference=st.floats(-60, 60, width=32, allow_subnormal=False),
)
def test_all_but_k1_are_never_negative(name: str, agent: float, difference: float) -> None:
    found = ESTIMATORS[name](torch.tensor([[agent]]), torch.tensor([[agent - difference]]))
    assert found.item() >= 0
    assert math.isfinite(found.item())


def test_k3_keeps_its_accuracy_where_the_models_agree() -> None:
    # d²/2 − d³/6 for d = 1e-3; e^(−d) − 1 in float32 alone would be wrong by a tenth of it.
    difference = torch.tensor([[1e-3]])
    found = ESTIMATORS["k3"](torch.zeros(1, 1), -difference)
    assert found.item() == pytest.approx(1e-6 / 2 - 1e-9 / 6, rel=2e-3)


def test_k3_stays_finite_for_a_token_the_agent_could_not_have_said() -> None:
    found = ESTIMATORS["k3"](torch.tensor([[-500.0]]), torch.tensor([[0.0]]))
    assert found.item() == pytest.approx(math.exp(MAX_EXPONENT) - 501, rel=1e-6)


def test_k1_and_k3_estimate_the_same_divergence() -> None:
    agent, teacher = torch.tensor([0.5, 0.3, 0.2]), torch.tensor([0.3, 0.3, 0.4])
    exact = float((agent * (agent / teacher).log()).sum())
    assert exact == pytest.approx(0.116783, abs=1e-6)  # 0.5 ln(5/3) + 0.2 ln(1/2)
    generator = torch.Generator().manual_seed(0)
    drawn = torch.multinomial(agent, 200_000, replacement=True, generator=generator)
    sampled = agent.log()[drawn][None], teacher.log()[drawn][None]
    means = {name: ESTIMATORS[name](*sampled).mean().item() for name in ("k1", "k3")}
    assert means["k1"] == pytest.approx(exact, abs=4e-3)  # five standard errors of K1
    assert means["k3"] == pytest.approx(exact, abs=1e-3)
    assert means["k1"] == pytest.approx(means["k3"], abs=4e-3)


def test_the_mean_is_over_the_compared_tokens_alone() -> None:
    token_kl = torch.tensor([[1.0, 2.0, 6.0, 100.0], [4.0, -2.0, 0.0, 0.0]])
    compared = torch.tensor([[True, True, True, False], [False, True, True, False]])
    assert mean_over_tokens(token_kl, compared, None).tolist() == [3.0, -1.0]


def test_each_token_is_limited_before_the_mean() -> None:
    token_kl = torch.tensor([[1.0, 30.0, -30.0, 0.5]])
    everything = torch.ones(1, 4, dtype=torch.bool)
    assert mean_over_tokens(token_kl, everything, 10.0).tolist() == [(1 + 10 - 10 + 0.5) / 4]
    assert mean_over_tokens(token_kl, everything, None).tolist() == [1.5 / 4]


def test_a_turn_without_compared_tokens_gets_zero() -> None:
    token_kl = torch.tensor([[5.0, 5.0], [5.0, 7.0]])
    compared = torch.tensor([[False, False], [True, True]])
    assert mean_over_tokens(token_kl, compared, 10.0).tolist() == [0.0, 6.0]


def test_the_cap_holds_on_both_sides_and_can_be_left_out() -> None:
    tokens = torch.tensor([[-12.0, -1.0, 3.0, 11.0]])
    assert limited(tokens, 10.0).tolist() == [[-10.0, -1.0, 3.0, 10.0]]
    assert limited(tokens, None).tolist() == tokens.tolist()
