import dataclasses
import json
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, final

import numpy as np
import pytest
import torch
from torch import Tensor

from gtr_turbo.core.batch import Scores, TokenRows
from gtr_turbo.core.config import Config, CriticConfig, LoraConfig, ModelConfig, parse_config
from gtr_turbo.core.seeding import seed_everything, stream_seed
from gtr_turbo.core.turns import Observation, Prompt, Reply, SamplingSettings
from gtr_turbo.envs.cards.task import CardTask
from gtr_turbo.envs.registry import make_task
from gtr_turbo.errors import ConfigError
from gtr_turbo.evaluate import Evaluation, evaluate, evaluate_samples, wilson_interval
from gtr_turbo.policies.base import AbstractPolicy, WeightChange
from gtr_turbo.policies.tiny import build_tiny_model
from gtr_turbo.policies.vlm import VlmPolicy
from gtr_turbo.presets import make_preset
from tests.rows import prompt


def small(**changes: dict[str, Any]) -> Config:
    """Return the small preset with a panel of six hands, changed section by section."""
    values = make_preset("ezpoints-tiny").model_dump(mode="json")
    values["evaluation"] |= {"num_episodes": 6, "num_parallel": 6, "temperature": 1.0}
    values["rollout"] |= {"max_new_tokens": 4}
    for section, fields in changes.items():
        values[section] |= fields
    return parse_config(values)


@pytest.fixture(scope="session")
def policy(tmp_path_factory: pytest.TempPathFactory) -> VlmPolicy:
    """Return an untrained tiny model: it babbles, so each of its turns is illegal."""
    directory = tmp_path_factory.mktemp("model")
    build_tiny_model(directory, "qwen2_5_vl", ["target 12, formula"], 0, hidden=32)
    model = ModelConfig(path=str(directory), finetuning="full", dtype="float32", device="cpu")
    seed_everything(0, "policy")
    return VlmPolicy(model, LoraConfig(), CriticConfig(hidden_sizes=(4,)))


# --------------------------------------------------------------------------------------- intervals


@pytest.mark.parametrize(
    ("successes", "total", "low", "high"),
    [
        # Newcombe 1998, Statistics in Medicine 17, Table I, method 3.
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilsons_interval_has_the_published_values(
    successes: int, total: int, low: float, high: float
) -> None:
    assert wilson_interval(successes, total) == pytest.approx((low, high), abs=5e-5)


def test_the_interval_is_symmetric_in_success_and_failure_and_stays_inside() -> None:
    for total in (1, 7, 200):
        for successes in range(total + 1):
            low, high = wilson_interval(successes, total)
            other_low, other_high = wilson_interval(total - successes, total)
            assert (low, high) == pytest.approx((1 - other_high, 1 - other_low))
            assert 0 <= low <= successes / total <= high <= 1


# --------------------------------------------------------------------------------------- the panel


def panel_hash(policy: AbstractPolicy, num_episodes: int | None = None, **changes: Any) -> str:
    return evaluate(policy, small(**changes), num_episodes).panel_sha256


def test_the_panel_depends_on_its_seed_and_the_rules_alone(policy: VlmPolicy) -> None:
    panel = panel_hash(policy)
    assert panel_hash(policy, run={"seed": 123}) == panel
    assert panel_hash(policy, evaluation={"num_parallel": 4}) == panel
    assert panel_hash(policy, evaluation={"temperature": 0.5}) == panel
    assert panel_hash(policy, rollout={"num_environments": 2}) == panel
    assert panel_hash(policy, evaluation={"panel_seed": 1}) != panel
    assert panel_hash(policy, task={"rules": {"ranks": [2, 3, 9, 10]}}) != panel
    assert panel_hash(policy, 5) != panel


def test_equal_weights_give_equal_numbers(policy: VlmPolicy) -> None:
    before = torch.get_rng_state()
    assert evaluate(policy, small()) == evaluate(policy, small(run={"seed": 9}))
    assert torch.equal(before, torch.get_rng_state())


def test_training_rules_that_end_episodes_early_are_off(policy: VlmPolicy) -> None:
    # Babble is illegal and costs 1 a turn: five turns in evaluation, one under the training rule.
    played_out = evaluate(policy, small())
    assert (played_out.mean_return, played_out.success_rate) == (-5.0, 0.0)
    task = small().task
    early = evaluate(policy, small(task={"evaluation_rules": {}}))
    assert task.rules["end_at_first_penalty"] is True
    assert early.mean_return == -1.0
    assert early.panel_sha256 == played_out.panel_sha256


def test_progress_is_told_episode_by_batch(policy: VlmPolicy) -> None:
    ticks: list[tuple[int, int]] = []
    config = small(evaluation={"num_parallel": 4})
    evaluate(policy, config, 6, lambda done, total: ticks.append((done, total)))
    assert ticks == [(4, 6), (6, 6)]


@pytest.mark.parametrize("number", [0, -3])
def test_no_episodes_are_refused(policy: VlmPolicy, number: int) -> None:
    with pytest.raises(ConfigError, match=f"must be at least 1, got {number}"):
        evaluate(policy, small(), number)


# ------------------------------------------------------------------------------ what is counted


@final
class ScriptedPolicy(AbstractPolicy):
    """Knows by heart what to write in each state; in any other it writes nothing of use."""

    def __init__(self, replies: dict[str, str]) -> None:
        self._replies = replies
        self._critic = torch.nn.Parameter(torch.zeros(1))
        self._texts: list[str] = []

    @property
    def pad_token_id(self) -> int:
        return 0

    def sampling(self, temperature: float, max_new_tokens: int) -> SamplingSettings:
        return SamplingSettings(
            temperature=temperature, max_new_tokens=max_new_tokens, suppressed=()
        )

    def encode(self, observations: Sequence[Observation]) -> list[Prompt]:
        self._texts = [self._replies.get(seen.state_key, "{}") for seen in observations]
        return [prompt((index,)) for index in range(len(observations))]

    def respond(
        self, prompts: Sequence[Prompt], sampling: SamplingSettings, generator: torch.Generator
    ) -> list[Reply]:
        return [
            Reply(
                token_ids=(1,),
                token_logprobs=np.zeros(1, dtype=np.float32),
                text=self._texts[given.token_ids[0]],
                num_thought_tokens=0,
                finished=True,
            )
            for given in prompts
        ]

    def written_reply(self, text: str) -> Reply:
        raise NotImplementedError

    def critic_parameters(self) -> Iterator[tuple[str, torch.nn.Parameter]]:
        yield "critic", self._critic

    def policy_parameters(self) -> Iterator[tuple[str, torch.nn.Parameter]]:
        yield from ()

    def score(
        self,
        rows: TokenRows,
        temperature: float,
        reference_temperature: float,
        *,
        values: bool,
        entropy: bool = False,
    ) -> Scores:
        raise NotImplementedError

    def value(self, prompts: Sequence[Prompt]) -> Any:
        raise NotImplementedError

    def training(self, *, dropout: bool) -> AbstractContextManager[None]:
        raise NotImplementedError

    def change(self) -> dict[str, Tensor]:
        raise NotImplementedError

    def wearing(self, change: WeightChange) -> AbstractContextManager[None]:
        raise NotImplementedError

    def become(self, change: WeightChange) -> None:
        raise NotImplementedError

    def fingerprint(self) -> str:
        raise NotImplementedError

    def save(self, directory: Path) -> None:
        raise NotImplementedError

    def load(self, directory: Path) -> None:
        raise NotImplementedError


def expert_replies(config: Config, numbers: Sequence[int]) -> tuple[dict[str, str], int]:
    """Return the expert's reply in each state of some panel hands, and how many can be won."""
    replies: dict[str, str] = {}
    num_solvable = 0
    rules = config.task.rules | config.task.evaluation_rules
    for number in numbers:
        seed = stream_seed(config.evaluation.panel_seed, "panel", number)
        task = make_task(config.task.name, rules, seed)
        task.reset(seed)
        num_solvable += task.solvable
        for turn in task.demonstrate(np.random.default_rng(0)):
            replies[turn.observation.state_key] = turn.reply
    return replies, num_solvable


def test_a_policy_that_always_solves_has_success_one() -> None:
    config = small()
    found = evaluate(ScriptedPolicy(expert_replies(config, range(6))[0]), config)
    assert found.success_rate == 1.0
    assert found.mean_return == 10.0
    assert found.ci95 == wilson_interval(6, 6)
    assert (found.solvable_success_rate, found.num_solvable, found.num_episodes) == (1.0, 6, 6)


def test_success_on_solvable_hands_leaves_the_others_out() -> None:
    # Points24 with whatever is dealt: some hands cannot be won.
    values = small().model_dump(mode="json")
    values["task"] = make_preset("points24-tiny").task.model_dump(mode="json")
    values["task"]["rules"] |= {"only_solvable": False, "ranks": list(range(1, 14))}
    values["evaluation"] |= {"num_episodes": 12}
    config = parse_config(values)
    replies, num_solvable = expert_replies(config, range(12))
    assert 0 < num_solvable < 12
    found = evaluate(ScriptedPolicy(replies), config)
    assert found.num_solvable == num_solvable
    assert found.success_rate == pytest.approx(num_solvable / 12)
    assert found.solvable_success_rate == 1.0
    assert found.by_kind == {"points24-v0": (num_solvable, 12)}


def test_the_numbers_keep_their_names_in_json() -> None:
    found = Evaluation(
        success_rate=0.5,
        ci95=(0.25, 0.75),
        mean_return=-1.5,
        num_episodes=8,
        solvable_success_rate=None,
        num_solvable=0,
        by_kind={"heat": (1, 2), "pick": (3, 6)},
        panel_sha256="abc",
        outcomes="10010110",
        thoughts={"cards_right": 0.25, "judged": 16},
    )
    assert found.to_json() == {
        "success_rate": 0.5,
        "ci95": [0.25, 0.75],
        "return": -1.5,
        "episodes": 8,
        "solvable_success_rate": None,
        "solvable_episodes": 0,
        "by_kind": {
            "heat": {"success_rate": 0.5, "episodes": 2},
            "pick": {"success_rate": 0.5, "episodes": 6},
        },
        "panel_sha256": "abc",
        "outcomes": "10010110",
        "thoughts": {"cards_right": 0.25, "judged": 16},
    }
    assert json.loads(json.dumps(found.to_json())) == found.to_json()


# ------------------------------------------------------------------------- hands, and several tries


def test_outcomes_are_those_of_the_hands_in_the_panels_order() -> None:
    config = small()
    for chosen in ([0, 3], [5], []):
        found = evaluate(ScriptedPolicy(expert_replies(config, chosen)[0]), config)
        assert found.outcomes == "".join("1" if n in chosen else "0" for n in range(6))
        assert found.success_rate == len(chosen) / 6
    in_parts = small(evaluation={"num_parallel": 4})
    found = evaluate(ScriptedPolicy(expert_replies(config, [0, 5])[0]), in_parts)
    assert found.outcomes == "100001"


@final
class SeedReader:
    """Stands in for the tokens: notes the seed of each generator that replies are drawn from."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seeds: list[int] = []
        monkeypatch.setattr(ScriptedPolicy, "respond", self._wrap(ScriptedPolicy.respond))

    def _wrap(self, respond: Any) -> Any:
        def noting(policy: Any, prompts: Any, sampling: Any, generator: torch.Generator) -> Any:
            self.seeds.append(generator.initial_seed())
            return respond(policy, prompts, sampling, generator)

        return noting


def test_each_sample_draws_from_a_stream_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    config = small()
    policy = ScriptedPolicy(expert_replies(config, range(6))[0])
    reader = SeedReader(monkeypatch)
    once = evaluate(policy, config)
    first = set(reader.seeds)
    panels = {evaluate(policy, config, sample=sample).panel_sha256 for sample in range(3)}
    assert panels == {once.panel_sha256}
    assert len(first) == 1
    assert first < set(reader.seeds)
    assert len(set(reader.seeds)) == 3


def test_samples_give_the_chance_that_one_of_k_tries_succeeds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = small()
    policy = ScriptedPolicy({})
    tries = iter(["110000", "101000", "100100"])

    def scripted(*_: Any, sample: int) -> Evaluation:
        marks = next(tries)
        return dataclasses.replace(evaluate(policy, config, sample=sample), outcomes=marks)

    monkeypatch.setattr("gtr_turbo.evaluate.evaluate", scripted)
    found = evaluate_samples(policy, config, None, 3)
    assert found["samples"] == ["110000", "101000", "100100"]
    # Hand 0: 3 of 3; hands 1 to 3: 1 of 3; hands 4 and 5: none.
    assert found["pass_at"]["1"] == pytest.approx((1 + 3 * 1 / 3) / 6)
    assert found["pass_at"]["2"] == pytest.approx((1 + 3 * 2 / 3) / 6)
    assert found["pass_at"]["3"] == pytest.approx(4 / 6)


def test_one_sample_is_one_evaluation(policy: VlmPolicy) -> None:
    assert evaluate_samples(policy, small(), None, 1) == evaluate(policy, small()).to_json()
    with pytest.raises(ConfigError, match="number of samples must be at least 1, got 0"):
        evaluate_samples(policy, small(), None, 0)


# -------------------------------------------------------------------------- what thoughts are worth


def test_an_expert_thinks_well_and_a_babbler_is_judged_too(policy: VlmPolicy) -> None:
    config = small()
    replies, _ = expert_replies(config, range(6))
    good = evaluate(ScriptedPolicy(replies), config).thoughts
    assert good == {"cards_right": 1, "plan_right": 1, "action_follows": 1, "judged": 24}
    bad = evaluate(policy, config).thoughts
    assert (bad["cards_right"], bad["plan_right"], bad["action_follows"]) == (0, 0, 0)
    assert bad["judged"] > 24


def test_each_rate_is_over_the_turns_that_it_is_about(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four turns of one hand: judged good and bad, not judged at all, and in part."""
    verdicts = [{"a": True, "b": False}, {}, {"a": False}, {"a": True, "b": True}]
    config = small(evaluation={"num_episodes": 1})
    found = iter(verdicts)
    monkeypatch.setattr(CardTask, "judge_thought", lambda task, reply: next(found))
    thoughts = evaluate(ScriptedPolicy(expert_replies(config, [0])[0]), config).thoughts
    assert thoughts == {"a": pytest.approx(2 / 3), "b": 0.5, "judged": 3}


def test_a_task_without_rules_for_thoughts_judges_none() -> None:
    config = small(task={"name": "blackjack", "rules": {}, "evaluation_rules": {}})
    replies, _ = expert_replies(config, range(6))
    assert evaluate(ScriptedPolicy(replies), config).thoughts == {"judged": 0}
