"""Everything that a run holds between updates, and how it is saved and found again."""

import json
import resource
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, final

import torch

from gtr_turbo.core.batch import Guidance, TurnBatch
from gtr_turbo.core.config import Config
from gtr_turbo.core.faultline import fault_point
from gtr_turbo.core.files import dump_json
from gtr_turbo.core.seeding import Seeds
from gtr_turbo.core.turns import Episode
from gtr_turbo.envs.pool.choose import make_pool
from gtr_turbo.errors import ResumeError
from gtr_turbo.evaluate import evaluate
from gtr_turbo.history import make_history
from gtr_turbo.metrics import METRICS_FILE, MetricsLog
from gtr_turbo.policies.base import AbstractPolicy
from gtr_turbo.report.console import AbstractProgress
from gtr_turbo.report.records import save_episodes
from gtr_turbo.rollout import Rollout
from gtr_turbo.runstate import TEACHERS, RunDirectory
from gtr_turbo.teachers.choose import make_guide
from gtr_turbo.teachers.merged import WeightTeacher, zero_change
from gtr_turbo.train import record
from gtr_turbo.train.guard import Guard
from gtr_turbo.train.lessons import Lessons
from gtr_turbo.train.optim import Optimizer
from gtr_turbo.train.thoughts import ThoughtStore

EVALUATIONS = "evaluations.jsonl"
NUM_TEACHERS = 2
"""Teachers on disk: the newest, and the one that a damaged newest checkpoint falls back to."""
BYTES_PER_MB = 1e6
PHASES = ("teach", "act", "guide", "credit", "improve", "remember")


@final
class Session:
    """A run in progress. `train` reads it top to bottom; nothing here decides how to learn."""

    def __init__(
        self, config: Config, policy: AbstractPolicy, run: RunDirectory, progress: AbstractProgress
    ) -> None:
        """Set everything up as at the start of a run; `restore` moves it to a checkpoint."""
        self.config, self.policy, self.run, self.progress = config, policy, run, progress
        device = next(iter(policy.critic_parameters()))[1].device
        self.seeds = Seeds.make(config.run.seed, str(device))
        count = config.rollout.num_environments
        seeds = [self.seeds.task(i) for i in range(count)]
        self.rollout = Rollout(make_pool(config.training_task, config.rollout, seeds))
        self.teacher = WeightTeacher(
            config.guidance, config.guidance.temperature, config.ppo.micro_batch_size
        )
        self.history = make_history(config)
        self.guide = make_guide(config, self.teacher, self.seeds.writer, run.path)
        self.store, self.lessons = None, None
        if config.guidance.kind == "sft":
            self.store = ThoughtStore(run, config.imitation.max_stored)
            self.lessons = Lessons(self.store, policy, config, self.seeds.lessons)
        self.optimizer = Optimizer(policy, config)
        self.guard = Guard(config.guard)
        self.update = 0
        self.evaluations: list[dict[str, Any]] = []
        self.phase_seconds: dict[str, float] = dict.fromkeys((*PHASES, "evaluate", "sft"), 0.0)
        self._this_update: dict[str, float] = {}
        self._phase_start = 0.0
        self._saving = 0.0
        self._learning_rate = 0.0
        self._first_guided: int | None = None
        self._log: MetricsLog | None = None

    def close(self) -> None:
        """End the environments, and whoever guides."""
        self.rollout.close()
        self.guide.close()

    # -- during an update ------------------------------------------------------------------------

    def remaining_updates(self) -> Iterator[int]:
        """Yield the numbers of the updates that are still to run, from 1."""
        path, tensorboard = self.run.path / METRICS_FILE, self.config.run.tensorboard
        with MetricsLog(path, tensorboard=tensorboard, resume_after=self.update) as self._log:
            while self.update < self.config.run.num_updates:
                self._this_update = {}
                if self.update == 1 and self._has_static_teacher():
                    self.teacher.become(zero_change(self.policy.change()), must_differ=False)
                yield self.update + 1
        self._log = None

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time a phase and show it."""
        self.progress.phase(name)
        fault_point(f"phase.{name}")
        self._this_update[name] = 0.0
        start = self._phase_start = time.monotonic()
        yield
        inside = self._this_update.pop("evaluate", 0.0)
        self._this_update[name] = time.monotonic() - start - inside
        self.phase_seconds[name] += self._this_update[name]

    def tick(self, done: int, total: int) -> None:
        """Show how far the phase is."""
        self.progress.step(done, total)

    def is_check_due(self, update: int) -> bool:
        """Return whether the blank-picture probe runs: first, first guided, every so many."""
        if self.teacher.is_ready and self._first_guided is None:
            self._first_guided = update
        return update in (1, self._first_guided) or update % self.config.run.check_interval == 0

    def set_learning_rate(self, rate: float) -> None:
        """Set the learning rate of the update."""
        self.optimizer.set_learning_rate(rate)
        self._learning_rate = rate

    def took_step(self, stats: Mapping[str, float]) -> bool:
        """Return whether an update with these statistics was to move the policy's weights."""
        return self._learning_rate > 0 and stats["grad_norm"] > 0

    def watch(self, update: int, values: dict[str, Any]) -> bool:
        """Let the guard look at an update; return whether the agent was put onto its teacher.

        A reset sets the agent's weights to the last merge, drops the optimiser's moments and the
        checkpoints that still wait for the merge. The guard's numbers are added to `values`.
        """
        alarms = self.guard.observe(update, values)
        history = self.history
        is_reset = False
        if history is not None and history.teacher is not None and self.guard.is_reset_due(update):
            self.policy.become(history.teacher)
            self.optimizer.reset()
            history.drop_waiting()
            self.guard.note_reset(update)
            is_reset = True
        values |= {"guard_alarms": len(alarms), "guard_resets": self.guard.num_resets}
        return is_reset

    def finish_update(
        self,
        update: int,
        values: dict[str, Any],
        episodes: list[Episode],
        guidance: Guidance | None,
        batch: TurnBatch,
    ) -> None:
        """Evaluate if due, write metrics and episodes, save everything; then the update counts."""
        self.update = update
        interval = self.config.evaluation.interval
        if interval and update % interval == 0 and update < self.config.run.num_updates:
            self.evaluate("agent")
            if self.history is not None and self.history.updates:
                self.evaluate("teacher")
        chosen = record.sampled_episodes(
            episodes, guidance, batch.old_value, self.config.run.saved_episodes
        )
        save_episodes(self.run.path, update, *record.episode_records(chosen, update))
        values = self._complete(update, values, episodes)
        assert self._log is not None
        self._log.append(values)
        fault_point("metrics.appended")
        if (
            update % self.config.run.checkpoint_interval == 0
            or update == self.config.run.num_updates
        ):
            start = time.monotonic()
            self.save()
            self._saving = time.monotonic() - start
        self.progress.update(values | self._latest_evaluation("teacher", "eval_teacher"))

    def evaluate(self, who: str) -> dict[str, Any]:
        """Measure `initial`, `agent` or `teacher` on the panel, and keep the result.

        The teacher is the one that would guide the next update.
        """
        start = time.monotonic()
        self.progress.phase("evaluate")
        if who == "teacher":
            assert self.history is not None
            with self.policy.wearing(self.history.next_teacher()):
                found = evaluate(self.policy, self.config, tick=self.tick).to_json()
        else:
            found = evaluate(self.policy, self.config, tick=self.tick).to_json()
        fault_point("evaluated")
        line = {"update": self.update, "who": who, **found}
        self.evaluations.append(line)
        lines = "".join(json.dumps(entry) + "\n" for entry in self.evaluations)
        self.run.write_text(EVALUATIONS, lines)
        seconds = time.monotonic() - start
        self.phase_seconds["evaluate"] += seconds
        self._this_update["evaluate"] = self._this_update.get("evaluate", 0.0) + seconds
        return found

    def _has_static_teacher(self) -> bool:
        guidance = self.config.guidance
        return guidance.has_weights and guidance.teacher == "static"

    def _latest_evaluation(self, who: str, prefix: str) -> dict[str, float | None]:
        """Return what this update's evaluation of `who` found, None where there was none."""
        now = [e for e in self.evaluations if (e["update"], e["who"]) == (self.update, who)]
        return {
            f"{prefix}_{key}": now[-1][key] if now else None for key in ("success_rate", "return")
        }

    def _complete(
        self, update: int, values: dict[str, Any], episodes: list[Episode]
    ) -> dict[str, Any]:
        """Return the update's metrics with counters, teacher, merge and timings added."""
        turns = self.config.rollout.turns_per_update
        tokens = sum(len(t.reply.token_ids) for e in episodes for t in e.turns)
        inside = self._this_update.get("evaluate", 0.0)
        remembering = time.monotonic() - self._phase_start - inside
        # The metrics are written before the checkpoint, so its time stands in the next line.
        self._this_update["remember"] = remembering + self._saving
        self._saving = 0.0
        seconds = {name: self._this_update.get(name, 0.0) for name in PHASES}
        merge = {} if self.history is None else self.history.diagnostics()
        return {
            "update": update,
            "env_steps": update * turns,
            "environment_faults": self.rollout.num_faults,
            "excluded_turns": self.rollout.num_excluded_turns,
            **values,
            **self._latest_evaluation("agent", "eval"),
            "teacher_fingerprint": self.teacher.fingerprint,
            "teacher_updates": 0 if self.history is None else len(self.history.merged_updates),
            "merge_zero_fraction": merge.get("zero_fraction"),
            "merge_norm_ratio": merge.get("norm_ratio"),
            "stored_thoughts": None if self.store is None else len(self.store),
            **record.distances(self.policy.change(), self.teacher),
            "learning_rate": self._learning_rate,
            "env_steps_per_second": turns / sum(seconds.values()),
            "tokens_per_second": tokens / seconds["act"],
            "peak_memory_mb": _peak_memory_mb(),
            **{f"seconds_{name}": value for name, value in seconds.items()},
        }

    # -- between updates -------------------------------------------------------------------------

    def save(self) -> None:
        """Write teacher and checkpoint of the present update, whole or not at all."""
        name = f"update-{self.update:04d}"
        if self.history is not None:
            self.run.write_directory(f"{TEACHERS}/{name}", self.history.save)
        self.run.write_directory(
            f"checkpoints/{name}",
            self._fill,
            extra={"update": self.update, "weights_sha256": self.policy.fingerprint()},
        )
        self._settle(f"checkpoints/{name}")
        if self.store is not None:
            self.store.settle()

    def _settle(self, newest: str) -> None:
        """Point `latest` at the newest checkpoint and delete what is no longer kept."""
        self.run.set_latest(newest)
        keep = self.config.run.keep_checkpoints
        if keep is not None:
            self.run.prune("checkpoints", keep)
        self.run.prune(TEACHERS, NUM_TEACHERS)

    def restore(self) -> bool:
        """Go to the newest checkpoint that is whole, teacher included; False when there is none.

        Raises ResumeError when checkpoints are there and none of them has its teacher.
        """
        found = self.run.newest_checkpoint(with_teacher=self.history is not None)
        if found is None:
            if self.run.newest_checkpoint() is not None:
                raise ResumeError(
                    f"no checkpoint in {self.run.path} has a whole teacher of the same update.",
                    hint="the merge sums cannot be guessed; start a new run directory.",
                )
            return False
        name = found.rsplit("/", 1)[1]
        directory = self.run.path / found
        state = json.loads((directory / "state.json").read_text())
        if self.history is not None:
            self.history.load(self.run.path / TEACHERS / name)
            if self.history.teacher is not None:
                self.teacher.become(self.history.teacher, must_differ=False)
        self.policy.load(directory)
        self.optimizer.load(directory)
        self.seeds.restore(state["seeds"])
        self.rollout.restore(state["rollout"])
        if self.store is not None:
            self.store.restore(state["update"])
            expected = state.get("stored_thoughts", len(self.store))  # older runs have not counted
            if len(self.store) != expected:
                raise ResumeError(
                    f"{self.run.path} holds {len(self.store)} thoughts to imitate, but its newest"
                    f" checkpoint was written with {expected}.",
                    hint="was the folder `thoughts` copied as well? Without it the run is another.",
                )
        self.update = state["update"]
        self.evaluations = self._known_evaluations(state["evaluations"])
        self.phase_seconds |= state["phase_seconds"]
        self._first_guided = state["first_guided"]
        self.guard.restore(state["guard"])
        self._settle(found)  # a kill right after the checkpoint's rename left this undone
        if self.update and self._has_static_teacher():
            self.teacher.become(zero_change(self.policy.change()), must_differ=False)
        return True

    def _known_evaluations(self, saved: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the checkpoint's evaluations, and those made after it was saved."""
        known = {(e["update"], e["who"]) for e in saved}
        file = self.run.path / EVALUATIONS
        lines = file.read_text().splitlines() if file.is_file() else []
        later = [json.loads(line) for line in lines]
        return saved + [
            e for e in later
            if e["update"] <= self.update and (e["update"], e["who"]) not in known
        ]  # fmt: skip

    def _fill(self, directory: Path) -> None:
        self.policy.save(directory)
        self.optimizer.save(directory)
        state = {
            "update": self.update,
            "seeds": self.seeds.state(),
            "rollout": self.rollout.state(),
            "evaluations": self.evaluations,
            "phase_seconds": self.phase_seconds,
            "first_guided": self._first_guided,
            "guard": self.guard.state(),
            "stored_thoughts": 0 if self.store is None else len(self.store),
        }
        (directory / "state.json").write_text(dump_json(state) + "\n")


def _peak_memory_mb() -> float:
    """Return the process's largest resident size so far, and the GPU's on a GPU, in MB."""
    unit = 1 if sys.platform == "darwin" else 1024
    host = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    device = torch.cuda.max_memory_allocated() if torch.cuda.is_available() else 0
    return max(host, device) / BYTES_PER_MB
