"""TIES over adapters that are kept, not summed: nothing dense is stored between merges.

Each adapter is kept as it is, with one threshold per module. A merge makes the changes again, a
tile of rows at a time, so that no whole change of an adapter is ever held. The cost grows with the
number of adapters, the storage is theirs alone; see `choose_lora_mode` for when that is the better
bargain.
"""

from typing import Any, Final, Literal, final

import torch
from torch import Tensor

from gtr_turbo.errors import MergeError
from gtr_turbo.merging.changes import Change, measure
from gtr_turbo.merging.kernels import Scratch
from gtr_turbo.merging.lora import TILE_ROWS, Adapter, LoraFactors, lora_delta
from gtr_turbo.merging.ties import check_density, ties_delta
from gtr_turbo.merging.weights import Real, check_alpha, ema_weights, sma_weights

_SUM_BYTES: Final = 10
"""Bytes of running sums per entry of a change: two float32 masses and two counts."""
_FACTOR_BYTES: Final = 4


def choose_lora_mode(
    num_entries: int, num_factor_values: int, num_checkpoints: int, device: str
) -> Literal["replay", "accumulate"]:
    """Return how a run should merge its adapters.

    Replay on an accelerator, as long as all adapters together are smaller than running sums would
    be; accumulate otherwise, and always on a CPU, where making the changes again is what costs.

    Args:
        num_entries: Entries of all dense changes together.
        num_factor_values: Numbers in one adapter.
        num_checkpoints: How many adapters the run will merge at most.
        device: Where merges are computed, such as `cpu` or `cuda`.
    """
    is_smaller = num_checkpoints * num_factor_values * _FACTOR_BYTES < num_entries * _SUM_BYTES
    return "replay" if device != "cpu" and is_smaller else "accumulate"


@final
class AdapterReplay:
    """Adapters and their thresholds, merged by TIES from the beginning every time."""

    def __init__(self, density: Real = 0.8, decay: Real | None = None, device: str = "cpu") -> None:
        """Start empty; `decay` is the weight of the newest in an exponential average."""
        self._density = check_density(density)
        if decay is not None:
            check_alpha(decay)
        self._decay = decay
        self._device = device
        self._adapters: list[dict[str, LoraFactors]] = []
        self._thresholds: list[dict[str, float]] = []

    def add(self, adapter: Adapter) -> None:
        """Keep a copy of `adapter` in float32 and find the threshold of each of its changes.

        Raises:
            MergeError: other modules or shapes than before, or a value that is not finite.
        """
        label = f"checkpoint-{len(self._adapters)}"
        if self._adapters:
            first = {name: own.shape for name, own in self._adapters[0].items()}
            found = {name: own.shape for name, own in adapter.items()}
            if first != found:
                odd = min(name for name in first.keys() | found.keys()
                          if first.get(name) != found.get(name))  # fmt: skip
                raise MergeError(
                    f'module "{odd}" has shape {found.get(odd)} in {label}, but {first.get(odd)}'
                    " before; None means that it is not adapted.",
                    hint="merge adapters of one run only: the same modules, the same model.",
                )
        kept = {name: _kept(own, self._device) for name, own in adapter.items()}
        scratch = Scratch()
        thresholds: dict[str, float] = {}
        for name, own in kept.items():
            dense = lora_delta(own.a, own.b, own.scaling).reshape(-1).cpu()
            change = Change(name=name, label=label, checkpoint=dense, base=None)
            thresholds[name] = float(measure(change, self._density, scratch).threshold)
        self._adapters.append(kept)
        self._thresholds.append(thresholds)

    def weights(self) -> tuple[float, ...]:
        """Return the weight of each adapter, oldest first; MergeError when there is none."""
        num = len(self._adapters)
        return sma_weights(num) if self._decay is None else ema_weights(num, self._decay)

    @torch.no_grad()
    def merged_delta(self) -> dict[str, Tensor]:
        """Return the merged change by module, float32, on the device of the merge."""
        weights = self.weights()
        return {name: self._merged(name, weights) for name in self._adapters[0]}

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return all factors by name and a JSON-able manifest, see `from_state`."""
        tensors: dict[str, Tensor] = {}
        for index, adapter in enumerate(self._adapters):
            for name, own in adapter.items():
                tensors |= {f"{index}/a/{name}": own.a, f"{index}/b/{name}": own.b}
        scalings = [{name: own.scaling for name, own in one.items()} for one in self._adapters]
        return tensors, {
            "mode": "replay",
            "density": self._density,
            "decay": self._decay,
            "scalings": scalings,
            "thresholds": [
                {name: value if value < float("inf") else None for name, value in own.items()}
                for own in self._thresholds
            ],
        }

    @staticmethod
    def from_state(
        tensors: dict[str, Tensor], manifest: dict[str, Any], device: str = "cpu"
    ) -> "AdapterReplay":
        """Return the replay that `state` described, with the thresholds found then."""
        replay = AdapterReplay(manifest["density"], manifest["decay"], device)
        for index, scalings in enumerate(manifest["scalings"]):
            replay._adapters.append(
                {
                    name: _kept(
                        LoraFactors(
                            a=tensors[f"{index}/a/{name}"],
                            b=tensors[f"{index}/b/{name}"],
                            scaling=scaling,
                        ),
                        device,
                    )
                    for name, scaling in scalings.items()
                }
            )
        replay._thresholds = [
            {name: float("inf") if value is None else value for name, value in own.items()}
            for own in manifest["thresholds"]
        ]
        return replay

    def _merged(self, name: str, weights: tuple[float, ...]) -> Tensor:
        factors = [adapter[name] for adapter in self._adapters]
        thresholds = [own[name] for own in self._thresholds]
        rows, columns = factors[0].shape
        result = torch.empty((rows, columns), device=self._device)
        for start in range(0, rows, TILE_ROWS):
            tiles = [
                lora_delta(own.a, own.b[start : start + TILE_ROWS], own.scaling) for own in factors
            ]
            result[start : start + TILE_ROWS] = ties_delta(tiles, weights, thresholds)
        return result


def _kept(factors: LoraFactors, device: str) -> LoraFactors:
    return LoraFactors(
        a=factors.a.detach().to(device, torch.float32, copy=True),
        b=factors.b.detach().to(device, torch.float32, copy=True),
        scaling=factors.scaling,
    )
