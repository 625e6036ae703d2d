"""The optimiser: Adam over policy and critic, saved as named tensors."""

from collections.abc import Mapping
from pathlib import Path
from typing import final

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from gtr_turbo.core.config import Config
from gtr_turbo.errors import CheckpointError, NonFiniteError
from gtr_turbo.policies.base import AbstractPolicy

FILE = "optimizer.safetensors"
_MOMENTS = ("exp_avg", "exp_avg_sq", "step")


@final
class Optimizer:
    """Adam without weight decay (paper, Table 7), gradients limited per part.

    Policy and critic have limits of their own: a critic that starts far from the returns must not
    shrink the policy's steps.
    """

    def __init__(self, policy: AbstractPolicy, config: Config) -> None:
        """Collect the trained weights of policy and critic."""
        self._parts = {
            "policy": dict(policy.policy_parameters()),
            "critic": dict(policy.critic_parameters()),
        }
        self._critic_rate = config.critic.learning_rate
        self._max_norm = config.ppo.max_grad_norm
        self._adam = torch.optim.Adam(
            [{"params": list(named.values())} for named in self._parts.values()],
            lr=config.ppo.learning_rate,
            eps=config.ppo.adam_epsilon,
        )

    def set_learning_rate(self, rate: float) -> None:
        """Set the policy's rate; the critic follows unless it has one of its own."""
        policy, critic = self._adam.param_groups
        policy["lr"] = rate
        critic["lr"] = rate if self._critic_rate is None else self._critic_rate

    def step(self, where: str) -> float:
        """Take one step and return the policy's gradient norm before the limit.

        Raises NonFiniteError, and leaves every weight as it was, when a gradient is not finite.
        """
        norms: dict[str, float] = {}
        for part, named in self._parts.items():
            norm = torch.nn.utils.clip_grad_norm_(list(named.values()), self._max_norm)
            norms[part] = float(norm)
            if not torch.isfinite(norm):
                raise NonFiniteError(
                    f"the gradient norm of the {part} at {where} is {float(norm)}.",
                    hint="lower `ppo.learning_rate`; no weight was changed by this step.",
                )
        self._adam.step()
        self._adam.zero_grad(set_to_none=True)
        return norms["policy"]

    def reset(self) -> None:
        """Drop the moments of policy and critic: they were those of weights that are gone.

        The next step is a first step again, one learning rate long in every weight.
        """
        self._adam.state.clear()

    def save(self, directory: Path) -> None:
        """Write the moments under the weights' names; weights that never stepped have none."""
        state: dict[str, Tensor] = {}
        for name, parameter in self._named().items():
            for key, value in self._adam.state.get(parameter, {}).items():
                state[f"{name}/{key}"] = value.detach().cpu().contiguous()
        save_file(state, directory / FILE)

    def load(self, directory: Path) -> None:
        """Read the moments. Raises CheckpointError for weights that are not trained here."""
        named = self._named()
        state: dict[str, dict[str, Tensor]] = {}
        for key, value in load_file(directory / FILE).items():
            name, _, moment = key.rpartition("/")
            if name not in named or moment not in _MOMENTS:
                raise CheckpointError(f"{directory / FILE} holds {key}, which is not trained here.")
            state.setdefault(name, {})[moment] = value
        for name, moments in state.items():
            device = named[name].device
            self._adam.state[named[name]] = {
                moment: value if moment == "step" else value.to(device)
                for moment, value in moments.items()
            }

    def _named(self) -> Mapping[str, torch.nn.Parameter]:
        return self._parts["policy"] | self._parts["critic"]
