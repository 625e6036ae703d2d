import torch

from gtr_turbo.policies.make import load_policy
from tests.world import World, tiny_config


def test_a_policy_depends_on_its_configuration_alone(world: World) -> None:
    config = tiny_config(str(world.trained), model__finetuning="lora")
    torch.manual_seed(5)
    first = load_policy(config)
    torch.manual_seed(6)
    again = load_policy(config)
    other = load_policy(
        config.model_copy(
            update={"run": config.run.model_copy(update={"seed": config.run.seed + 1})}
        )
    )
    assert first.fingerprint() == again.fingerprint() != other.fingerprint()
