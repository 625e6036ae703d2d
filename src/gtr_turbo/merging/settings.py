"""How a running merge combines what it is given."""

from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, final

from gtr_turbo.errors import MergeError, nearest_hint
from gtr_turbo.merging.arrays.trimming import check_density
from gtr_turbo.merging.weights import Real, check_alpha, ema_weights

RULE_VERSION = 1
"""Grows when the same settings and checkpoints would give another result."""

SUM_FORMATS: Final = ("fp32", "fp64", "fp16", "int32")
"""Names of the formats that running sums can be stored in; see `formats`."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TiesOptions:
    """What the paper leaves open. The defaults are the canonical rule."""

    scope: str = "tensor"
    """`tensor`: every tensor has its own threshold; `global`: one over all tensors."""
    denominator: str = "matched"
    """Divide by the weight of the checkpoints that agree, or by that of all."""
    ema_init: str = "first"
    """What the first checkpoint weighs under `decay`."""
    sum_format: str | None = None
    """Storage of the sums: None = float32, or float64 with a window so that leaving is exact."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MergeSettings:
    """Everything that decides the result of a running merge, checked."""

    method: Literal["ties", "linear"]
    density: Real
    scale: Real
    decay: Real | None
    window: int | None
    options: TiesOptions

    def __post_init__(self) -> None:
        """Refuse values that no merge can have."""
        check_density(self.density)
        check_scale(self.scale)
        check_choice("scope", self.options.scope, ("tensor", "global"))
        check_choice("denominator", self.options.denominator, ("matched", "total"))
        if self.decay is not None:
            check_alpha(self.decay)
        ema_weights(1, 1.0, self.options.ema_init)
        check_sum_format(self.sum_format)
        if self.window is not None and self.window < 1:
            raise MergeError(
                f"a window must hold at least 1 checkpoint, got {self.window}.",
                hint="leave `window` out to merge every checkpoint.",
            )
        if self.window is not None and self.decay is not None:
            raise MergeError(
                f"a window ({self.window}) and a decay ({self.decay}) exclude each other.",
                hint="choose the last W checkpoints, or all of them with fading weights.",
            )

    @property
    def sum_format(self) -> str:
        """Name of the storage format of the sums."""
        if self.options.sum_format is not None:
            return self.options.sum_format
        return "fp32" if self.window is None else "fp64"

    @property
    def keeps_all(self) -> bool:
        """True when nothing is trimmed."""
        return self.method == "linear" or self.density == 1.0

    def to_json(self) -> dict[str, Any]:
        """Return the settings as JSON values."""
        return asdict(self) | {"rule_version": RULE_VERSION}

    @staticmethod
    def from_json(stored: dict[str, Any]) -> "MergeSettings":
        """Return the settings that `to_json` described; MergeError on another rule version."""
        values = dict(stored)
        version = values.pop("rule_version")
        if version != RULE_VERSION:
            raise MergeError(
                f"the stored merge follows rule version {version}, this program version"
                f" {RULE_VERSION}.",
                hint="add the checkpoints to a new accumulator.",
            )
        values["options"] = TiesOptions(**values["options"])
        return MergeSettings(**values)


def check_scale(scale: Real) -> None:
    """Raise MergeError unless `scale`, the factor of the merged change, is a finite number."""
    if not -float("inf") < scale < float("inf"):
        raise MergeError(
            f"the scale of the merged change must be finite, got {scale}.",
            hint="1 takes the merged change as it is.",
        )


def check_sum_format(name: str) -> None:
    """Raise MergeError unless there is a storage format called `name`."""
    if name not in SUM_FORMATS:
        raise MergeError(
            f'there is no sum format named "{name}".',
            hint=nearest_hint(name, SUM_FORMATS, "formats"),
        )


def check_choice(field: str, value: str, allowed: tuple[str, ...]) -> None:
    """Raise MergeError unless the option `field` has one of the allowed values."""
    if value not in allowed:
        raise MergeError(
            f'`{field}` must be one of {", ".join(allowed)}, got "{value}".',
            hint=f'"{allowed[0]}" is the default.',
        )
