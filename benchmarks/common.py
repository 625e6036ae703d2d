"""What the benchmark scripts share: medians of repeated runs, and a table that can be saved."""

import argparse
import json
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any


def arguments(description: str, *, runs: int = 5) -> argparse.ArgumentParser:
    """Return a parser with the options that every benchmark has."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--runs", type=int, default=runs, help="repetitions; medians are printed")
    parser.add_argument("--json", type=Path, help="write the table to this file as well")
    return parser


def seconds(work: Callable[[], Any]) -> float:
    """Return the wall-clock seconds that `work` takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def spread(values: Sequence[float]) -> str:
    """Return `median (lowest – highest)`."""
    return f"{statistics.median(values):.3g} ({min(values):.3g} – {max(values):.3g})"


def finish(title: str, rows: Mapping[str, Any], path: Path | None) -> None:
    """Print a two-column table, and save it when asked."""
    width = max(len(name) for name in rows)
    print(title)
    for name, value in rows.items():
        print(f"  {name:<{width}}  {value}")
    if path is not None:
        path.write_text(json.dumps({"title": title, **rows}, indent=2) + "\n")
