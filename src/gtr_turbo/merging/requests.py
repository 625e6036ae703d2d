"""What `gtr-turbo merge` is asked for, and what it answers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, final

import torch

from gtr_turbo.errors import MergeError, nearest_hint
from gtr_turbo.merging.weights import Real

Form = Literal["model", "adapter", "change"]
"""What is written: a whole model, a PEFT adapter, or the dense change by name."""

OUTPUT_DTYPES: Final[Mapping[str, torch.dtype]] = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MergeRequest:
    """Which directories to merge, how, and where the result goes."""

    checkpoints: tuple[Path, ...]
    """Model directories, adapter directories, safetensors files or run directories, oldest first.
    A run directory stands for all of its checkpoints."""
    out: Path
    """Directory to write; it must not exist."""
    base: Path | None = None
    """Model directory that changes are relative to. Plain means of models do without."""
    reference: Path | None = None
    """Adapter that training started from, if that was not zero."""
    method: str = "ties"
    density: Real | tuple[Real, ...] = 0.8
    weights: tuple[Real, ...] | None = None
    scale: Real = 1.0
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The method's own options."""
    form: Form | None = None
    """None: a model where there is a base or the checkpoints are models, else an adapter."""
    rank: int | None = None
    """Rank of an adapter that approximates a merge; None: that of the first adapter."""
    dtype: str | None = None
    """Type of the written weights; None: that of the base."""
    seed: int = 0
    """Seed of the randomised decomposition of large adapters."""

    def __post_init__(self) -> None:
        """Refuse a request that cannot be carried out."""
        if not self.checkpoints:
            raise MergeError(
                "there is no checkpoint to merge.", hint="name at least one directory."
            )
        if self.dtype is not None and self.dtype not in OUTPUT_DTYPES:
            raise MergeError(
                f'there is no output type named "{self.dtype}".',
                hint=nearest_hint(self.dtype, OUTPUT_DTYPES, "types"),
            )
        if self.out.exists():
            raise MergeError(
                f"{self.out} exists already.",
                hint="choose another directory, or remove it first; nothing is overwritten.",
            )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MergeReport:
    """What was written."""

    out: Path
    form: Form
    method: str
    num_checkpoints: int
    num_tensors: int
    num_parameters: int
    num_changed_tensors: int
    """Tensors of the result that differ from the base; 0 where there is none to compare with."""
    fingerprint: str
    """sha256 over names, types, shapes and bytes of what was written, see `fingerprint`."""
    residual: float
    """|change - written form| / |change| over all tensors; 0 for exact forms."""
    merged_names: tuple[str, ...]
    """Checkpoints that went in, in order."""
