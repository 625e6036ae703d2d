from pathlib import Path
from typing import Any

import pytest
import yaml

from gtr_turbo.arms import ARMS
from gtr_turbo.core.config import flatten
from gtr_turbo.errors import ConfigError, GtrTurboError
from gtr_turbo.presets import make_preset
from gtr_turbo.studies.study import arms_of, baseline_of, planned_runs, read_study
from tests.structure.source import ROOT

FILES = sorted((ROOT / "studies").glob("*.yaml"))
SMALL: dict[str, Any] = {
    "name": "small",
    "preset": "ezpoints-tiny",
    "arms": ["rl4vlm", {"half": {"guidance.coef": 0.5}}, "sft-only"],
    "seeds": [3, 4],
    "overrides": {"run.num_updates": 7, "rollout": {"max_new_tokens": 9}},
}


def written(path: Path, **changes: Any) -> Path:
    """Return a study file with some keys changed; None leaves one out."""
    values = {key: value for key, value in {**SMALL, **changes}.items() if value is not None}
    file = path / "study.yaml"
    file.write_text(yaml.safe_dump(values))
    return file


def test_a_study_stands_for_its_arms_and_seeds(tmp_path: Path) -> None:
    study = read_study(written(tmp_path, episodes=12, threads=2))
    runs = planned_runs(study)
    assert [run.name for run in runs] == [
        f"{arm}-seed{seed}" for seed in (3, 4) for arm in ("rl4vlm", "half", "sft-only")
    ]
    before = flatten(make_preset("ezpoints-tiny").model_dump())
    common = {
        "run.num_updates": 7,
        "rollout.max_new_tokens": 9,
        "evaluation.num_episodes": 12,
        "run.num_threads": 2,
        "run.seed": 4,
    }
    assert flatten(runs[3].config.model_dump()) == before | common | {"guidance.kind": "none"}
    assert flatten(runs[4].config.model_dump()) == before | common | {"guidance.coef": 0.5}
    assert runs[5].config.run.num_updates == 0  # an arm's own fields win over those of the study


@pytest.mark.parametrize(
    ("common", "own"),
    [
        ({"guidance": {"coef": 30.0}}, {"guidance": {"estimator": "k1"}}),
        ({"guidance.coef": 30.0}, {"guidance": {"estimator": "k1"}}),
        ({"guidance": {"coef": 30.0, "estimator": "k3"}}, {"guidance.estimator": "k1"}),
        ({"guidance.estimator": "k3", "guidance": {"coef": 30.0}}, {"guidance.estimator": "k1"}),
    ],
)
def test_an_arm_adds_to_what_the_study_says_however_both_are_written(
    tmp_path: Path, common: dict[str, Any], own: dict[str, Any]
) -> None:
    study = read_study(written(tmp_path, overrides=common, arms=[{"x": own}]))
    guidance = planned_runs(study)[0].config.guidance
    assert (guidance.coef, guidance.estimator, guidance.into) == (30.0, "k1", "reward")


def test_a_rule_for_training_alone_leaves_the_arms_comparable(tmp_path: Path) -> None:
    rule = {"task.rules.end_when_hopeless": True, "task.evaluation_rules.end_when_hopeless": False}
    runs = planned_runs(read_study(written(tmp_path, arms=["rft", {"short": rule}])))
    assert [run.config.task.rules["end_when_hopeless"] for run in runs[:2]] == [False, True]


def test_the_first_arm_is_the_baseline_unless_another_is_named(tmp_path: Path) -> None:
    assert baseline_of(read_study(written(tmp_path))) == "rl4vlm"
    assert baseline_of(read_study(written(tmp_path, baseline="half"))) == "half"


def test_arms_of_a_study_may_be_named_or_its_own(tmp_path: Path) -> None:
    arms = arms_of(read_study(written(tmp_path)))
    assert arms["rl4vlm"] == ARMS["rl4vlm"].overrides
    assert arms["half"] == {"guidance.coef": 0.5}


@pytest.mark.parametrize(
    ("changes", "message", "hint"),
    [
        ({"sedes": [1]}, "has a key `sedes`, which no study has.", 'did you mean "seeds"?'),
        ({"preset": "ezpoint-tiny"}, 'no preset named "ezpoint-tiny"', '"ezpoints-tiny"?'),
        ({"preset": None}, "`preset` Field required", "Configuration that every arm"),
        ({"arms": ["rl4vml"]}, 'there is no arm named "rl4vml".', 'did you mean "rl4vlm"?'),
        ({"arms": []}, "`arms`", ""),
        ({"arms": [7]}, "`arms` lists 7, which is neither a name nor", ""),
        ({"arms": ["rft", "rft"]}, '`arms` has "rft" twice.', ""),
        ({"arms": ["rft", {"x": {"ppo.objectif": "none"}}]},
         'the arm "x": there is no configuration key `ppo.objectif`.', '"objective"?'),
        ({"arms": [{"x": {"task.rules.max_step": 3}}]}, 'the arm "x": there is no rule named',
         '"max_steps"?'),
        ({"arms": [{"x": 3}]}, 'the arm "x" must be a mapping of fields to values, got 3.', ""),
        ({"arms": [{"../x": {}}]}, "'../x' cannot be the name of an arm.", "letters, digits"),
        ({"name": "a/b"}, "'a/b' cannot be the name of a study.", "letters, digits"),
        ({"arms": ["into-reward", "gtr-turbo-kl"]},
         'the arms "into-reward" and "gtr-turbo-kl" are the same', "leave one of them out"),
        ({"baseline": "hafl"}, '`baseline` is "hafl", which is no arm', 'did you mean "half"?'),
        ({"seeds": [1, 1]}, "`seeds` must be different and not negative, got [1, 1].", ""),
        ({"seeds": [-1]}, "`seeds` must be different and not negative, got [-1].", ""),
        ({"seeds": []}, "`seeds`", ""),
        ({"seeds": [True, 2]}, "seeds", ""),
        ({"seeds": [1.0]}, "seeds", ""),
        ({"seeds": ["2"]}, "seeds", ""),
        ({"arms": [{"x": {"run": {"seed": 3}}}]},
         'the arm "x" sets `run.seed`, which the study\'s `seeds` decides.', "under `seeds`"),
        ({"overrides": {"run.seed": 3}}, "`overrides` sets `run.seed`", "under `seeds`"),
        ({"overrides": {"run": {"num_threads": 4}}}, "`overrides` sets `run.num_threads`",
         "under `threads`"),
        ({"overrides": {"evaluation.num_episodes": 9}, "episodes": 8},
         "`overrides` sets `evaluation.num_episodes`", "under `episodes`"),
        ({"arms": ["rft", {"x": {"evaluation.num_episodes": 9}}]},
         'the arm "x" would be evaluated with `evaluation.num_episodes` 9, but "rft" with 200',
         "under `overrides`"),
        ({"arms": ["rft", {"x": {"task.rules.max_steps": 3}}]},
         'the arm "x" would be evaluated with `task.rules.max_steps` 3', "evaluation_rules"),
        ({"arms": ["rft", {"x": {"evaluation.temperature": 0.3}}]},
         'the arm "x" would be evaluated with `evaluation.temperature` 0.3', "under `overrides`"),
        ({"overrides": {"run": None}}, "`run` must be a mapping of fields to values, got None.",
         "leave the section out"),
        ({"arms": [{5: None}]}, "5 cannot be the name of an arm.", "letters, digits"),
        ({"episodes": True}, "episodes", ""),
        ({"episodes": 0}, "`episodes` must be greater than or equal to 1, got 0.", "Hands of"),
    ],
)  # fmt: skip
def test_a_faulty_study_is_refused(
    tmp_path: Path, changes: dict[str, Any], message: str, hint: str
) -> None:
    with pytest.raises(GtrTurboError) as caught:
        planned_runs(read_study(written(tmp_path, **changes)))
    assert message in caught.value.message
    assert hint in str(caught.value.hint)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_each_committed_study_can_be_run(file: Path) -> None:
    study = read_study(file)
    assert study.name == file.stem
    assert study.question
    assert len(study.seeds) >= 5
    assert len(planned_runs(study)) == len(arms_of(study)) * len(study.seeds)


def test_a_study_that_is_no_mapping_is_refused(tmp_path: Path) -> None:
    (tmp_path / "list.yaml").write_text("[1]")
    with pytest.raises(ConfigError, match="must hold a mapping"):
        read_study(tmp_path / "list.yaml")
