import pytest

from gtr_turbo.envs import check_task, make_task
from gtr_turbo.envs.check import GARBAGE, LAWS


def test_the_report_counts_what_was_played() -> None:
    report = check_task(lambda seed: make_task("ezpoints", {}, seed))
    assert report.task_id == "ezpoints-v0"
    assert report.laws == tuple(LAWS)
    assert report.num_episodes == report.num_solvable == 6
    assert report.num_turns == 6 * 4  # card, operator, card, equals sign


def test_hopeless_hands_are_counted_apart() -> None:
    report = check_task(lambda seed: make_task("points24", {"ranks": [1]}, seed))
    assert (report.num_solvable, report.num_turns) == (0, 6)


@pytest.mark.parametrize("name", ["points24", "ezpoints"])
def test_the_garbage_is_garbage(name: str) -> None:
    for reply in GARBAGE:
        task = make_task(name, {}, 0)
        task.reset()
        assert task.step(reply).parsed.action is None
