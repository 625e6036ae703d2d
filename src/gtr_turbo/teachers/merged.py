"""The free teacher: past weights of the run itself, merged, scoring the agent's own thoughts."""

from collections.abc import Mapping, Sequence
from typing import final

import torch
from jaxtyping import Float32
from torch import Tensor

from gtr_turbo.core.batch import Guidance, Scores, TokenRows
from gtr_turbo.core.config import GuidanceConfig
from gtr_turbo.core.turns import Turn
from gtr_turbo.errors import StaleTeacherError
from gtr_turbo.merging import fingerprint
from gtr_turbo.ops.kl import ESTIMATORS, mean_over_tokens
from gtr_turbo.policies.base import AbstractPolicy, WeightChange
from gtr_turbo.teachers.base import AbstractTeacher


@final
class WeightTeacher(AbstractTeacher):
    """A teacher that is a weight change of the agent's own start: merged, or frozen at zero."""

    def __init__(self, config: GuidanceConfig, temperature: float, micro_batch_size: int) -> None:
        """Begin without weights: there is no guidance until `become` gives some."""
        self._config = config
        self._temperature = temperature
        self._micro_batch_size = micro_batch_size
        self._change: dict[str, Tensor] | None = None
        self._fingerprint: str | None = None

    @property
    def is_ready(self) -> bool:
        """False until the first `become`."""
        return self._change is not None

    @property
    def fingerprint(self) -> str | None:
        """Hash of the weight change that the teacher wears."""
        return self._fingerprint

    @property
    def change(self) -> dict[str, Tensor]:
        """The weight change that the teacher wears."""
        if self._change is None:
            raise StaleTeacherError("the teacher has no weights yet.")
        return self._change

    def become(self, change: WeightChange, *, must_differ: bool) -> None:
        """Take over a merged change; StaleTeacherError when it had to differ and does not."""
        new = fingerprint(change)
        if must_differ and new == self._fingerprint:
            raise StaleTeacherError(
                f"a merge left the teacher as it was (fingerprint {new[:12]}).",
                hint="did the agent's weights change since the last merge? A frozen teacher is"
                " asked for with `merge.freeze_after`.",
            )
        self._change, self._fingerprint = dict(change), new

    @torch.no_grad()
    def guide(
        self, policy: AbstractPolicy, turns: Sequence[Turn], rows: TokenRows, scores: Scores
    ) -> Guidance:
        """Return the estimated reverse KL of each turn: one forward pass, pictures included.

        Only what can count is scored: well-formed replies, and of these only the compared tokens.

        Agent and teacher are compared on the tokens that were sampled, at `guidance.temperature`
        (paper, Eq. 6 and 7). Malformed replies are not guided, or charged `invalid_format_kl`.
        """
        config = self._config
        is_valid = torch.tensor([turn.parsed.valid_format for turn in turns])
        is_compared = rows.is_thought if config.tokens == "thought" else rows.is_response
        is_guided = is_valid & is_compared.any(dim=1)
        kl = torch.full(is_valid.shape, config.invalid_format_kl or 0.0).where(~is_valid, 0.0)
        chosen = is_guided.nonzero().flatten()
        if len(chosen):
            asked = rows.up_to_action() if config.tokens == "thought" else rows
            logprobs = self.score(policy, asked.select(chosen))
            width = logprobs.shape[1]
            token_kl = ESTIMATORS[config.estimator](
                scores.reference_token_logprob[chosen, :width], logprobs
            )
            kl[chosen] = mean_over_tokens(token_kl, is_compared[chosen, :width], config.token_cap)
        return Guidance(kl=kl, is_guided=is_guided)

    @torch.no_grad()
    def score(self, policy: AbstractPolicy, rows: TokenRows) -> Float32[Tensor, "turn seq"]:
        """Return the teacher's log-probability of each sampled token, scored as the agent's."""
        temperature = self._temperature
        with policy.wearing(self.change):
            pieces = [
                policy.score(part, temperature, temperature, values=False).token_logprob.cpu()
                for part in rows.chunks(self._micro_batch_size)
            ]
        return stack_padded(pieces, rows.token_ids.shape[1])


def stack_padded(
    pieces: Sequence[Float32[Tensor, "_ _"]], width: int
) -> Float32[Tensor, "turn seq"]:
    """Return [turn, seq] pieces of different widths as one tensor, zeros on the right."""
    return torch.cat(
        [torch.nn.functional.pad(piece, (0, width - piece.shape[1])) for piece in pieces]
    )


def zero_change(change: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return a change of nothing: the start of the run as a static teacher."""
    return {name: torch.zeros_like(tensor) for name, tensor in change.items()}
