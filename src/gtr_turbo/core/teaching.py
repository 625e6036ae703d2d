"""The knobs of whoever guides: teacher, corrector, merge, and the guard over them.

Part of the configuration (`core/config.py`), which offers these classes as its own.
"""

from typing import Annotated, Literal, final

from pydantic import Field

from gtr_turbo.core.section import Section

Place = Literal["reward", "advantage", "return"]
"""Where a penalty or a bonus enters the credit of a turn."""


@final
class GuidanceConfig(Section):
    """What the teacher adds."""

    kind: Literal["none", "kl", "sft", "distillation", "constant"] = "kl"
    """`none` is plain PPO (RL4VLM); `kl` is GTR-Turbo (KL); `sft` imitates thoughts that the
    teacher writes: GTR-Turbo (SFT), and GTR with a corrector; `distillation` makes each thought
    token's divergence its own advantage; `constant` is one advantage for all thought tokens."""
    teacher: Literal["merged", "static", "previous", "shuffled", "random", "corrector"] = "merged"
    """`merged` past checkpoints; `static`: the frozen start of the run; `corrector`: a model behind
    an API. Controls: `previous`, the checkpoint before the last one; `shuffled`, the merged change
    with its signs permuted; `random`, noise as large as the merged change."""
    estimator: Literal["k1", "clip", "abs", "k3", "forward"] = "clip"
    """Per-token estimate of the reverse KL divergence (paper, Eq. 7)."""
    tokens: Literal["thought", "reply", "action"] = "thought"
    """Tokens that are compared."""
    pictures: Literal["shown", "blank"] = "shown"
    """What agent and teacher see while they are compared; `blank` is a control."""
    into: Place = "advantage"
    """Where the penalty of kind `kl` is subtracted (paper Eq. 6: `advantage`; Algorithm 2:
    `reward`). The other kinds have none, and leave this aside."""
    coef: float = Field(default=1.0, ge=0)
    """Beta; under `constant` the size of the (negative) advantage."""
    token_cap: float | None = Field(default=10.0, gt=0)
    """Largest magnitude of one token's estimate, nats; None: no limit."""
    temperature: float = Field(default=1.0, gt=0)
    """Temperature at which agent and teacher are compared."""
    invalid_format_kl: Annotated[float, Field(ge=0)] | Literal["mean"] | None = None
    """KL charged to malformed replies; None: they are not guided. `mean` charges what the update's
    guided ones pay on average."""

    @property
    def has_weights(self) -> bool:
        """Whether somebody guides who is made of weights: a merge, or the start of the run."""
        return self.kind in ("kl", "sft", "distillation") and self.teacher != "corrector"


@final
class ImitationConfig(Section):
    """Thoughts that the teacher writes and the agent imitates (`guidance.kind` "sft")."""

    coef: float = Field(default=1.0, ge=0)
    """Weight of the imitation loss beside the policy's."""
    thoughts_per_turn: float = Field(default=1.0, gt=0)
    """Thoughts drawn for each turn of a pass, 1 in GTR. Fewer cost less: at 1 imitation takes as
    long as the policy's own passes."""
    temperature: float = Field(default=0.2, gt=0)
    """Sampling temperature of a merged teacher's first attempt."""
    temperature_growth: float = Field(default=1.1, ge=1)
    """Factor on the temperature after an attempt that cannot be read."""
    max_temperature: float = Field(default=0.9, gt=0)
    """Where the temperature stops growing."""
    max_attempts: int = Field(default=5, ge=1)
    """Attempts per state; after the last one it is left out."""
    max_stored: int | None = Field(default=None, ge=1)
    """Newest thoughts that are drawn from, whole updates of them; None: all of the run (DAgger)."""


@final
class CorrectorConfig(Section):
    """A model behind an OpenAI-compatible API that corrects thoughts (GTR)."""

    url: str = "scripted"
    """Base URL of the API; `scripted` starts a local server that knows the task's solver."""
    model: str = "gpt-4o"
    """Model that is asked."""
    api_key_variable: str = "OPENAI_API_KEY"
    """Environment variable that holds the key; the key itself is never written anywhere."""
    tell_solution: bool = True
    """Tell the corrector what the task's solver says (GTR's tool)."""
    temperature: float = Field(default=0.4, ge=0)
    """Sampling temperature of the corrector."""
    max_tokens: int = Field(default=400, ge=1)
    """Token limit of an answer."""
    num_parallel: int = Field(default=8, ge=1)
    """Requests that are under way at the same time."""
    deadline: float = Field(default=120.0, gt=0)
    """Longest time for one state, all retries together, seconds."""
    max_attempts: int = Field(default=6, ge=1)
    """Requests per state at most."""
    max_requests_per_minute: float | None = Field(default=None, gt=0)
    """Rate that is not exceeded; None: no limit of our own."""
    price_per_million_input_tokens: float = Field(default=0.0, ge=0)
    """Price, in any currency."""
    price_per_million_output_tokens: float = Field(default=0.0, ge=0)
    """Price, in the same currency."""
    max_cost: float | None = Field(default=None, gt=0)
    """Cost of the run at which no further request is sent; None: no limit."""
    max_failures: int = Field(default=10, ge=1)
    """States in a row without an answer after which the corrector counts as down."""
    pause: float = Field(default=60.0, gt=0)
    """Wait before a corrector that is down is tried again, seconds."""
    on_failure: Literal["skip", "pause", "stop"] = "skip"
    """When it is down or the cost is spent: go on without, wait, or stop the run resumably."""


@final
class GuardConfig(Section):
    """What watches for a collapse of the thoughts, and what it does."""

    action: Literal["none", "alarm", "reset_to_teacher"] = "alarm"
    """Nothing; a warning in the log; or the merged teacher's weights for the agent as well."""
    interval: int | None = Field(default=None, ge=1)
    """Reset every so many updates too, alarm or not; None: only after alarms."""
    patience: int = Field(default=1, ge=1)
    """Updates in a row that must raise an alarm before the agent is reset."""
    min_valid_format_rate: float = Field(default=0.5, ge=0, le=1)
    """Alarm below this share of well-formed replies."""
    max_unfinished_rate: float = Field(default=0.1, ge=0, le=1)
    """Alarm above this share of replies that ran into the token limit."""
    min_legal_rate: float = Field(default=0.3, ge=0, le=1)
    """Alarm below this share of legal actions."""
    min_distinct_thought_share: float = Field(default=0.02, ge=0, le=1)
    """Alarm below this share of different thoughts."""
    max_self_bleu: float = Field(default=1.0, ge=0, le=1)
    """Alarm above this mean self-BLEU within an episode; 1 never fires."""
    max_shared_thought_rate: float = Field(default=0.5, ge=0, le=1)
    """Alarm when two turns in different states share their thought more often than this."""
    min_thought_state_effect: float = 0.0
    """Alarm below this gain of a thought token's log-probability by its own state, nats."""
    min_thought_length_ratio: float = Field(default=0.3, ge=0)
    """Alarm when thoughts are shorter than this share of their length in the first update."""
    min_entropy: float = Field(default=0.0, ge=0)
    """Alarm below this mean token entropy, nats."""
    max_success_drop: float = Field(default=0.3, ge=0, le=1)
    """Alarm when success has fallen by this much below its best update so far."""


@final
class MergeConfig(Section):
    """How past checkpoints become the teacher."""

    method: Literal["ties", "linear"] = "ties"
    """Merge rule."""
    weights: Literal["sma", "ema"] = "sma"
    """Equal weights, or exponential ones that favour the newest."""
    ema_alpha: float = Field(default=0.5, gt=0, le=1)
    """Weight of the newest checkpoint under `ema`."""
    window: int | None = Field(default=None, ge=1)
    """Merge only the last so many checkpoints; None: all. Excludes `ema`."""
    lag: int = Field(default=0, ge=0)
    """Newest checkpoints that are left out of the merge."""
    lora_mode: Literal["auto", "accumulate", "replay"] = "auto"
    """Keep adapters as running sums or as they are; `auto`: what needs less on this device."""
    lora_space: Literal["change", "factors"] = "change"
    """Merge each module's true change, or its factors A and B apart (as the released code)."""
    density: float = Field(default=0.8, gt=0, le=1)
    """Share of each tensor's largest changes that TIES keeps."""
    scale: float = Field(default=1.0, gt=0)
    """Factor on the merged change."""
    interval: int = Field(default=1, ge=1)
    """Updates between two refreshes of the teacher."""
    freeze_after: int | None = Field(default=None, ge=1)
    """Stop refreshing after so many merges (1 = what the released code does); None: never."""
