"""What each command takes: a field is an option, its text is the option's help."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, final

import tyro

Who = Literal["agent", "teacher", "initial"]
"""Policies of a run."""


@final
@dataclass(frozen=True)
class TrainArguments:
    """Train an agent with a merge of its own past checkpoints as the teacher."""

    run_dir: Path = Path("runs/latest")
    """Where the run lives."""
    preset: str | None = None
    """Complete configuration by name."""
    arm: str | None = None
    """Variant of it by name: the paper's arms, ablations, controls."""
    config: Path | None = None
    """YAML file on top of the preset (or of the class defaults)."""
    seed: int | None = None
    """Seed of the run, short for --run.seed."""
    updates: int | None = None
    """Number of updates, short for --run.num_updates."""
    resume: bool = False
    """Continue the run in --run-dir from its newest whole checkpoint."""
    dry_run: bool = False
    """Print the resolved configuration as YAML and stop."""


@final
@dataclass(frozen=True)
class SftArguments:
    """Make the supervised start of a run alone, and write it as a model directory."""

    out: Path
    """Directory to write; the model goes into its folder sft."""
    preset: str | None = None
    """Complete configuration by name."""
    config: Path | None = None
    """YAML file on top of the preset (or of the class defaults)."""
    seed: int | None = None
    """Seed of the run, short for --run.seed."""


@final
@dataclass(frozen=True)
class EvalArguments:
    """Measure a run's policy on the fixed panel."""

    run_dir: Annotated[Path, tyro.conf.Positional]
    """Directory of the run."""
    episodes: int | None = None
    """Episodes of the panel; the run's own number by default."""
    who: Who = "agent"
    """Whose play is measured."""
    samples: int = 1
    """Times that each episode is played; more than one gives pass@k for k up to it."""
    temperature: float | None = None
    """Sampling temperature; the run's own by default."""
    json: Path | None = None
    """Write the numbers to this file as well."""


@final
@dataclass(frozen=True)
class JudgeArguments:
    """Have a model behind an OpenAI-compatible API score the thoughts that a run has saved."""

    run_dir: Annotated[Path, tyro.conf.Positional]
    """Directory of the run."""
    url: str
    """Base URL of the API."""
    model: str
    """Model that is asked."""
    api_key_variable: str = "OPENAI_API_KEY"
    """Environment variable that holds the key."""
    episodes: int = 20
    """Saved episodes that are judged, taken evenly over the run."""
    num_parallel: int = 8
    """Requests that are under way at the same time."""
    price_per_million_input_tokens: float = 0.0
    """Price, in any currency."""
    price_per_million_output_tokens: float = 0.0
    """Price, in the same currency."""
    max_cost: float | None = None
    """Cost at which no further request is sent, earlier ones for this run counted."""
    json: Path | None = None
    """Write the numbers to this file as well."""


@final
@dataclass(frozen=True)
class CompareArguments:
    """Run what a study lacks, and compare its arms; the same command goes on after any end."""

    study: Annotated[Path, tyro.conf.Positional]
    """Study file (YAML): arms, seeds, panel."""
    out: Path | None = None
    """Directory of the study; runs/studies/NAME by default."""
    jobs: int | None = None
    """Runs at the same time; as many as there are GPUs in --gpus, or processors, by default."""
    gpus: tuple[str, ...] = ()
    """GPUs that the runs are spread over, as CUDA_VISIBLE_DEVICES names them."""
    only: tuple[str, ...] = ()
    """Arms that are run; all by default."""
    reuse: tuple[Path, ...] = ()
    """Directories of other studies, whose finished runs of the same settings are copied."""
    report_only: bool = False
    """Run nothing, compare what is finished."""
    dry_run: bool = False
    """Check the study, say what would be run and stop."""


@final
@dataclass(frozen=True)
class ReportArguments:
    """Write report.html of a run again."""

    run_dir: Annotated[Path, tyro.conf.Positional]
    """Directory of the run."""


@final
@dataclass(frozen=True)
class EnvListArguments:
    """List the tasks, those of installed plug-ins included."""


@final
@dataclass(frozen=True)
class EnvCheckArguments:
    """Run the conformance laws on a task, and measure its expert and play at random."""

    name: Annotated[str, tyro.conf.Positional]
    """Registered task, or gym:ID for an environment of Gymnasium's."""
    episodes: int = 200
    """Episodes of each measurement; 0 leaves them out."""
    seed: int = 0
    """Seed of the first measured episode."""
    rules: tuple[str, ...] = ()
    """Rule switches, each as NAME=VALUE with the value in YAML."""


@final
@dataclass(frozen=True)
class PlayArguments:
    """Play a task in the terminal: write an action, or a whole reply; quit with an empty line."""

    name: Annotated[str, tyro.conf.Positional]
    """Registered task, or gym:ID for an environment of Gymnasium's."""
    seed: int = 0
    """Seed of the episode."""
    rules: tuple[str, ...] = ()
    """Rule switches, each as NAME=VALUE with the value in YAML."""
    picture: Path = Path("play.png")
    """Where the picture of each turn is saved."""
    columns: int | None = None
    """Width of the picture in the terminal, characters; 0 shows none; 60 where it is a terminal."""
    record: Path | None = None
    """Write the episode to this file, as JSON lines."""
    replay: Path | None = None
    """Play a recorded episode again, and compare all that follows with the record."""


@final
@dataclass(frozen=True)
class MergeArguments:
    """Merge checkpoints (models, adapters or whole runs) into a new directory."""

    checkpoints: Annotated[tuple[Path, ...], tyro.conf.Positional] = ()
    """Model, adapter or run directories, oldest first; a run stands for all its checkpoints."""
    out: Path = Path("merged")
    """Directory to write; it must not exist."""
    base: Path | None = None
    """Model directory that changes are relative to."""
    method: str = "ties"
    """Merge rule: ties, linear and others; an unknown name is answered with the list."""
    density: float = 0.8
    """Share of each change that is kept, for methods that trim or drop."""
    weights: tuple[float, ...] | None = None
    """One per checkpoint; all equal by default."""
    scale: float = 1.0
    """Factor on the merged change."""
    form: Literal["model", "adapter", "change"] | None = None
    """What is written; by default a model where there is a base, else what the checkpoints are."""
    rank: int | None = None
    """Rank of a written adapter; that of the first adapter by default."""
    dtype: Literal["float32", "bfloat16", "float16"] | None = None
    """Type of the written weights; the base's by default."""
    config: Path | None = None
    """A mergekit recipe (YAML) that says all of this but --out."""
