"""A study whose runs take seconds: a babbling model, a few turns."""

from pathlib import Path
from typing import Any

import yaml

FIELDS: dict[str, Any] = {
    "sft.num_steps": 0,
    "sft.num_episodes": 20,
    "sft.batch_size": 4,
    "critic.hidden_sizes": [8],
    "critic.warmup_updates": 0,
    "rollout.num_environments": 4,
    "rollout.turns_per_update": 8,
    "rollout.max_new_tokens": 6,
    "ppo.minibatch_size": 8,
    "ppo.micro_batch_size": 8,
    "ppo.epochs": 1,
    "evaluation.num_parallel": 8,
    "evaluation.interval": 0,
    "run.num_updates": 1,
    "run.saved_episodes": 0,
    "run.tensorboard": False,
}


def write_study(path: Path, **changes: Any) -> Path:
    """Return a study file of two arms and two seeds; `changes` replace its keys."""
    fields = FIELDS | changes.pop("overrides", {})
    study = {
        "name": "small",
        "question": "Does it run?",
        "preset": "ezpoints-tiny",
        "arms": ["rl4vlm", "static"],
        "seeds": [0, 1],
        "episodes": 8,
        "overrides": fields,
        **changes,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(study))
    return path
