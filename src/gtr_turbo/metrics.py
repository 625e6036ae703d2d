"""Every number of a run, once per update: named here, written to JSON lines and TensorBoard."""

import json
import logging
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, final

from gtr_turbo.core.faultline import fault_point
from gtr_turbo.core.files import (
    disk_full_error,
    dump_json,
    is_disk_full,
    write_text_atomically,
)
from gtr_turbo.errors import (
    CheckpointError,
    NonFiniteError,
    ResumeError,
    UnknownNameError,
    nearest_hint,
)

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

METRICS_FILE = "metrics.jsonl"
TENSORBOARD_FOLDER = "tensorboard"

logger = logging.getLogger(__name__)

METRICS: dict[str, str] = {
    # progress
    "update": "Number of the update, counted from 1. Every number without a gap or a repeat.",
    "env_steps": "Environment steps (turns) of the run so far. Grows by turns_per_update.",
    "environment_faults": "Failures of environments in this update; each one is in the log. 0, and "
    "always 0 unless environments live in processes of their own.",
    "excluded_turns": "Turns of this update that are not learned from, because their environment "
    "failed before their episode ended. 0.",
    # playing
    "success_rate": "Share of the episodes that ended in this update and were solved, 0–1. Rises.",
    "return": "Mean undiscounted task reward of the episodes that ended in this update. Rises.",
    "episodes": "Episodes that ended in this update. Enough for success_rate to mean something: "
    "50 or more.",
    "episode_length": "Mean turns of those episodes. Near the shortest solution in a good agent.",
    "legal_rate": "Share of turns whose action could be carried out, 0–1. Above 0.9 soon.",
    "valid_format_rate": "Share of replies of the demanded form, 0–1. Near 1; a fall warns first.",
    "random_action_rate": "Share of turns played with a seeded random action in place of an "
    "unreadable one, 0–1. 0 unless that switch is on.",
    "unfinished_rate": "Share of replies that the token limit cut, 0–1. Near 0.",
    "reply_tokens": "Mean sampled tokens per reply, tokens. Steady; well below max_new_tokens.",
    "thought_tokens": "Mean tokens of the thought, tokens. Steady; a slide towards 0 is the "
    "thought collapse that guidance is there to prevent.",
    "distinct_thought_share": "Different thoughts among this update's thoughts, 0–1. Not near 0: "
    "equal thoughts in different states are the collapse.",
    "self_bleu": "Mean BLEU-2 of a thought against the others of its episode, over episodes with "
    "two turns or more, 0–1. Below 0.9; at 1 every turn of an episode thinks the same.",
    "shared_thought_rate": "Probability that two turns in different states hold the very same "
    "thought, 0–1. Near 0; towards 1 thoughts no longer follow from what is seen.",
    # guard
    "guard_alarms": "Alarms that the guard raised about this update; each one is in the log. 0.",
    "guard_resets": "How often the guard has put the agent onto its teacher so far. 0, or few.",
    # teacher
    "guidance_kl": "Mean estimate of the reverse KL divergence per token from agent to teacher, "
    "over the guided turns, nats. 0.01–1; null while there is no teacher.",
    "guidance_weight": "Standard deviation over turns of the penalty guidance.coef × KL, as a "
    "share of advantage_std. 0.03–1: below, the guidance is too weak to do anything; above, it "
    "drowns the task's reward; null without a KL penalty.",
    "guided_share": "Share of turns that the teacher judged, 0–1. Near valid_format_rate, and 0 "
    "while there is no teacher: in update 1 and until the critic's warm-up has passed.",
    "teacher_fingerprint": "The sha256 of the teacher's weights. Changes at every merge.",
    "teacher_updates": "Past updates that the merge has seen; a window keeps the last of them. "
    "Grows by 1 per update.",
    "merge_zero_fraction": "Share of the merged change that is exactly 0, 0–1. At most about "
    "1 − density.",
    "merge_norm_ratio": "Norm of the merged change over that of the plain mean of what trimming "
    "left. 1–2: 1 where checkpoints agree, more where a sign was outvoted and left out.",
    "agent_distance": "Norm of the agent's weight change since the start of the run. Grows.",
    "teacher_distance": "Norm of the teacher's weight change since the start. Grows, more slowly; "
    "null while there is no teacher with weights.",
    "agent_teacher_distance": "Norm of the difference between the two. Well below agent_distance.",
    "written_share": "Share of the states asked about for which a teacher that writes found a "
    "thought of the demanded form, 0–1. Near 1; absent unless guidance.kind is sft.",
    "writing_attempts": "Mean attempts of that teacher per state. Near 1.",
    "stored_thoughts": "Thoughts that can be imitated so far. Grows by those that were written.",
    "imitation_loss": "Mean negative log-probability of the imitated thought tokens, nats. Falls.",
    "corrector_requests": "Requests that were sent to the corrector. At most one per well-formed "
    "reply, and a few more where some were sent again; null while there is no corrector.",
    "corrector_cached": "Turns whose correction was known already. Grows when states come again.",
    "corrector_failures": "Turns that the corrector gave no answer to. 0.",
    "corrector_input_tokens": "Tokens of this update's questions, as the endpoint counts them.",
    "corrector_output_tokens": "Tokens of its answers. Below max_tokens × corrector_requests.",
    "corrector_cost": "Cost of the corrector in the whole run so far, in the currency of the "
    "prices. Grows more slowly as answers repeat.",
    "corrector_right_rate": "Share of the answered turns whose thought was right, 0–1. Rises.",
    "corrector_hopeless_rate": "Share of the answered turns in a state that nothing can be won "
    "from, 0–1. Falls; near 0 where such episodes end early.",
    # checks
    "logprob_gap": "Mean difference between a token's log-probability when sampled and when "
    "recomputed before the first step, nats. Below 1e-3 in float32, 0.1 in bfloat16.",
    "picture_effect_agent": "Largest change of an agent's token log-probability when the picture "
    "is blanked, nats. Above 0; null where it was not checked.",
    "thought_state_effect": "How much more probable a thought token is in its own state than in "
    "another one, nats. Above 0.01; near 0 thoughts do not depend on the state, however varied.",
    "picture_effect_teacher": "The same of the teacher, nats. Above 0; null where not checked.",
    # credit
    "advantage_mean": "Mean advantage before standardisation, reward units. Moves with the "
    "format reward.",
    "advantage_std": "Standard deviation of the advantage before standardisation, reward units. "
    "Above 0: at 0 there is nothing to learn from.",
    "value_mean": "Mean value estimate of the critic, reward units. Near the mean return.",
    "explained_variance": "Share of the value targets' variance that the critic explains, at most "
    "1. Rises above 0 after the warm-up; below 0 the critic is worse than a constant.",
    # improvement
    "policy_loss": "Mean clipped surrogate loss. Small, around 0, of either sign.",
    "value_loss": "Mean value loss, squared reward units. Falls at first.",
    "entropy": "Mean entropy of the reply's token distributions, nats. Falls slowly; a drop to 0 "
    "is collapse, a steady climb is noise.",
    "approx_kl": "Mean estimate of the KL divergence from the acting policy to the updated one per "
    "turn, nats. 1e-4–0.05.",
    "clip_fraction": "Share of turns whose ratio was clipped, 0–1. 0–0.3.",
    "grad_norm": "Mean norm of the gradient before the limit. Finite; mostly near max_grad_norm or "
    "below.",
    "learning_rate": "Learning rate at the end of the update. Falls along the cosine to its floor.",
    "optimizer_steps": "Optimiser steps of this update. epochs × minibatches, fewer when target_kl "
    "stopped it.",
    # speed
    "env_steps_per_second": "Turns per second of the whole update, turns/s. Steady.",
    "tokens_per_second": "Tokens sampled per second of acting, tokens/s. Steady.",
    "peak_memory_mb": "Most memory so far, of process or GPU, the larger, MB. Levels off.",
    # evaluation
    "eval_success_rate": "Agent's success on the fixed panel, 0–1. Rises; null if not evaluated.",
    "eval_return": "Agent's mean return on the fixed panel. Rises; null if not evaluated.",
    # time
    "seconds_teach": "Time of step 1, merging the teacher, s. Constant in the number of updates, "
    "but where adapters are kept and replayed (merge.lora_mode).",
    "seconds_act": "Time of step 2, playing, s. The largest share.",
    "seconds_guide": "Time of step 3, the agent's scores and the teacher's judgement, s. About two "
    "forward passes.",
    "seconds_credit": "Time of step 4, credit assignment, s. Next to nothing.",
    "seconds_improve": "Time of step 5, optimisation, s. About 3 × epochs forward passes.",
    "seconds_remember": "Time of step 6, history, and writing the checkpoint of the update before, "
    "s. A small share.",
}
"""Name → what it is, its unit, and what is healthy. Nothing else can be logged."""

TIMING_METRICS: frozenset[str] = frozenset(
    {name for name in METRICS if name.startswith("seconds_")}
    | {"env_steps_per_second", "tokens_per_second", "peak_memory_mb"}
    | {"corrector_requests", "corrector_cached", "corrector_input_tokens"}
    | {"corrector_output_tokens", "corrector_cost"}
)
"""Numbers that differ between two equal runs: one that was interrupted asks less again."""

MetricValue = float | int | str | None


@final
class MetricsLog:
    """An append-only log with one line per update; open it once per run, or with a `with`."""

    def __init__(self, path: Path, *, tensorboard: bool, resume_after: int | None) -> None:
        """Open `path` (`metrics.jsonl`); lines of updates after `resume_after` are dropped.

        None starts an empty log. TensorBoard events go into `tensorboard/` beside the file.
        Raises CheckpointError when a line other than the last one cannot be read.
        """
        self.path = path
        kept: list[dict[str, Any]] = []
        if resume_after is not None and path.is_file():
            kept = [line for line in read_metrics(path) if line["update"] <= resume_after]
            _warn_of_gaps(path, [line["update"] for line in kept], resume_after)
        write_text_atomically(path, "".join(dump_json(line) + "\n" for line in kept))
        self._last_update = kept[-1]["update"] if kept else -1
        self._file = path.open("ab", buffering=0)  # nothing is left to write when a write fails
        self._writer = (
            _open_tensorboard(path.parent, self._last_update + 1) if tensorboard else None
        )

    def __enter__(self) -> "MetricsLog":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file and TensorBoard's writer."""
        self._file.close()
        if self._writer is not None:
            self._writer.close()

    def append(self, values: Mapping[str, MetricValue]) -> None:
        """Write one update's numbers as a line, and make it last.

        Raises UnknownNameError for a name that METRICS lacks, NonFiniteError for a NaN or an
        infinity, ResumeError for an update that is already there, CheckpointError when the disk is
        full. A refused line leaves the file as it was.
        """
        update = self._check(values)
        line = (dump_json(dict(values)) + "\n").encode("utf-8")
        size = self._file.tell()
        try:
            rest = memoryview(line)
            while rest:
                rest = rest[self._file.write(rest) :]
            fault_point("metrics.written")
            os.fsync(self._file.fileno())
        except OSError as error:
            os.ftruncate(self._file.fileno(), size)
            if is_disk_full(error):
                raise disk_full_error(self.path, len(line)) from error
            raise
        self._last_update = update
        if self._writer is not None:
            for name, value in values.items():
                if isinstance(value, int | float):
                    self._writer.add_scalar(name, value, global_step=update)
            self._writer.flush()

    def _check(self, values: Mapping[str, MetricValue]) -> int:
        """Return the update of a line that may be written."""
        for name, value in values.items():
            if name not in METRICS:
                raise UnknownNameError(
                    f'there is no metric named "{name}".',
                    hint=nearest_hint(name, METRICS, "metrics"),
                )
            if isinstance(value, float) and not math.isfinite(value):
                update = values.get("update")
                raise NonFiniteError(
                    f"metric `{name}` of update {update} is {value}.",
                    hint="a number that does not exist is logged as None.",
                )
        update = values.get("update")
        if not isinstance(update, int) or update <= self._last_update:
            raise ResumeError(
                f"{self.path} holds updates up to {self._last_update}; a line for update {update}"
                " cannot follow."
            )
        return update


def _warn_of_gaps(path: Path, updates: Sequence[int], resume_after: int) -> None:
    """Say loudly which updates a log has lost: the run goes on, their numbers are gone."""
    lost = sorted(set(range(1, resume_after + 1)) - set(updates))
    if lost:
        logger.warning(
            "%s has lost %d of %d updates (first %d, last %d): was it edited or cut?",
            path, len(lost), resume_after, lost[0], lost[-1],
        )  # fmt: skip


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a metrics file, one mapping per update; a torn last line is left out.

    Raises CheckpointError naming the first other line that cannot be read.
    """
    lines = path.read_bytes().split(b"\n")
    read: list[dict[str, Any]] = []
    for number, line in enumerate(lines[:-1], start=1):
        values = _parse_line(line)
        if values is not None and (not read or values["update"] > read[-1]["update"]):
            read.append(values)
        elif number < len(lines) - 1 or lines[-1]:
            raise CheckpointError(
                f"line {number} of {path} is not a line of metrics.",
                hint="remove the line, or start a new run.",
            )
    return read


def _parse_line(line: bytes) -> dict[str, Any] | None:
    try:
        values = json.loads(line)
    except ValueError:
        return None
    is_update = isinstance(values, dict) and isinstance(values.get("update"), int)
    return values if is_update else None


def _open_tensorboard(run: Path, purge_step: int) -> "SummaryWriter":
    """Return a writer whose later steps hide those of a run that was cut off."""
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(str(run / TENSORBOARD_FOLDER), purge_step=purge_step)
