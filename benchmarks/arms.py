"""Arms × seeds of one preset, and the table with intervals that docs/results.md shows.

Runs what is missing (a finished run has a summary.json; an interrupted one is resumed), each run a
process of its own with one thread, `--jobs` at a time; then prints a markdown table.

    python benchmarks/arms.py --preset ezpoints-tiny --seeds 0 1 2 3 4 --out runs/arms
"""

import argparse
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

ARMS = {
    "none": ["--guidance.kind", "none"],
    "kl": ["--guidance.kind", "kl"],
    "static": ["--guidance.teacher", "static"],
}
"""Name → what it changes in the preset."""
NUM_RESAMPLES = 10_000


def main() -> None:
    """Run the study and print its table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--preset", default="ezpoints-tiny")
    parser.add_argument("--arms", nargs="+", default=["none", "kl"], choices=sorted(ARMS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2, 3, 4])
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, default=Path("runs/arms"))
    parser.add_argument("overrides", nargs="*", help="after --: configuration fields for every arm")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    todo = [(arm, seed) for seed in args.seeds for arm in args.arms]
    with ThreadPoolExecutor(args.jobs) as pool:
        list(pool.map(lambda pair: run_one(args, *pair), todo))
    print(table(args.out, args.arms, args.seeds))


def run_one(args: argparse.Namespace, arm: str, seed: int) -> None:
    """Finish one run; its output goes to a log beside it."""
    folder = args.out / f"{arm}-seed{seed}"
    if (folder / "summary.json").is_file():
        return
    command = [sys.executable, "-m", "gtr_turbo", "train", "--preset", args.preset,
               "--run-dir", str(folder), "--seed", str(seed), "--resume", *ARMS[arm],
               "--run.num_threads", "1", *args.overrides]  # fmt: skip
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with (args.out / f"{folder.name}.log").open("a") as log:
        subprocess.run(command, check=True, stdout=log, stderr=log, env=environment)
    print(f"finished {folder.name}", flush=True)


def table(out: Path, arms: list[str], seeds: list[int]) -> str:
    """Return success per arm: each seed, the mean, and a bootstrap 95 % interval over seeds."""
    rows = [
        "| arm | who | "
        + " | ".join(f"seed {s}" for s in seeds)
        + " | mean | 95 % interval | minutes |"
    ]
    rows.append("|---" * (len(seeds) + 5) + "|")
    generator = np.random.default_rng(0)
    for arm in arms:
        found = [json.loads((out / f"{arm}-seed{s}" / "summary.json").read_text()) for s in seeds]
        minutes = np.mean([f["wall_seconds"] for f in found]) / 60
        for who in ("initial", "agent", "teacher"):
            if any(f[who] is None for f in found):
                continue
            rates = np.array([f[who]["success_rate"] for f in found]) * 100
            draws = generator.choice(rates, (NUM_RESAMPLES, len(rates))).mean(axis=1)
            low, high = np.percentile(draws, [2.5, 97.5])
            cells = " | ".join(f"{rate:.1f}" for rate in rates)
            rows.append(f"| {arm} | {who} | {cells} | {rates.mean():.1f} | {low:.1f} – {high:.1f} |"
                        f" {minutes:.1f} |")  # fmt: skip
    return "\n".join(rows)


if __name__ == "__main__":
    main()
