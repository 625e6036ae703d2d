"""A study file, and the runs that it stands for."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

from pydantic import Field, StrictInt, ValidationError, model_validator

from gtr_turbo.arms import make_arm
from gtr_turbo.core.config import Config, flatten, parse_config
from gtr_turbo.core.overrides import put
from gtr_turbo.core.plain_yaml import read_yaml
from gtr_turbo.core.refusals import explain
from gtr_turbo.core.section import Section
from gtr_turbo.envs.registry import make_task
from gtr_turbo.errors import ConfigError, UnknownNameError, nearest_hint
from gtr_turbo.presets import make_preset

PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
"""What may become the name of a directory."""


@final
class Study(Section):
    """Arms × seeds of one preset, measured on one panel."""

    name: str
    """Short name; the default directory is runs/studies/NAME."""
    question: str = ""
    """What the study asks, for its report."""
    preset: str
    """Configuration that every arm starts from."""
    overrides: dict[str, Any] = Field(default_factory=dict)
    """Fields for every arm, dotted or nested, on top of the preset; an arm's own win."""
    arms: tuple[Any, ...] = Field(min_length=1)
    """Names of arms, and arms of the study's own as `name: {field: value, …}`."""
    baseline: str | None = None
    """The arm that the others are compared with; by default the first."""
    seeds: tuple[StrictInt, ...] = Field(min_length=1)
    """Seeds of each arm's runs."""
    episodes: StrictInt | None = Field(default=None, ge=1)
    """Hands of the panel; None: as in the preset."""
    samples: StrictInt = Field(default=1, ge=1)
    """Times that each hand is played after a run; more than once gives pass@k."""
    threads: StrictInt | None = Field(default=1, ge=1)
    """CPU threads of each run; None leaves the choice to the preset and to torch."""

    @model_validator(mode="after")
    def _sound(self) -> "Study":
        _refuse_name(self.name, "a study")
        if len(set(self.seeds)) < len(self.seeds) or min(self.seeds) < 0:
            raise ConfigError(
                f"`seeds` must be different and not negative, got {list(self.seeds)}."
            )
        arms = arms_of(self)
        if self.baseline is not None and self.baseline not in arms:
            raise ConfigError(
                f'`baseline` is "{self.baseline}", which is no arm of the study.',
                hint=nearest_hint(self.baseline, arms, "arms of the study"),
            )
        return self


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StudyRun:
    """One run of a study."""

    arm: str
    seed: int
    config: Config

    @property
    def name(self) -> str:
        """Name of its directory and its log."""
        return f"{self.arm}-seed{self.seed}"


def read_study(path: Path) -> Study:
    """Return a checked study file. Raises ConfigError for whatever is wrong in it."""
    values = read_yaml(path)
    unknown = [key for key in values if key not in Study.model_fields]
    if unknown:
        raise ConfigError(
            f"{path} has a key `{unknown[0]}`, which no study has.",
            hint=nearest_hint(str(unknown[0]), Study.model_fields, "keys of a study"),
        )
    try:
        return Study.model_validate(values)
    except ValidationError as error:
        raise explain(error, Study) from None


def arms_of(study: Study) -> dict[str, Mapping[str, Any]]:
    """Return name → overrides of the study's arms, in its order.

    Raises UnknownNameError for a name that is no arm, ConfigError for one that is given twice.
    """
    arms: dict[str, Mapping[str, Any]] = {}
    for entry in study.arms:
        found = {entry: None} if isinstance(entry, str) else entry
        if not isinstance(found, Mapping):
            raise ConfigError(
                f"`arms` lists {entry!r:.80}, which is neither a name nor `name: {{field: value}}`."
            )
        for name, own in found.items():
            _refuse_name(name, "an arm")
            if name in arms:
                raise ConfigError(f'`arms` has "{name}" twice.')
            arms[name] = make_arm(name).overrides if own is None else _own_arm(name, own)
    return arms


def baseline_of(study: Study) -> str:
    """Return the arm that the others are compared with."""
    return study.baseline or next(iter(arms_of(study)))


def planned_runs(study: Study) -> list[StudyRun]:
    """Return every run of a study with its resolved configuration, seed by seed.

    Raises ConfigError when an arm cannot be run, or two of them are the same.
    """
    arms = arms_of(study)
    _refuse_what_a_study_sets(study, arms)
    first: dict[str, str] = {}
    runs: list[StudyRun] = []
    for seed in study.seeds:
        for arm, own in arms.items():
            config = _resolve(study, arm, own, seed)
            twin = first.setdefault(config.model_dump_json(), arm)
            if twin != arm:
                raise ConfigError(
                    f'the arms "{twin}" and "{arm}" are the same under {study.preset}.',
                    hint="leave one of them out.",
                )
            runs.append(StudyRun(arm=arm, seed=seed, config=config))
    _refuse_other_games(runs[: len(arms)])
    return runs


def _refuse_what_a_study_sets(study: Study, arms: Mapping[str, Mapping[str, Any]]) -> None:
    """Refuse fields that have a key of the study's own, where that key is used."""
    keys = {"run.seed": "seeds"}
    if study.threads is not None:
        keys["run.num_threads"] = "threads"
    if study.episodes is not None:
        keys["evaluation.num_episodes"] = "episodes"
    for name, fields in {"overrides": study.overrides, **arms}.items():
        where = "`overrides`" if fields is study.overrides else f'the arm "{name}"'
        for field in sorted(flatten(fields).keys() & keys.keys()):
            raise ConfigError(
                f"{where} sets `{field}`, which the study's `{keys[field]}` decides.",
                hint=f"say it under `{keys[field]}`, for all runs.",
            )


def _evaluated_game(config: Config) -> Mapping[str, Any]:
    """Return what decides how success is measured: the game of the panel, and how it is played."""
    rules = config.task.rules | config.task.evaluation_rules
    evaluation = config.evaluation.model_dump(exclude={"interval"})
    return flatten({"task": {"name": config.task.name, "rules": rules}, "evaluation": evaluation})


def _refuse_other_games(runs: Sequence[StudyRun]) -> None:
    """Refuse arms, one run of each, whose success could not be compared with the first arm's."""
    first, *others = runs
    game = _evaluated_game(first.config)
    for run in others:
        other = _evaluated_game(run.config)
        for field in sorted(game.keys() | other.keys()):
            if game.get(field) != other.get(field):
                raise ConfigError(
                    f'the arm "{run.arm}" would be evaluated with `{field}` {other.get(field)}, but'
                    f' "{first.arm}" with {game.get(field)}: what they solve could not be'
                    " compared.",
                    hint="set it for all arms, under `overrides`; a rule that is for training alone"
                    " gets its value for the panel under `task.evaluation_rules`.",
                )


def _resolve(study: Study, arm: str, own: Mapping[str, Any], seed: int) -> Config:
    """Return preset ← study ← arm ← seed, checked as a whole."""
    values = make_preset(study.preset).model_dump(mode="json")
    panel = {} if study.episodes is None else {"evaluation.num_episodes": study.episodes}
    threads = {} if study.threads is None else {"run.num_threads": study.threads}
    try:
        for layer in (study.overrides, panel, threads, own, {"run.seed": seed}):
            for key, value in layer.items():
                put(values, key, value)
        config = parse_config(values)
        for rules in (config.task.rules, config.task.rules | config.task.evaluation_rules):
            make_task(config.task.name, rules, seed)
    except (ConfigError, UnknownNameError) as error:
        raise ConfigError(f'the arm "{arm}": {error.message}', hint=error.hint) from None
    return config


def _own_arm(name: Any, own: Any) -> Mapping[str, Any]:
    if not isinstance(own, Mapping) or not all(isinstance(key, str) for key in own):
        raise ConfigError(
            f'the arm "{name}" must be a mapping of fields to values, got {own!r:.80}.'
        )
    return own


def _refuse_name(name: Any, what: str) -> None:
    if not (isinstance(name, str) and PLAIN_NAME.fullmatch(name)):
        raise ConfigError(
            f"{name!r:.80} cannot be the name of {what}.",
            hint="use letters, digits, dots, hyphens and underscores.",
        )
