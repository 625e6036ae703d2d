"""Batched rollout against the lineage's loop: one environment, one `generate` call per step.

Both play ezpoints with the same tiny model, the same processor, the same number of new tokens and
sampling at temperature 1, in one process on one thread, taking turns.
"""

import statistics
import tempfile
from pathlib import Path

import torch
from common import arguments, finish, seconds, spread  # pyright: ignore[reportImplicitRelativeImport]  a script beside it

from gtr_turbo.core.config import Config
from gtr_turbo.core.seeding import Seeds
from gtr_turbo.envs.base import AbstractTask
from gtr_turbo.envs.pool.in_process import InProcessPool
from gtr_turbo.envs.registry import make_task
from gtr_turbo.policies.make import load_policy
from gtr_turbo.policies.vlm import VlmPolicy
from gtr_turbo.presets import make_preset
from gtr_turbo.report.console import NullProgress
from gtr_turbo.rollout import Rollout
from gtr_turbo.runstate import RunDirectory
from gtr_turbo.train.pipeline import start_config

SINGLE_STEPS = 24
"""Steps of the one-environment loop per repetition."""


def main() -> None:
    """Measure both loops and print their ratio."""
    args = arguments(__doc__ or "").parse_args()
    torch.set_num_threads(1)
    config = make_preset("ezpoints-tiny")
    with (
        tempfile.TemporaryDirectory() as folder,
        RunDirectory.open(Path(folder) / "run", config, resume=False) as run,
    ):
        policy = load_policy(start_config(config, run, NullProgress()))
        seeds = Seeds.make(0)
        count = config.rollout.num_environments
        sampling = policy.sampling(1.0, config.rollout.max_new_tokens)
        rollout = Rollout(InProcessPool([_task(config, seeds.task(i)) for i in range(count)]))
        single = _task(config, 7)
        single.reset()

        def one_by_one() -> None:
            for _ in range(SINGLE_STEPS):
                _generate_step(policy, single, sampling.max_new_tokens)

        def batched() -> None:
            rollout.collect(policy, sampling, seeds.sampler, 4 * count)

        one_by_one()
        batched()
        singles, batches = [], []
        for _ in range(args.runs):
            singles.append(SINGLE_STEPS / seconds(one_by_one))
            batches.append(4 * count / seconds(batched))
    finish(
        f"rollout, ezpoints, tiny Qwen2.5-VL, one thread, {args.runs} runs: env-steps per second",
        {
            "one environment, one generate per step": spread(singles),
            f"batched, {count} environments": spread(batches),
            "ratio of medians": round(statistics.median(batches) / statistics.median(singles), 1),
        },
        args.json,
    )


def _task(config: Config, seed: int) -> AbstractTask:
    return make_task(config.task.name, config.task.rules, seed)


def _generate_step(policy: VlmPolicy, task: AbstractTask, max_new_tokens: int) -> None:
    """Play one step as the lineage does: processor, `generate`, decode, environment."""
    processor, network = policy.processor, policy.network
    content = [{"type": "image"}, {"type": "text", "text": task.observation.prompt}]
    text = processor.apply_chat_template(
        [{"role": "user", "content": content}], add_generation_prompt=True, tokenize=False
    )
    inputs = processor(text=[text], images=[task.observation.picture], return_tensors="pt")
    with torch.no_grad():
        output = network.generate(**inputs, do_sample=True, top_k=0, max_new_tokens=max_new_tokens)
    reply = processor.tokenizer.decode(
        output[0, inputs["input_ids"].shape[1] :], skip_special_tokens=True
    )
    result = task.step(reply)
    if result.terminated or result.truncated:
        task.reset()


if __name__ == "__main__":
    main()
