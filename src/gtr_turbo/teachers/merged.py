"""The free teacher: past weights of the run itself, merged, scoring the agent's own thoughts."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import final

import torch
from jaxtyping import Bool, Float32
from torch import Tensor

from gtr_turbo.core.batch import Guidance, Scores, TokenRows
from gtr_turbo.core.config import GuidanceConfig
from gtr_turbo.core.turns import Turn
from gtr_turbo.errors import StaleTeacherError
from gtr_turbo.merging import fingerprint
from gtr_turbo.ops.collate import score_in_chunks
from gtr_turbo.ops.kl import ESTIMATORS, k1, limited, mean_over_tokens
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
        Under `distillation` each compared token's own estimate becomes its advantage, −β K1.
        """
        config = self._config
        is_valid = torch.tensor([turn.parsed.valid_format for turn in turns])
        is_compared = _compared(rows, config.tokens)
        is_guided = is_valid & is_compared.any(dim=1)
        kl = torch.zeros(is_valid.shape)
        token_kl = torch.zeros(rows.token_ids.shape)
        chosen = is_guided.nonzero().flatten()
        if len(chosen):
            asked = (rows.up_to_action() if config.tokens == "thought" else rows).select(chosen)
            agent = scores.reference_token_logprob[chosen, : asked.token_ids.shape[1]]
            if config.pictures == "blank":
                asked = replace(asked, vision=asked.vision.blank())
                agent = self._scored(policy, asked)
            teacher = self.score(policy, asked)
            width = teacher.shape[1]
            compared = is_compared[chosen, :width]
            estimate = ESTIMATORS[config.estimator](agent, teacher)
            kl[chosen] = mean_over_tokens(estimate, compared, config.token_cap)
            token_kl[chosen, :width] = limited(k1(agent, teacher), config.token_cap) * compared
        charge = config.invalid_format_kl or 0.0
        if charge == "mean":
            charge = float(kl[chosen].mean()) if len(chosen) else 0.0
        kl[~is_valid] = charge
        is_distilled = config.kind == "distillation"
        return Guidance(
            is_guided=is_guided,
            kl=kl,
            token_advantage=-config.coef * token_kl if is_distilled else None,
        )

    @torch.no_grad()
    def score(self, policy: AbstractPolicy, rows: TokenRows) -> Float32[Tensor, "turn seq"]:
        """Return the teacher's log-probability of each sampled token, scored as the agent's."""
        with policy.wearing(self.change):
            return self._scored(policy, rows)

    def close(self) -> None:
        """Do nothing: nothing was started."""

    def _scored(self, policy: AbstractPolicy, rows: TokenRows) -> Float32[Tensor, "turn seq"]:
        """Return the log-probabilities of whoever the policy is now."""
        temperature = self._temperature
        return score_in_chunks(
            lambda part: policy.score(part, temperature, temperature, values=False),
            rows,
            self._micro_batch_size,
        ).token_logprob


def _compared(rows: TokenRows, tokens: str) -> Bool[Tensor, "turn seq"]:
    return {"thought": rows.is_thought, "reply": rows.is_response, "action": rows.is_action}[tokens]


def zero_change(change: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return a change of nothing: the start of the run as a static teacher."""
    return {name: torch.zeros_like(tensor) for name, tensor in change.items()}
