"""What a policy can do: read observations, reply, score replies, and lend its weights out."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import torch
from jaxtyping import Float32
from torch import Tensor

from gtr_turbo.core.batch import Scores, TokenRows
from gtr_turbo.core.turns import Observation, Prompt, Reply, SamplingSettings

WeightChange = Mapping[str, Tensor]
"""Change of each trained weight against the run's start, float32, by its name in the model."""


class AbstractPolicy(ABC):
    """A vision-language model that plays. Axes are those of `core/batch.py`."""

    @property
    @abstractmethod
    def pad_token_id(self) -> int:
        """Token id that fills rows; masked everywhere."""

    @abstractmethod
    def sampling(self, temperature: float, max_new_tokens: int) -> SamplingSettings:
        """Return the settings under which this policy samples and scores."""

    @abstractmethod
    def encode(self, observations: Sequence[Observation]) -> list[Prompt]:
        """Return the observations as token ids and patches, chat template included."""

    @abstractmethod
    def respond(
        self, prompts: Sequence[Prompt], sampling: SamplingSettings, generator: torch.Generator
    ) -> list[Reply]:
        """Return one sampled reply per prompt, with its behaviour log-probabilities."""

    @abstractmethod
    def written_reply(self, text: str) -> Reply:
        """Return a text that somebody wrote as a reply, the end-of-turn token included."""

    @abstractmethod
    def score(
        self,
        rows: TokenRows,
        temperature: float,
        reference_temperature: float,
        *,
        values: bool,
        entropy: bool = False,
    ) -> Scores:
        """Return log-probabilities and, when asked, values and entropy of replies as given."""

    @abstractmethod
    def value(self, prompts: Sequence[Prompt]) -> Float32[Tensor, " turn"]:
        """Return the critic's estimate for each prompt."""

    @abstractmethod
    def training(self, *, dropout: bool) -> AbstractContextManager[None]:
        """Return a context in which `score` keeps gradients (and drops out, when asked)."""

    @abstractmethod
    def policy_parameters(self) -> Iterator[tuple[str, torch.nn.Parameter]]:
        """Yield the trained weights of the policy, in a fixed order."""

    @abstractmethod
    def critic_parameters(self) -> Iterator[tuple[str, torch.nn.Parameter]]:
        """Yield the trained weights of the critic, in a fixed order."""

    @abstractmethod
    def change(self) -> WeightChange:
        """Return ΔW of each trained weight against the run's start, float32, on the CPU."""

    @abstractmethod
    def wearing(self, change: WeightChange) -> AbstractContextManager[None]:
        """Return a context in which the policy acts with the start's weights plus `change`."""

    @abstractmethod
    def become(self, change: WeightChange) -> None:
        """Put the policy's own weights at the start's plus `change`; training goes on from there.

        The critic stays as it is. Raises MergeError for other names or shapes.
        """

    @abstractmethod
    def fingerprint(self) -> str:
        """Return the sha256 of the policy's trained weights."""

    @abstractmethod
    def save(self, directory: Path) -> None:
        """Write policy and critic weights as safetensors and JSON."""

    @abstractmethod
    def load(self, directory: Path) -> None:
        """Read what `save` wrote; refuses any other set of weights."""
