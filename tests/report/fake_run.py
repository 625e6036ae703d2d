"""A run directory as a finished training leaves it, with real pictures and replies, in a second."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from gtr_turbo.core.config import Config, parse_config, to_yaml
from gtr_turbo.envs.registry import make_task
from gtr_turbo.metrics import METRICS, MetricsLog, MetricValue
from gtr_turbo.report.records import record_evaluation, save_episodes

NUM_UPDATES = 30
HOSTILE = (
    "<script>alert('gotcha')</script><img src=x onerror=alert(1)></pre></dl> &lt; \u202eevil\u202c"
)


def config() -> Config:
    return parse_config({"task": {"name": "ezpoints"}, "run": {"num_updates": NUM_UPDATES}})


def metrics_line(update: int, generator: np.random.Generator) -> dict[str, MetricValue]:
    """Return plausible numbers for every metric: a run that learns, with noise."""
    progress = 1 - np.exp(-update / 12)
    noise = generator.normal(0, 1, len(METRICS))
    values: dict[str, Any] = {name: 0.1 + 0.02 * n for name, n in zip(METRICS, noise, strict=True)}
    values |= {
        "update": update,
        "env_steps": 1024 * update,
        "success_rate": 0.12 + 0.65 * progress + 0.03 * noise[0],
        "return": -2 + 8 * progress + 0.4 * noise[1],
        "episodes": 240,
        "teacher_fingerprint": f"{update:016x}",
        "guidance_kl": None if update == 1 else 0.3 * np.exp(-update / 20) + 0.02 * abs(noise[2]),
        "entropy": 0.8 - 0.5 * progress + 0.02 * noise[3],
        "clip_fraction": 0.08 + 0.02 * abs(noise[4]),
        "explained_variance": -0.4 + 1.1 * progress + 0.05 * noise[5],
        "approx_kl": 0.004 + 0.002 * abs(noise[6]),
        "valid_format_rate": min(0.8 + 0.2 * progress, 1.0),
        "legal_rate": 0.6 + 0.35 * progress,
        "thought_tokens": 40 + 2 * noise[7],
        "reply_tokens": 55 + 2 * noise[8],
        "distinct_thought_share": 0.5 + 0.05 * noise[9],
        "eval_success_rate": None,
        "seconds_act": 9 + 0.5 * noise[10],
        "seconds_improve": 5.0,
    }
    return {k: float(v) if isinstance(v, np.floating) else v for k, v in values.items()}


def play_episodes(
    update: int, count: int, extra_text: str = ""
) -> tuple[list[dict[str, Any]], dict[str, np.ndarray]]:
    """Return saved episodes of the real task, and their pictures."""
    episodes: list[dict[str, Any]] = []
    pictures: dict[str, np.ndarray] = {}
    for number in range(count):
        task = make_task("ezpoints", {}, seed=100 * update + number)
        task.reset()
        turns: list[dict[str, Any]] = []
        success = False
        trace = task.demonstrate(np.random.default_rng(number), mistake=number % 2 == 1)
        task.reset(task.episode_seed)
        for step, demonstration in enumerate(trace):
            name = f"update-{update:04d}-e{number}-t{step}.png"
            pictures[name] = task.observation.picture
            prompt = task.observation.prompt
            result = task.step(demonstration.reply)
            success = success or result.success
            turns.append(
                {
                    "picture": name,
                    "prompt": prompt,
                    "reply": demonstration.reply + extra_text,
                    "action": result.parsed.action,
                    "legal": result.legal,
                    "reason": result.parsed.reason,
                    "rewards": dict(result.rewards),
                    "kl": None if update == 1 else 0.02 * step,
                    "value": 1.5,
                }
            )
            if result.terminated or result.truncated:
                break
        episodes.append(
            {
                "update": update,
                "environment": number,
                "seed": task.episode_seed,
                "end": "terminated",
                "success": success,
                "return": sum(turn["rewards"]["task"] for turn in turns),
                "turns": turns,
            }
        )
    return episodes, pictures


def evaluation(rate: float) -> dict[str, Any]:
    half = 0.068
    return {
        "success_rate": rate,
        "ci95": [max(rate - half, 0.0), min(rate + half, 1.0)],
        "return": 12 * rate - 3,
        "episodes": 200,
    }


def make_run(run: Path, *, finished: bool = True, extra_text: str = "") -> Path:
    """Fill `run` and return it; an unfinished one lacks its summary."""
    run.mkdir(parents=True, exist_ok=True)
    (run / "config.yaml").write_text(to_yaml(config()), encoding="utf-8")
    generator = np.random.default_rng(0)
    with MetricsLog(run / "metrics.jsonl", tensorboard=False, resume_after=None) as log:
        for update in range(1, NUM_UPDATES + 1):
            log.append(metrics_line(update, generator))
    record_evaluation(run, 0, "initial", evaluation(0.125))
    for update in range(5, NUM_UPDATES + 1, 5):
        rate = 0.12 + 0.65 * (1 - np.exp(-update / 12))
        record_evaluation(run, update, "agent", evaluation(float(rate)))
        record_evaluation(run, update, "teacher", evaluation(float(rate) - 0.04))
    for update in (1, 10, 20, 30):
        save_episodes(run, update, *play_episodes(update, 3, extra_text))
    if finished:
        summary = {
            "initial": evaluation(0.125),
            "agent": evaluation(0.717) | {"weights_sha256": "0123456789abcdef" * 4},
            "teacher": evaluation(0.677),
            "env_steps": 1024 * NUM_UPDATES,
            "updates": NUM_UPDATES,
            "wall_seconds": 431.7,
            "phase_seconds": {"act": 270.0, "improve": 150.0},
        }
        (run / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
    return run
