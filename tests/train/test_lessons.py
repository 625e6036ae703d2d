"""Imitation beside the policy's loss: what is drawn, and what gradient it gives."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from gtr_turbo.core.batch import TokenRows
from gtr_turbo.core.turns import ThoughtLabel
from gtr_turbo.errors import NonFiniteError
from gtr_turbo.policies.vlm import VlmPolicy
from gtr_turbo.train.lessons import Lessons, thought_losses, thought_rows
from tests.train.written import labels_of, store_at
from tests.world import World, make_policy, tiny_config


@pytest.fixture(scope="module")
def policy(world: World) -> VlmPolicy:
    return make_policy(world.trained)


def lessons_of(policy: VlmPolicy, path: Path, count: int, **fields: Any) -> Lessons:
    store = store_at(path)
    store.add(1, labels_of(policy, count))
    config = tiny_config("unused", guidance__kind="sft", **fields)
    return Lessons(store, policy, config, torch.Generator().manual_seed(0))


def thought_loss(policy: VlmPolicy, labels: Sequence[ThoughtLabel]) -> torch.Tensor:
    return thought_losses(policy, thought_rows(policy, labels)).mean()


def gradients(policy: VlmPolicy) -> dict[str, torch.Tensor]:
    """Return the gradients, and forget them."""
    found = {n: p.grad.clone() for n, p in policy.policy_parameters() if p.grad is not None}
    for _, parameter in policy.policy_parameters():
        parameter.grad = None
    return found


def test_the_loss_is_the_mean_over_thought_tokens_then_over_thoughts(policy: VlmPolicy) -> None:
    """In float64, token by token; the action and the end of the turn are not imitated."""
    labels = labels_of(policy, 5)
    with torch.no_grad():
        found = float(thought_loss(policy, labels))
        expected = 0.0
        for label in labels:
            alone = float(thought_loss(policy, [label]))
            expected += alone / len(labels)
            prompt = policy.encode([label.observation])[0]
            ids = [*prompt.token_ids, *label.token_ids]
            start = len(prompt.token_ids)
            logits = _logits(policy, label.observation, ids)
            total = 0.0
            for place in range(start, start + label.num_thought_tokens):
                row = logits[place - 1].double()
                total -= float(row[ids[place]] - row.logsumexp(dim=0))
            assert alone == pytest.approx(total / label.num_thought_tokens, abs=1e-5)
    assert found == pytest.approx(expected, abs=1e-5)


def _logits(policy: VlmPolicy, observation: Any, ids: list[int]) -> torch.Tensor:
    """Return the logits of one sequence by the model's own forward pass."""
    prompt = policy.encode([observation])[0]
    first = int(prompt.position_ids.max()) + 1
    later = torch.arange(first, first + len(ids) - len(prompt.token_ids))
    positions = torch.cat([torch.from_numpy(prompt.position_ids), later.expand(3, -1)], dim=1)
    output = policy.network(
        input_ids=torch.tensor([ids]),
        attention_mask=torch.ones(1, len(ids), dtype=torch.long),
        position_ids=positions[:, None],
        pixel_values=torch.from_numpy(prompt.picture.patches),
        image_grid_thw=torch.tensor([prompt.picture.grid]),
    )
    scores = output.logits[0].float()
    suppressed = policy.sampling(1.0, 1).suppressed
    scores[:, list(suppressed)] = -torch.inf
    return scores


def test_the_action_gets_no_gradient_of_its_own(policy: VlmPolicy) -> None:
    labels = labels_of(policy, 3)
    others = [
        type(label)(
            observation=label.observation,
            token_ids=(*label.token_ids[: label.num_thought_tokens], 7),
            num_thought_tokens=label.num_thought_tokens,
        )
        for label in labels
    ]
    with torch.no_grad():
        assert float(thought_loss(policy, labels)) == pytest.approx(
            float(thought_loss(policy, others)), abs=1e-6
        )


def test_the_gradient_is_that_of_the_whole_whatever_the_micro_batch(
    policy: VlmPolicy, tmp_path: Path
) -> None:
    found = []
    for size in (8, 3):
        lessons = lessons_of(
            policy, tmp_path / str(size), 8, ppo__micro_batch_size=size, imitation__coef=0.5
        )
        lessons.begin_pass(8)
        stats = lessons.backward(8)
        found.append((gradients(policy), stats))
    (whole, stats), (parts, others) = found
    assert stats["imitation_loss"] == pytest.approx(others["imitation_loss"], abs=1e-5)
    (0.5 * thought_loss(policy, labels_of(policy, 8))).backward()
    direct = gradients(policy)
    largest = max(float(g.abs().max()) for g in direct.values())
    assert largest > 1e-3
    for name in direct:
        assert torch.allclose(whole[name], direct[name], atol=1e-4 * largest)
        assert torch.allclose(parts[name], direct[name], atol=1e-4 * largest)


def test_a_pass_draws_no_thought_twice_before_each_was_drawn(
    policy: VlmPolicy, tmp_path: Path
) -> None:
    lessons = lessons_of(policy, tmp_path / "run", 10)
    drawn = []
    for num_turns in (10, 10, 23):
        lessons.begin_pass(num_turns)
        drawn.append(list(lessons._drawn))
    assert sorted(drawn[0]) == sorted(drawn[1]) == list(range(10))
    assert drawn[0] != drawn[1], "each pass has an order of its own"
    times = Counter(drawn[2])
    assert sum(times.values()) == 23
    assert set(times.values()) == {2, 3}


def test_equal_thoughts_of_a_pass_are_computed_once_and_weigh_their_number(
    policy: VlmPolicy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over a pass the gradient is that of all thoughts, one by one."""
    labels = labels_of(policy, 4)
    store = store_at(tmp_path / "run")
    store.add(1, [labels[0], labels[1], labels[0], labels[2]])
    store.add(2, [labels[0], labels[3], labels[1]])
    config = tiny_config("unused", guidance__kind="sft")
    lessons = Lessons(store, policy, config, torch.Generator().manual_seed(0))
    rows = []
    score = VlmPolicy.score

    def counted(self: VlmPolicy, part: TokenRows, *args: Any, **kwargs: Any) -> Any:
        rows.append(part.num_turns)
        return score(self, part, *args, **kwargs)

    monkeypatch.setattr(VlmPolicy, "score", counted)
    lessons.begin_pass(7)
    losses = [lessons.backward(count)["imitation_loss"] for count in (4, 3)]
    found = gradients(policy)
    assert sum(rows) <= 5, "four distinct thoughts, one of them perhaps in both minibatches"
    everyone = [store.get(index) for index in range(7)]
    # The two minibatches are means over 4 and 3: weigh them back to one sum.
    expected = thought_loss(policy, everyone)
    assert (4 * losses[0] + 3 * losses[1]) / 7 == pytest.approx(float(expected.detach()), abs=1e-5)
    lessons._drawn = list(range(7))
    lessons.backward(7)
    whole = gradients(policy)
    expected.backward()
    direct = gradients(policy)
    largest = max(float(g.abs().max()) for g in direct.values())
    for name in direct:
        assert torch.allclose(whole[name], direct[name], atol=1e-4 * largest)
    assert found.keys() == direct.keys()


@pytest.mark.parametrize(
    ("per_turn", "expected"), [(0.25, [1, 1, 1]), (1.0, [4, 4, 2]), (1.5, [6, 6, 3])]
)
def test_a_pass_takes_its_share_of_thoughts_minibatch_by_minibatch(
    policy: VlmPolicy, tmp_path: Path, per_turn: float, expected: list[int]
) -> None:
    """Ten turns in minibatches of 4, 4 and 2; every minibatch's loss is the mean over its own."""
    lessons = lessons_of(policy, tmp_path / "run", 16, imitation__thoughts_per_turn=per_turn)
    labels = labels_of(policy, 16)
    for _ in range(2):  # the second pass begins anew
        lessons.begin_pass(10)
        assert len(lessons._drawn) == sum(expected) == len(set(lessons._drawn))
        for num_turns, count in zip((4, 4, 2), expected, strict=True):
            taken = [labels[index] for index in lessons._drawn[:count]]
            found = lessons.backward(num_turns)["imitation_loss"]
            with torch.no_grad():
                assert found == pytest.approx(float(thought_loss(policy, taken)), abs=1e-5)
        assert lessons._drawn == []
    gradients(policy)


def test_without_thoughts_there_is_nothing_to_imitate(policy: VlmPolicy, tmp_path: Path) -> None:
    lessons = lessons_of(policy, tmp_path / "run", 0)
    lessons.begin_pass(4)
    assert lessons.backward(4) == {}
    assert gradients(policy) == {}


def test_a_nan_stops_before_it_spreads(world: World, tmp_path: Path) -> None:
    policy = make_policy(world.trained)
    lessons = lessons_of(policy, tmp_path / "run", 2)
    with torch.no_grad():
        for _, parameter in policy.policy_parameters():
            parameter.fill_(float("nan"))
    lessons.begin_pass(2)
    with pytest.raises(NonFiniteError, match="imitation"):
        lessons.backward(2)
