"""The trained weights of a policy: naming, changing, lending to a teacher, saving and loading."""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, final

import torch
from peft import get_peft_model_state_dict, set_peft_model_state_dict
from peft.tuners.lora import LoraLayer
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from gtr_turbo.core.config import ModelConfig
from gtr_turbo.errors import CheckpointError, MergeError
from gtr_turbo.merging.adapter_files import ADAPTER_FILE, BESIDE_OFFSET_FILE, OFFSET_FILE
from gtr_turbo.merging.lora import AdapterChange, LoraFactors
from gtr_turbo.policies.base import WeightChange
from gtr_turbo.policies.loading import CRITIC_ADAPTER, POLICY_ADAPTER
from gtr_turbo.policies.offset import Offset, ShiftedChange, add_beside, placed

FULL_FILE = "model.safetensors"
CRITIC_FILE = "critic.safetensors"


@final
class WeightStore:
    """Everything that is trained, by the names it has in the network without adapters."""

    def __init__(
        self, model: Any, network: nn.Module, critic: nn.Module, config: ModelConfig
    ) -> None:
        """Remember the start: a copy of the weights, or of the adapters, whose change is zero."""
        self._model, self._network, self._critic = model, network, critic
        self._base = config.path
        self._is_lora = config.finetuning == "lora"
        self._has_critic_adapter = self._is_lora and CRITIC_ADAPTER in model.peft_config
        self._start = {
            name: parameter.detach().to("cpu", torch.float32, copy=True)
            for name, parameter in self.policy_parameters()
        }
        self._frozen: dict[str, nn.Module] = {
            f"{name}.weight": layer.get_base_layer() for name, layer in self._adapted()
        }
        self._offset = Offset(self._frozen)
        self._train_all()

    def policy_parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        """Yield the adapter's (or all) weights by name."""
        for name, parameter in self._network.named_parameters():
            if not self._is_lora or f".{POLICY_ADAPTER}." in name:
                yield name, parameter

    def critic_parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        """Yield the head's weights and, when there is one, the critic adapter's."""
        for name, parameter in self._critic.named_parameters():
            yield f"critic.{name}", parameter
        if self._has_critic_adapter:
            for name, parameter in self._network.named_parameters():
                if f".{CRITIC_ADAPTER}." in name:
                    yield name, parameter

    @torch.no_grad()
    def change(self) -> WeightChange:
        """Return ΔW per weight in float32 on the CPU: scaling · B A, or weight − start.

        With adapters it is an `AdapterChange`, or a `ShiftedChange` after `become`: each makes a
        dense change when it is asked for.
        """
        if not self._is_lora:
            return {
                name: parameter.detach().to("cpu", torch.float32) - self._start[name]
                for name, parameter in self.policy_parameters()
            }
        adapter = AdapterChange({
            f"{name}.weight": LoraFactors(
                a=layer.lora_A[POLICY_ADAPTER].weight,
                b=layer.lora_B[POLICY_ADAPTER].weight,
                scaling=layer.scaling[POLICY_ADAPTER],
            )
            for name, layer in self._adapted()
        })  # fmt: skip
        offset = self._offset.change
        return adapter if offset is None else ShiftedChange(offset, adapter)

    @torch.no_grad()
    def become(self, change: WeightChange) -> None:
        """Put the agent's own weights at start + `change`; the critic stays as it is.

        In full fine-tuning the weights are set to the sum. A merged change is not of the adapters'
        rank, so with adapters it is kept as an offset beside the frozen weights, exactly as a
        teacher wears it, and the adapters begin again as they were at the start: with zero change.
        Raises MergeError for other names or shapes.
        """
        self._require_fit(change)
        if self._is_lora:
            self._offset.put(change)
        for name, parameter in self.policy_parameters():
            start = self._start[name]
            parameter.copy_(start if self._is_lora else start + change[name].cpu())

    @contextmanager
    def wearing(self, change: WeightChange) -> Iterator[None]:
        """Act with start + `change`.

        With adapters the change is a second product beside the frozen weight, never added to it, so
        a bfloat16 base rounds nothing away. In full fine-tuning the weights are swapped for
        start + change and swapped back untouched. Raises MergeError for other names or shapes.
        """
        self._require_fit(change)
        with self._hooked(change) if self._is_lora else self._swapped(change):
            yield

    @contextmanager
    def _hooked(self, change: WeightChange) -> Iterator[None]:
        with self._offset.suspended():
            handles = add_beside(self._frozen, placed(self._frozen, change))
            try:
                with self._model.disable_adapter():
                    yield
            finally:
                for handle in handles:
                    handle.remove()
                self._train_all()

    @contextmanager
    def _swapped(self, change: WeightChange) -> Iterator[None]:
        own = {name: parameter.data for name, parameter in self.policy_parameters()}
        try:
            for name, parameter in self.policy_parameters():
                worn = self._start[name] + change[name]
                parameter.data = worn.to(parameter.device, parameter.dtype)
            yield
        finally:
            for name, parameter in self.policy_parameters():
                parameter.data = own[name]

    @contextmanager
    def critic_adapter(self) -> Iterator[None]:
        """Run the network under the critic's own adapter, beside the weights of the start."""
        with self._offset.suspended():
            self._model.set_adapter(CRITIC_ADAPTER)
            try:
                yield
            finally:
                self._model.set_adapter(POLICY_ADAPTER)
                self._train_all()

    def fingerprint(self) -> str:
        """Return the sha256 over names and bytes of the policy's trained weights."""
        digest = hashlib.sha256()
        for name, parameter in self.policy_parameters():
            digest.update(name.encode())
            digest.update(
                parameter.detach().to("cpu", torch.float32).contiguous().numpy().tobytes()
            )
        digest.update((self._offset.fingerprint or "").encode())
        return digest.hexdigest()

    def save(self, directory: Path) -> None:
        """Write adapters in PEFT's layout, or full weights, and the critic.

        An offset goes into a file of its own, in float32. The adapters are then under a name that
        PEFT does not look for: it would load them without the offset, as other weights.
        """
        if self._is_lora:
            state = get_peft_model_state_dict(self._model, adapter_name=POLICY_ADAPTER)
            plain = {k: v.detach().float().contiguous().cpu() for k, v in state.items()}
            offset = self._offset.change
            file = ADAPTER_FILE if offset is None else BESIDE_OFFSET_FILE
            save_file(plain, directory / file, metadata={"format": "pt"})
            if offset is not None:
                save_file({k: v.contiguous() for k, v in offset.items()}, directory / OFFSET_FILE)
            self._write_adapter_config(directory)
        else:
            state = {n: p.detach().contiguous().cpu() for n, p in self.policy_parameters()}
            save_file(state, directory / FULL_FILE, metadata={"format": "pt"})
            self._network.config.save_pretrained(directory)  # pyright: ignore
        critic = {n: p.detach().float().contiguous().cpu() for n, p in self.critic_parameters()}
        save_file(critic, directory / CRITIC_FILE)

    def load(self, directory: Path) -> None:
        """Read what `save` wrote; CheckpointError unless names and shapes are exactly ours."""
        if self._is_lora:
            self._load_adapter(directory)
        else:
            _copy_into(directory / FULL_FILE, dict(self.policy_parameters()))
        _copy_into(directory / CRITIC_FILE, dict(self.critic_parameters()))

    def _load_adapter(self, directory: Path) -> None:
        has_offset = (directory / BESIDE_OFFSET_FILE).exists()
        offset: dict[str, Tensor] = {}
        if has_offset:
            offset = _read(directory / OFFSET_FILE)
            _require_same(directory / OFFSET_FILE, offset, dict(self._changeable()))
        file = directory / (BESIDE_OFFSET_FILE if has_offset else ADAPTER_FILE)
        state = _read(file)
        own = get_peft_model_state_dict(self._model, adapter_name=POLICY_ADAPTER)
        _require_same(file, state, own)
        set_peft_model_state_dict(self._model, state, adapter_name=POLICY_ADAPTER)
        self._offset.clear()
        if has_offset:
            self._offset.put(offset)

    def fold_offset(self) -> None:
        """Add the offset, if there is one, to the frozen weights: for an export only."""
        self._offset.fold()

    def _write_adapter_config(self, directory: Path) -> None:
        """Write adapter_config.json with sorted keys, so that equal runs write equal bytes."""
        values = self._model.peft_config[POLICY_ADAPTER].to_dict()
        base = os.path.relpath(self._base, directory) if Path(self._base).exists() else self._base
        values |= {"inference_mode": True, "base_model_name_or_path": base}
        plain = {k: sorted(v) if isinstance(v, set) else v for k, v in values.items()}
        text = json.dumps(plain, indent=2, sort_keys=True, default=str)
        (directory / "adapter_config.json").write_text(text + "\n")

    def _adapted(self) -> Iterator[tuple[str, Any]]:
        for name, module in self._network.named_modules():
            if isinstance(module, LoraLayer):
                yield name, module

    def _require_fit(self, change: WeightChange) -> None:
        """Raise MergeError unless a change has exactly the names and shapes of this policy's."""
        expected = {name: tuple(t.shape) for name, t in self._changeable()}
        given = {name: tuple(tensor.shape) for name, tensor in change.items()}
        if given != expected:
            wrong = sorted(given.items() ^ expected.items())[0]
            raise MergeError(
                f"a weight change does not fit the policy, first at {wrong}.",
                hint="a change holds every trained weight, as `change()` returns it.",
            )

    def _changeable(self) -> Iterator[tuple[str, Tensor]]:
        if self._is_lora:
            for name, layer in self._frozen.items():
                yield name, layer.get_parameter("weight")
        else:
            yield from self.policy_parameters()

    def _train_all(self) -> None:
        """Keep gradients on for every trained weight; switching adapters in PEFT turns some off."""
        for _, parameter in (*self.policy_parameters(), *self.critic_parameters()):
            parameter.requires_grad_(True)


def _read(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a safetensors file; CheckpointError when it is missing or damaged."""
    try:
        return load_file(path)
    except (OSError, SafetensorError) as error:
        raise CheckpointError(
            f"{path} cannot be read: {error}.", hint="go back to an earlier checkpoint."
        ) from error


def _require_same(path: Path, given: Mapping[str, Tensor], own: Mapping[str, Tensor]) -> None:
    left = {name: tuple(tensor.shape) for name, tensor in given.items()}
    right = {name: tuple(tensor.shape) for name, tensor in own.items()}
    if left != right:
        wrong = sorted(left.items() ^ right.items())[0]
        raise CheckpointError(
            f"{path} holds other weights than this run trains, first at {wrong}.",
            hint="was it written under another `lora`, `critic` or model?",
        )


@torch.no_grad()
def _copy_into(path: Path, own: Mapping[str, nn.Parameter]) -> None:
    state = _read(path)
    _require_same(path, state, own)
    for name, parameter in own.items():
        parameter.copy_(state[name])
