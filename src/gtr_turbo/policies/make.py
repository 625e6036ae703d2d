"""The policy that a configuration names."""

import torch

from gtr_turbo.core.config import Config
from gtr_turbo.core.seeding import seed_everything
from gtr_turbo.policies.vlm import VlmPolicy


def load_policy(config: Config) -> VlmPolicy:
    """Return the policy that a resolved configuration names, adapters seeded by the run's seed."""
    if config.run.num_threads is not None:
        torch.set_num_threads(config.run.num_threads)
    seed_everything(config.run.seed, "policy")
    return VlmPolicy(config.model, config.lora, config.critic)
