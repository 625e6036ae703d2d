import pytest

from gtr_turbo.core.config import RolloutConfig, TaskConfig
from gtr_turbo.envs.pool.choose import make_pool
from gtr_turbo.envs.pool.in_process import InProcessPool
from gtr_turbo.envs.pool.processes import ProcessPool
from gtr_turbo.errors import UnknownNameError
from tests.envs.pool.pools import GAME, RULES, SEEDS, play

TASK = TaskConfig(name=GAME, rules=RULES)


def test_the_configuration_decides_where_environments_live_and_no_number() -> None:
    usual = make_pool(TASK, RolloutConfig(), SEEDS)
    assert isinstance(usual, InProcessPool)
    other = make_pool(TASK, RolloutConfig(workers="process", num_workers=1), SEEDS)
    assert isinstance(other, ProcessPool)
    assert len(other.worker_pids) == 1
    assert play(other, 5) == play(usual, 5)
    other.close()


@pytest.mark.parametrize("workers", ["in_process", "process"])
def test_an_unknown_task_is_refused_wherever_it_was_to_live(workers: str) -> None:
    rollout = RolloutConfig.model_validate({"workers": workers, "num_workers": 1})
    with pytest.raises(UnknownNameError, match="no task named"):
        make_pool(TaskConfig(name="chess"), rollout, SEEDS)
