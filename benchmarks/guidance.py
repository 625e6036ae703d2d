"""What the free teacher costs: wall clock of an update with guidance against one without.

Two runs of the same preset, `guidance.kind` kl and none, go on update by update in turns, in one
process on one thread. The first three updates are left out: critic warm-up, no past, first merge.
"""

import statistics
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from common import arguments, finish, spread  # pyright: ignore[reportImplicitRelativeImport]  a script beside it

from gtr_turbo.core.config import Config
from gtr_turbo.metrics import read_metrics
from gtr_turbo.presets import make_preset
from gtr_turbo.report.console import NullProgress
from gtr_turbo.runstate import RunDirectory
from gtr_turbo.train.gtr_turbo import train
from gtr_turbo.train.pipeline import open_session

SKIPPED = 3
PHASES = ("teach", "act", "guide", "credit", "improve", "remember")


def main() -> None:
    """Run both arms and print the ratio of their update times."""
    args = arguments(__doc__ or "").parse_args()
    base = make_preset("ezpoints-tiny")
    evaluation = base.evaluation.model_copy(update={"num_episodes": 1})
    base = base.model_copy(update={"evaluation": evaluation})
    arms = {
        kind: base.model_copy(update={"guidance": base.guidance.model_copy(update={"kind": kind})})
        for kind in ("none", "kl")
    }
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        running = {k: _updates(c, Path(folder) / k, stack) for k, c in arms.items()}
        for _ in range(SKIPPED + args.runs):
            for updates in running.values():
                next(updates)
        lines = {k: read_metrics(Path(folder) / k / "metrics.jsonl")[SKIPPED:] for k in arms}
    times = {k: [sum(x[f"seconds_{p}"] for p in PHASES) for x in v] for k, v in lines.items()}
    ratio = statistics.median(times["kl"]) / statistics.median(times["none"])
    rows = {f"seconds per update, {k}": spread(v) for k, v in times.items()}
    for phase in PHASES:
        medians = [
            statistics.median(x[f"seconds_{phase}"] for x in lines[k]) for k in ("none", "kl")
        ]
        rows[f"  {phase}, none and kl"] = f"{medians[0]:.3f} and {medians[1]:.3f}"
    rows["ratio kl / none"] = f"{ratio:.3f}"
    finish(f"guidance, ezpoints-tiny, one thread, {args.runs} updates each", rows, args.json)


def _updates(config: Config, path: Path, stack: ExitStack) -> Iterator[int]:
    """Yield after each update of a run, so that two runs can take turns."""
    run = stack.enter_context(RunDirectory.open(path, config, resume=False))
    session = open_session(config, run, NullProgress())
    for number in range(1, config.run.num_updates + 1):
        longer = config.run.model_copy(update={"num_updates": number})
        session.config = config.model_copy(update={"run": longer})
        train(session)
        yield number


if __name__ == "__main__":
    main()
