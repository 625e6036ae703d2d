import json
from pathlib import Path
from typing import Any

import pytest

from gtr_turbo.commands.evaluation import measure
from gtr_turbo.errors import ConfigError
from tests.console import Console
from tests.console import console as console
from tests.train.runs import run
from tests.world import tiny_config

FIELDS: dict[str, Any] = {
    "sft__num_steps": 2,
    "sft__num_episodes": 20,
    "rollout__turns_per_update": 8,
    "rollout__max_new_tokens": 8,
    "evaluation__num_episodes": 3,
    "critic__warmup_updates": 0,
    "run__num_updates": 2,
}

TINY = "tiny:qwen2_5_vl"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory of a finished run."""
    path = tmp_path_factory.mktemp("finished") / "run"
    run(tiny_config(TINY, **FIELDS), path)
    return path


def test_the_same_weights_on_the_same_panel_give_the_summary_again(finished: Path) -> None:
    summary = json.loads((finished / "summary.json").read_text())
    before = sorted(path.name for path in finished.iterdir())
    for who in ("initial", "agent", "teacher"):
        found = measure(finished, who)
        for key in ("success_rate", "return", "episodes", "panel_sha256", "outcomes"):
            assert found[key] == summary[who][key], (who, key)
        assert "pass_at" not in found
    assert measure(finished, "agent", num_episodes=4, temperature=0.7)["episodes"] == 4
    assert sorted(path.name for path in finished.iterdir()) == before


def test_several_tries_of_each_hand_give_pass_at_k(
    console: Console, finished: Path, tmp_path: Path
) -> None:
    file = tmp_path / "samples.json"
    code, out, _ = console.run("eval", finished, "--samples", "3", "--json", file)
    assert code == 0
    found = json.loads(file.read_text())
    once = measure(finished, "agent")
    summary = json.loads((finished / "summary.json").read_text())
    assert found["weights_sha256"] == summary["agent"]["weights_sha256"]
    assert found["samples"][0] == found["outcomes"] == once["outcomes"]
    assert {len(line) for line in found["samples"]} == {3}
    solved = [sum(line[hand] == "1" for line in found["samples"]) for hand in range(3)]
    assert found["pass_at"]["1"] == pytest.approx(sum(solved) / 9)
    assert found["pass_at"]["3"] == pytest.approx(sum(count > 0 for count in solved) / 3)
    assert f"pass@1 {found['pass_at']['1']:.1%}  pass@2" in out
    assert "`--samples` must be at least 1, got 0." in console.refused(
        "eval", finished, "--samples", "0"
    )


@pytest.mark.parametrize("who", ["nobody", ""])
def test_nobody_else_can_be_measured(finished: Path, who: str) -> None:
    with pytest.raises(ConfigError, match="agent, teacher or initial"):
        measure(finished, who)


def test_a_directory_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no run directory"):
        measure(tmp_path, "agent")


def test_a_run_without_a_checkpoint_or_a_teacher_is_refused(finished: Path, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text((finished / "config.yaml").read_text())
    with pytest.raises(ConfigError, match="no whole checkpoint yet"):
        measure(tmp_path, "agent")
    plain = tmp_path / "plain"
    run(tiny_config(TINY, **FIELDS | {"run__num_updates": 0, "sft__num_steps": 0}), plain)
    with pytest.raises(ConfigError, match="has no teacher yet"):
        measure(plain, "teacher")
