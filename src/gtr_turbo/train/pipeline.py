"""From a configuration to a finished run: model, supervised start, training, evaluation, report."""

import logging
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import torch

from gtr_turbo.core.combinations import TINY_PREFIX
from gtr_turbo.core.config import Config
from gtr_turbo.core.faultline import fault_point
from gtr_turbo.core.seeding import seed_everything
from gtr_turbo.merging import fingerprint
from gtr_turbo.policies.make import load_policy
from gtr_turbo.policies.tiny import build_tiny_model
from gtr_turbo.policies.vlm import VlmPolicy
from gtr_turbo.report.console import AbstractProgress
from gtr_turbo.report.page import write_report
from gtr_turbo.runstate import RunDirectory
from gtr_turbo.teachers.choose import check_guide
from gtr_turbo.train.gtr_turbo import train
from gtr_turbo.train.session import Session
from gtr_turbo.train.sft import demonstrations, sft

logger = logging.getLogger(__name__)

MODEL, START = "model", "sft"
NUM_VOCABULARY_TURNS = 2000
"""Turns whose texts the tiny tokenizer is trained on."""


def run_training(
    config: Config, path: Path, progress: AbstractProgress, *, resume: bool
) -> dict[str, Any]:
    """Train in the run directory `path` and return the summary, which is also written there.

    A run that was interrupted goes on from its newest whole checkpoint when `resume` is set; one
    that is finished returns its summary. Raises ConfigError for a corrector that cannot be asked,
    before anything is made.
    """
    check_guide(config)
    with (
        RunDirectory.open(path, config, resume=resume) as run,
        closing(open_session(config, run, progress)) as session,
    ):
        train(session)
        return _finish(session)


def open_session(config: Config, run: RunDirectory, progress: AbstractProgress) -> Session:
    """Return the session of a run, at its newest checkpoint or at its start."""
    policy = load_policy(start_config(config, run, progress))
    session = Session(config, policy, run, progress)
    if not session.restore():
        if config.sft.num_steps:
            session.phase_seconds["sft"] = run.read_manifest(START)["seconds"]
        session.evaluate("initial")
        session.save()
    return session


def start_config(config: Config, run: RunDirectory, progress: AbstractProgress) -> Config:
    """Return the configuration with `model.path` at the model that RL starts from.

    Makes the tiny model and runs the supervised stage where the configuration asks for them; both
    are written whole and kept, so that a resume finds them.
    """
    if config.run.num_threads is not None:
        torch.set_num_threads(config.run.num_threads)
    if config.model.path.startswith(TINY_PREFIX):
        if not run.verify_directory(MODEL):
            run.write_directory(MODEL, lambda directory: _make_tiny(config, directory))
        config = _with_model(config, str(run.path / MODEL))
    if config.sft.num_steps:
        if not run.verify_directory(START):
            progress.phase("sft")
            _run_sft(config, run, progress)
        config = _with_model(config, str(run.path / START))
    return config


def _run_sft(config: Config, run: RunDirectory, progress: AbstractProgress) -> None:
    start = time.monotonic()
    model = config.model.model_copy(update={"finetuning": config.sft.finetuning})
    seed_everything(config.run.seed, "sft")
    critic = config.critic.model_copy(update={"trunk": "frozen"})
    policy = VlmPolicy(model, config.lora, critic)
    loss = sft(policy, demonstrations(config), config, progress.step)
    logger.info("supervised start finished with a loss of %.4f nats per token", loss)
    fault_point("sft.trained")
    seconds = time.monotonic() - start
    run.write_directory(START, policy.export, extra={"loss": loss, "seconds": seconds})


def _make_tiny(config: Config, directory: Path) -> None:
    """Write a tiny model whose tokenizer knows the task's own texts."""
    family = config.model.path.removeprefix(TINY_PREFIX)
    turns = demonstrations(config)[:NUM_VOCABULARY_TURNS]
    texts = ["<|im_start|>user\nassistant\n"] + [
        t for d in turns for t in (d.observation.prompt, d.reply)
    ]
    build_tiny_model(directory, family, texts, config.run.seed)


def _with_model(config: Config, path: str) -> Config:
    return config.model_copy(update={"model": config.model.model_copy(update={"path": path})})


def _finish(session: Session) -> dict[str, Any]:
    """Evaluate agent and teacher, write the summary and the report."""
    run, config = session.run, session.config
    done = {e["who"]: e for e in session.evaluations if e["update"] == session.update}
    agent = done.get("agent") or session.evaluate("agent")
    teacher = done.get("teacher")
    if session.history is not None and session.history.updates:
        teacher = teacher or session.evaluate("teacher")
        teacher |= {"fingerprint": fingerprint(session.history.next_teacher())}
    initial = next(e for e in session.evaluations if e["who"] == "initial")
    fault_point("summary")
    summary = {
        "initial": _plain(initial),
        "agent": _plain(agent) | {"weights_sha256": session.policy.fingerprint()},
        "teacher": None if teacher is None else _plain(teacher),
        "task": config.task.name,
        "seed": config.run.seed,
        "env_steps": session.update * config.rollout.turns_per_update,
        "updates": session.update,
        "wall_seconds": sum(session.phase_seconds.values()),
        "phase_seconds": session.phase_seconds,
    }  # fmt: skip
    run.write_json("summary.json", summary)
    write_report(run.path)
    return summary


def _plain(evaluation: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in evaluation.items() if key not in ("update", "who")}
