"""PEFT adapter directories as sources of dense changes, made one module at a time."""

import re
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

import torch
from jaxtyping import Shaped
from torch import Tensor

from gtr_turbo.errors import CheckpointError, MergeError
from gtr_turbo.merging.lora import LoraFactors, lora_delta, lora_scaling
from gtr_turbo.merging.model_files import read_json
from gtr_turbo.merging.safetensors_files import Entry, read_entry, read_header
from gtr_turbo.merging.sources import AbstractTensorSource
from gtr_turbo.merging.weights import Real

ADAPTER_CONFIG: Final = "adapter_config.json"
ADAPTER_FILE: Final = "adapter_model.safetensors"
OFFSET_FILE: Final = "offset.safetensors"
"""A dense change that counts beside the adapter's (docs/guard.md)."""
BESIDE_OFFSET_FILE: Final = "adapter_beside_offset.safetensors"
"""Where the adapter is when there is an offset: PEFT, which knows of none, must not find it."""
_PREFIX: Final = "base_model.model."
_A_SUFFIX: Final = ".lora_A.weight"
_B_SUFFIX: Final = ".lora_B.weight"

# Each of these makes the change something else than scaling * B @ A on the unchanged base.
_REFUSED_WHEN_SET: Final = (
    "use_dora",
    "use_qalora",
    "use_bdlora",
    "lora_bias",
    "fan_in_fan_out",
    "kasa_config",
    "arrow_config",
    "velora_config",
    "monteclora_config",
    "alora_invocation_tokens",
    "trainable_token_indices",
    "target_parameters",
    "layer_replication",
)
_PLAIN_STARTS: Final = (True, False, "gaussian", "eva", "orthogonal")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterSettings:
    """What adapter_config.json says about the size of the change."""

    rank: int
    alpha: Real
    use_rslora: bool
    rank_pattern: Mapping[str, int]
    alpha_pattern: Mapping[str, Real]

    def scaling(self, module: str) -> float:
        """Return the factor of B @ A for `module`, after the patterns."""
        rank = int(_matching(self.rank_pattern, module, self.rank))
        alpha = _matching(self.alpha_pattern, module, self.alpha)
        return lora_scaling(rank, alpha, use_rslora=self.use_rslora)


@final
class AdapterFiles(AbstractTensorSource):
    """The change that an adapter directory makes, by the name of the weight that it changes.

    Modules that were trained in full (`modules_to_save`) count with their difference to the base,
    and an offset that the agent carries beside its adapter counts as well.
    """

    def __init__(
        self,
        path: Path,
        label: str | None = None,
        base_tensor: Callable[[str], Shaped[Tensor, "..."]] | None = None,
    ) -> None:
        """Read configuration and header below `path`.

        Args:
            path: The directory.
            label: What messages call it; None: the path.
            base_tensor: Returns a weight of the base by its name in the model; needed for modules
                that were trained in full.

        Raises:
            CheckpointError: a file is missing or damaged.
            MergeError: the adapter is not a plain LoRA.
        """
        self._path = path
        self._label = label or str(path)
        self._base_tensor = base_tensor
        self.config: dict[str, Any] = read_json(path / ADAPTER_CONFIG)
        self._settings = read_settings(self.config, self._label)
        has_offset = (path / BESIDE_OFFSET_FILE).is_file()
        self._entries = read_header(path / (BESIDE_OFFSET_FILE if has_offset else ADAPTER_FILE))
        self._modules, self._saved = self._sorted_entries()
        self._offset = read_header(path / OFFSET_FILE) if has_offset else {}
        self._check_offset()
        if self._saved and base_tensor is None:
            raise MergeError(
                f'{self._label} holds "{next(iter(self._saved))}", a module trained in full; its'
                " change cannot be known without the base.",
                hint="give the base model as well.",
            )

    @property
    def label(self) -> str:
        """What messages call this adapter."""
        return self._label

    def names(self) -> tuple[str, ...]:
        """Return the names of the changed weights, sorted."""
        return tuple(sorted([*self._modules, *self._saved]))

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a changed weight."""
        if name in self._saved:
            return self._saved[name].shape
        a, b = self._modules[name]
        return (b.shape[0], a.shape[1])

    def dtype(self, name: str) -> torch.dtype:
        """Return float32: changes are made in it whatever the factors are stored in."""
        del name
        return torch.float32

    def storage(self, name: str) -> Hashable:
        """Return the name: changes share nothing."""
        return name

    def read(self, name: str) -> Shaped[Tensor, "..."]:
        """Return the dense change of a weight."""
        if name in self._saved:
            assert self._base_tensor is not None
            saved = read_entry(self._saved[name]).to(torch.float32)
            return saved - self._base_tensor(name).to(torch.float32)
        factors = self._factors(name)
        change = lora_delta(factors.a, factors.b, factors.scaling)
        return change.add_(read_entry(self._offset[name])) if self._offset else change

    def factors(self, name: str) -> LoraFactors:
        """Return the factors of a weight; MergeError where they are not its whole change."""
        if name not in self._modules or self._offset:
            how = "has an offset" if self._offset else "was trained in full and has no factors"
            raise MergeError(
                f'"{name}" of {self._label} {how}.',
                hint="write a merged model instead of an adapter.",
            )
        return self._factors(name)

    def _factors(self, name: str) -> LoraFactors:
        a, b = self._modules[name]
        scaling = self._settings.scaling(name.removesuffix(".weight"))
        return LoraFactors(a=read_entry(a), b=read_entry(b), scaling=scaling)

    def _sorted_entries(self) -> tuple[dict[str, tuple[Entry, Entry]], dict[str, Entry]]:
        left = _with_suffix(self._entries, _A_SUFFIX)
        right = _with_suffix(self._entries, _B_SUFFIX)
        if left.keys() != right.keys():
            odd = min(left.keys() ^ right.keys())
            raise MergeError(
                f'{self._label} has only one factor of "{odd}".',
                hint="an adapter holds lora_A and lora_B of each module; save it again.",
            )
        for module, a in left.items():
            self._check_factors(module, a, right[module])
        saved: dict[str, Entry] = {}
        for key, entry in self._entries.items():
            if key.endswith((_A_SUFFIX, _B_SUFFIX)):
                continue
            if "lora_" in key or not entry.dtype.is_floating_point:
                raise MergeError(
                    f'{self._label} holds "{key}", which is neither a linear LoRA factor nor a'
                    " module trained in full.",
                    hint="embedding, convolution and DoRA adapters cannot be merged.",
                )
            saved[key.removeprefix(_PREFIX)] = entry
        return {f"{module}.weight": (a, right[module]) for module, a in left.items()}, saved

    def _check_offset(self) -> None:
        """Raise MergeError unless an offset has the weights that the adapter has, and no other."""
        if not self._offset:
            return
        offset = {name: entry.shape for name, entry in self._offset.items()}
        adapter = {name: self.shape(name) for name in self._modules}
        if offset != adapter:
            name = min(key for key in offset.keys() | adapter.keys()
                       if offset.get(key) != adapter.get(key))  # fmt: skip
            raise MergeError(
                f'the offset of {self._label} has shape {offset.get(name)} at "{name}", its adapter'
                f" {adapter.get(name)}; None means that it has no such weight.",
                hint="offset and adapter come from different checkpoints.",
            )

    def _check_factors(self, module: str, a: Entry, b: Entry) -> None:
        settings = self._settings
        expected = int(_matching(settings.rank_pattern, module, settings.rank))
        matrix = 2
        if len(a.shape) != matrix or len(b.shape) != matrix:
            raise MergeError(
                f'the factors of "{module}" in {self._label} have shapes {a.shape} and {b.shape};'
                " only those of linear modules can be merged.",
                hint="adapt linear modules only.",
            )
        if a.shape[0] != b.shape[1] or a.shape[0] != expected:
            raise MergeError(
                f'the factors of "{module}" in {self._label} have shapes {a.shape} and {b.shape},'
                f" the configuration says rank {expected}.",
                hint="configuration and weights come from different adapters.",
            )


def is_adapter(path: Path) -> bool:
    """Return whether `path` is a directory with a PEFT adapter."""
    return (path / ADAPTER_CONFIG).is_file()


def read_settings(config: Mapping[str, Any], label: str) -> AdapterSettings:
    """Return rank, alpha and patterns; MergeError when the adapter is not a plain LoRA."""
    if config.get("peft_type") != "LORA":
        raise MergeError(
            f"{label} is an adapter of type {config.get('peft_type')}; only LORA can be merged.",
            hint="merge it into its base first and merge the models.",
        )
    for field in _REFUSED_WHEN_SET:
        if config.get(field):
            raise MergeError(
                f"{label} sets `{field}` to {config[field]}: its change is not scaling * B @ A.",
                hint="merge it into its base first and merge the models.",
            )
    if config.get("bias", "none") != "none":
        raise MergeError(
            f"{label} trains biases (`bias: {config['bias']}`), which the factors do not show.",
            hint="merge it into its base first and merge the models.",
        )
    start = config.get("init_lora_weights", True)
    if start not in _PLAIN_STARTS:
        raise MergeError(
            f'{label} was initialised with "{start}", which changes the base weights as well.',
            hint="convert it to a plain LoRA first; PEFT can do that when it saves.",
        )
    try:
        return AdapterSettings(
            rank=int(config["r"]),
            alpha=float(config["lora_alpha"]),
            use_rslora=bool(config.get("use_rslora", False)),
            rank_pattern=dict(config.get("rank_pattern") or {}),
            alpha_pattern=dict(config.get("alpha_pattern") or {}),
        )
    except KeyError as error:
        raise CheckpointError(
            f"{ADAPTER_CONFIG} of {label} lacks {error}.", hint="the file is damaged."
        ) from error


def _with_suffix(entries: Mapping[str, Entry], suffix: str) -> dict[str, Entry]:
    return {
        key.removeprefix(_PREFIX).removesuffix(suffix): entry
        for key, entry in entries.items()
        if key.endswith(suffix)
    }


def _matching(pattern: Mapping[str, Real], module: str, default: Real) -> Real:
    """Return the value of the first key that matches the end of `module`, as in PEFT."""
    for key, value in pattern.items():
        if re.match(rf"(.*\.)?({key})$", module):
            return value
    return default
