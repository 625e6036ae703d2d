import pytest

from gtr_turbo.core.config import parse_config
from gtr_turbo.envs.registry import make_task
from gtr_turbo.errors import UnknownNameError
from gtr_turbo.presets import EARLY_ENDINGS, PRESETS, make_preset


@pytest.mark.parametrize("name", PRESETS)
def test_each_preset_is_a_configuration_that_passes_all_checks(name: str) -> None:
    config = make_preset(name)
    assert parse_config(config.model_dump(mode="json")) == config
    assert make_preset(name) is not config


@pytest.mark.parametrize("name", PRESETS)
def test_each_presets_task_can_be_made_for_training_and_for_evaluation(name: str) -> None:
    task = make_preset(name).task
    for rules in (task.rules, task.rules | task.evaluation_rules):
        made = make_task(task.name, rules, 0)
        made.reset()
        assert made.observation.prompt


@pytest.mark.parametrize("name", PRESETS)
def test_early_truncation_is_for_training_alone(name: str) -> None:
    task = make_preset(name).task
    switch = "early_truncation" if task.name == "household" else "end_at_first_penalty"
    assert task.rules[switch] is True
    evaluated = task.rules | task.evaluation_rules
    assert not any(evaluated.get(rule) for rule in (switch, *EARLY_ENDINGS))
    assert task.evaluation_rules.keys() <= task.rules.keys()


def test_the_papers_preset_holds_the_papers_numbers() -> None:
    # GTR-Turbo, Table 7; minibatch: gradient accumulation over 128 samples.
    config = make_preset("points24-paper")
    lora, ppo, guidance = config.lora, config.ppo, config.guidance
    assert (lora.rank, lora.alpha, lora.dropout) == (128, 256, 0.05)
    assert (ppo.gamma, ppo.gae_lambda, ppo.clip, ppo.epochs) == (0.9, 0.95, 0.1, 4)
    assert (ppo.learning_rate, ppo.learning_rate_floor, ppo.decay_updates) == (1e-5, 1e-9, 25)
    assert (ppo.value_coef, ppo.entropy_coef, ppo.thought_weight) == (0.5, 0.01, 0.5)
    assert (ppo.minibatch_size, config.rollout.turns_per_update) == (128, 1024)
    assert (config.rollout.temperature, config.rollout.max_new_tokens) == (0.2, 256)
    assert (guidance.estimator, guidance.tokens, guidance.coef) == ("clip", "thought", 1.0)
    assert (guidance.into, guidance.teacher) == ("advantage", "merged")
    assert (config.merge.method, config.merge.weights, config.merge.density) == ("ties", "sma", 0.8)
    assert config.task.name == "points24"
    assert config.task.rules["only_solvable"] is False
    assert config.evaluation.num_episodes == 200


def test_the_papers_alfworld_preset_differs_where_the_paper_says() -> None:
    # GTR-Turbo, Table 7; format reward as in the released code.
    config, cards = make_preset("alfworld-paper"), make_preset("points24-paper")
    assert config.ppo.thought_weight == 0.2
    assert config.run.num_updates * config.rollout.turns_per_update == 20_480
    assert (config.format.valid, config.format.invalid) == (5.0, -5.0)
    assert config.task.rules["reward"] == "paper"
    assert config.task.rules["max_steps"] == 50
    assert config.evaluation.num_episodes == 200
    assert (config.lora, config.guidance, config.merge) == (cards.lora, cards.guidance, cards.merge)


@pytest.mark.parametrize("name", [name for name in PRESETS if name.endswith("-tiny")])
def test_tiny_presets_need_nothing_but_a_cpu(name: str) -> None:
    model = make_preset(name).model
    assert model.path.startswith("tiny:")
    assert (model.device, model.dtype) == ("cpu", "float32")


def test_an_unknown_preset_gets_its_nearest_neighbour() -> None:
    with pytest.raises(UnknownNameError) as caught:
        make_preset("ezpoint-tiny")
    assert caught.value.message == 'there is no preset named "ezpoint-tiny".'
    assert str(caught.value.hint).startswith('did you mean "ezpoints-tiny"? Known presets: ')
