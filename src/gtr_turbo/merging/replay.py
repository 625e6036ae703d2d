"""A merge over adapters that are kept, not summed: nothing dense is stored between merges.

Each adapter is kept as it is, with one threshold per module. A merge makes the changes again, a
tile of rows at a time, so that no whole change of an adapter is ever held. The cost grows with the
number of adapters, the storage is theirs alone; see `choose_lora_mode` for when that is the better
bargain.
"""

from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, final

import torch
from jaxtyping import Float32
from torch import Tensor

from gtr_turbo.errors import MergeError
from gtr_turbo.merging.arrays.kernels import Scratch
from gtr_turbo.merging.changes import Change, measure
from gtr_turbo.merging.io import load_state, save_state
from gtr_turbo.merging.lora import (
    TILE_ROWS,
    Adapter,
    LoraFactors,
    check_factors,
    imitate_factor_merge,
    lora_delta,
)
from gtr_turbo.merging.settings import MergeSettings
from gtr_turbo.merging.sums import MergeStatistics
from gtr_turbo.merging.ties import ties_delta, trim
from gtr_turbo.merging.weights import ema_weights, sma_weights

LoraMode = Literal["replay", "accumulate"]

_SUM_BYTES: Final = 10
"""Bytes of running sums per entry of a change: two float32 masses and two counts."""
_FACTOR_BYTES: Final = 4


def choose_lora_mode(
    num_entries: int, num_factor_values: int, num_checkpoints: int, device: str
) -> LoraMode:
    """Return how a run should merge its adapters.

    Replay on an accelerator, as long as all adapters together are smaller than running sums would
    be; accumulate otherwise, and always on a CPU, where making the changes again is what costs.

    Args:
        num_entries: Entries of all dense changes together.
        num_factor_values: Numbers in one adapter.
        num_checkpoints: How many adapters the run will merge at most.
        device: Where the adapters are, such as `cpu` or `cuda`.
    """
    is_smaller = num_checkpoints * num_factor_values * _FACTOR_BYTES < num_entries * _SUM_BYTES
    return "replay" if device != "cpu" and is_smaller else "accumulate"


@final
class AdapterReplay:
    """Adapters and their thresholds, merged from the beginning every time.

    The settings are those of an accumulator; the result is the same, to the bit on a CPU, unless
    factors are merged, which is another rule.
    """

    def __init__(self, settings: MergeSettings, in_factors: bool = False) -> None:
        """Start empty.

        `in_factors` merges A and B apart, as some released code does (`imitate_factor_merge`), and
        multiplies the merged factors. It is there to reproduce such code: the result is not a merge
        of the changes. `diagnostics` then compares it with the plain mean of the true changes.

        Raises MergeError for a global threshold, which needs all modules at once, or another
        denominator than `matched`.
        """
        if settings.options.scope == "global" or settings.options.denominator != "matched":
            raise MergeError(
                "replayed adapters have neither a global threshold nor another denominator than"
                " `matched`.",
                hint="use an accumulator for those.",
            )
        self._settings = settings
        self._in_factors = in_factors
        self._adapters: deque[dict[str, LoraFactors]] = deque(maxlen=settings.window)
        self._thresholds: deque[dict[str, float]] = deque(maxlen=settings.window)
        self._num_seen = 0
        self._statistics: dict[str, float] = {}

    def add(self, adapter: Adapter) -> None:
        """Keep a copy of `adapter` in float32 and find the threshold of each of its changes.

        With a window the oldest leaves when it is full.

        Raises:
            MergeError: other modules or shapes than before (when factors are merged: other ranks or
                scalings as well), or a value that is not finite.
        """
        label = f"checkpoint-{self._num_seen}"
        if self._adapters:
            _check_same(adapter, self._adapters[0], label)
            if self._in_factors:
                check_factors([self._adapters[0], adapter], ("before", label))
        kept = {name: _copy(own) for name, own in adapter.items()}
        is_whole = self._settings.keeps_all or self._in_factors
        density = 1.0 if is_whole else self._settings.density
        scratch = Scratch()
        thresholds: dict[str, float] = {}
        for name, own in kept.items():
            dense = lora_delta(own.a, own.b, own.scaling).reshape(-1).cpu()
            change = Change(name=name, label=label, checkpoint=dense, base=None)
            thresholds[name] = float(measure(change, density, scratch).threshold)
        self._adapters.append(kept)
        self._thresholds.append(thresholds)
        self._num_seen += 1

    def weights(self) -> tuple[float, ...]:
        """Return the weight of each adapter, oldest first; MergeError when there is none."""
        num, decay = len(self._adapters), self._settings.decay
        if decay is None:
            return sma_weights(num)
        return ema_weights(num, decay, self._settings.options.ema_init)

    @torch.no_grad()
    def merged_delta(self) -> dict[str, Tensor]:
        """Return the merged change by module, scaled, float32, where the adapters are."""
        weights = self.weights()
        statistics = MergeStatistics()
        joint = self._merged_factors(weights) if self._in_factors else {}
        merged = {
            name: self._merged(name, weights, statistics, joint.get(name))
            for name in self._adapters[0]
        }
        self._statistics = statistics.summary() | {"num_checkpoints": float(len(weights))}
        return merged

    def diagnostics(self) -> dict[str, float]:
        """Return the figures that an accumulator gives of the last merge, empty before the first.

        Norm ratio and cosine are summed tile by tile, so they agree to rounding.
        """
        return dict(self._statistics)

    def save(self, directory: Path) -> None:
        """Write adapters and thresholds to `directory`, whole or not at all."""
        tensors: dict[str, Tensor] = {}
        for index, adapter in enumerate(self._adapters):
            for name, own in adapter.items():
                tensors |= {f"{index}/a/{name}": own.a, f"{index}/b/{name}": own.b}
        first = next(iter(self._adapters[0].values())) if self._adapters else None
        manifest: dict[str, Any] = {
            "settings": self._settings.to_json(),
            "in_factors": self._in_factors,
            "num_seen": self._num_seen,
            "device": "cpu" if first is None else str(first.a.device),
            "scalings": [{name: own.scaling for name, own in a.items()} for a in self._adapters],
            "thresholds": [
                {name: value if value < float("inf") else None for name, value in own.items()}
                for own in self._thresholds
            ],
        }
        save_state(directory, tensors, manifest)

    @staticmethod
    def load(directory: Path) -> "AdapterReplay":
        """Return the replay that `save` wrote, on the device where it was.

        Raises CheckpointError when the state is damaged.
        """
        tensors, manifest = load_state(directory)
        settings = MergeSettings.from_json(manifest["settings"])
        replay = AdapterReplay(settings, in_factors=manifest.get("in_factors", False))
        device = manifest["device"]
        for index, scalings in enumerate(manifest["scalings"]):
            replay._adapters.append({
                name: LoraFactors(
                    a=tensors[f"{index}/a/{name}"].to(device),
                    b=tensors[f"{index}/b/{name}"].to(device),
                    scaling=scaling,
                )
                for name, scaling in scalings.items()
            })  # fmt: skip
        replay._thresholds.extend(
            {name: float("inf") if value is None else value for name, value in own.items()}
            for own in manifest["thresholds"]
        )
        replay._num_seen = manifest["num_seen"]
        return replay

    def _merged_factors(self, weights: tuple[float, ...]) -> dict[str, LoraFactors]:
        """Return A and B merged apart, where the adapters are."""
        options = {"density": self._settings.density} if self._settings.method == "ties" else {}
        joint = imitate_factor_merge(
            list(self._adapters), method=self._settings.method, weights=weights, **options
        )
        return {
            name: LoraFactors(
                a=own.a.to(self._adapters[0][name].a.device),
                b=own.b.to(self._adapters[0][name].b.device),
                scaling=own.scaling,
            )
            for name, own in joint.items()
        }

    def _merged(
        self,
        name: str,
        weights: tuple[float, ...],
        statistics: MergeStatistics,
        joint: LoraFactors | None,
    ) -> Float32[Tensor, "row column"]:
        """Return the merged change of a module: that of `joint`, the merged factors, if given."""
        factors = [adapter[name] for adapter in self._adapters]
        thresholds = [own[name] for own in self._thresholds]
        rows, columns = factors[0].shape
        result = torch.empty((rows, columns), device=factors[0].b.device)
        for start in range(0, rows, TILE_ROWS):
            tiles = [
                lora_delta(own.a, own.b[start : start + TILE_ROWS], own.scaling) for own in factors
            ]
            mean = torch.zeros_like(tiles[0])
            for tile, weight, threshold in zip(tiles, weights, thresholds, strict=True):
                mean.add_(trim(tile, threshold), alpha=weight)
            mean /= sum(weights)
            merged = mean
            if joint is not None:
                merged = lora_delta(joint.a, joint.b[start : start + TILE_ROWS], joint.scaling)
            elif self._settings.method == "ties":
                merged = ties_delta(tiles, weights, thresholds)
            statistics.include(merged.flatten().cpu(), mean.flatten().cpu())
            result[start : start + TILE_ROWS] = merged
        return result if self._settings.scale == 1.0 else result.mul_(self._settings.scale)


def _check_same(adapter: Adapter, first: Adapter, label: str) -> None:
    known = {name: own.shape for name, own in first.items()}
    found: Mapping[str, tuple[int, int]] = {name: own.shape for name, own in adapter.items()}
    if known != found:
        odd = min(n for n in known.keys() | found.keys() if known.get(n) != found.get(n))
        raise MergeError(
            f'module "{odd}" has shape {found.get(odd)} in {label}, but {known.get(odd)}'
            " before; None means that it is not adapted.",
            hint="merge adapters of one run only: the same modules, the same model.",
        )


def _copy(factors: LoraFactors) -> LoraFactors:
    return LoraFactors(
        a=factors.a.detach().to(torch.float32, copy=True),
        b=factors.b.detach().to(torch.float32, copy=True),
        scaling=factors.scaling,
    )
