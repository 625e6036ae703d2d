"""Steps per second of the built-in environments on one core, with pictures and without.

    python benchmarks/envs.py [--json FILE] [--runs 7] [--steps 4000]

Replies of expert and garbage are prepared beforehand, so that only the environment is measured:
reading the reply, the rules, the prompt, the picture, and a reset at each end. "without" replaces
the drawing by a constant picture. Each number is the median over the runs, which alternate between
the variants; the processor's time is counted, not the wall's.
"""

import argparse
import json
import statistics
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from unittest import mock

import numpy as np

from gtr_turbo.envs import AbstractTask, make_task
from gtr_turbo.envs.blackjack import render as blackjack
from gtr_turbo.envs.cards import render as cards
from gtr_turbo.envs.household import task as household
from gtr_turbo.envs.numberline import render as numberline

NUM_EPISODES = 200
VARIANTS = {
    "points24 table": ("points24", "table"),
    "points24 compact": ("points24", "compact"),
    "ezpoints table": ("ezpoints", "table"),
    "ezpoints compact": ("ezpoints", "compact"),
    "numberline lineage": ("numberline", "lineage"),
    "numberline compact": ("numberline", "compact"),
    "blackjack table": ("blackjack", "table"),
    "blackjack compact": ("blackjack", "compact"),
    "household room": ("household", "room"),
    "household compact": ("household", "compact"),
}
DRAWING = [
    (cards, "draw_table"), (cards, "draw_compact"),
    (numberline, "draw_lineage"), (numberline, "draw_compact"),
    (blackjack, "draw_table"), (blackjack, "draw_compact"),
    (household, "draw_room"), (household, "draw_compact"),
]  # fmt: skip
"""Where the tasks look for their drawing functions."""


def prepared_replies(task: AbstractTask) -> list[tuple[int, list[str]]]:
    """Return seeds of episodes and what is said in each: right plans, wrong plans and nonsense."""
    generator = np.random.default_rng(0)
    games: list[tuple[int, list[str]]] = []
    for seed in range(NUM_EPISODES):
        task.reset(seed)
        trace = task.demonstrate(generator, mistake=seed % 2 == 0)
        replies = [turn.reply for turn in trace]
        games.append((seed, ["I would rather not.", *replies] if seed % 4 == 0 else replies))
    return games


def steps_per_second(task: AbstractTask, games: list[tuple[int, list[str]]], steps: int) -> float:
    """Return the rate over at least `steps` steps."""
    done = 0
    start = time.process_time()
    while done < steps:
        for seed, replies in games:
            task.reset(seed)
            for reply in replies:
                result = task.step(reply)
                done += 1
                if result.terminated or result.truncated:
                    break
    return done / (time.process_time() - start)


@contextmanager
def without_pictures() -> Iterator[None]:
    """Replace the drawing by constants."""
    blank = np.zeros((28, 28, 3), np.uint8)

    def draw_nothing(*_: object, **__: object) -> np.ndarray:
        return blank

    with ExitStack() as stack:
        for module, name in DRAWING:
            stack.enter_context(mock.patch.object(module, name, new=draw_nothing))
        yield


def measure(runs: int, steps: int) -> dict[str, dict[str, float]]:
    """Return the median, least and greatest rate of each variant, with and without pictures."""
    tasks = {name: make_task(game, {"picture": p}, 0) for name, (game, p) in VARIANTS.items()}
    games = {name: prepared_replies(task) for name, task in tasks.items()}
    rates: dict[str, list[float]] = {}
    for _ in range(runs):
        for name, task in tasks.items():
            for label, drawing in (("with", nullcontext), ("without", without_pictures)):
                with drawing():
                    rate = steps_per_second(task, games[name], steps)
                rates.setdefault(f"{name}, {label}", []).append(rate)
    return {
        name: {"median": statistics.median(r), "min": min(r), "max": max(r), "runs": len(r)}
        for name, r in rates.items()
    }


def main() -> None:
    """Print the table, and write it as JSON where asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="also write the numbers to this file")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--steps", type=int, default=4_000, help="steps per run and variant")
    arguments = parser.parse_args()
    found = measure(arguments.runs, arguments.steps)
    print(f"{'steps per second':28} {'median':>8} {'least':>8} {'greatest':>8}")
    for name, rate in found.items():
        print(f"{name:28} {rate['median']:8,.0f} {rate['min']:8,.0f} {rate['max']:8,.0f}")
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
