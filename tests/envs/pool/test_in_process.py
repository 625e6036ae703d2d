import pytest

from gtr_turbo.envs.pool.in_process import InProcessPool
from gtr_turbo.envs.registry import make_task
from tests.envs.pool.faulty import FaultyTask
from tests.envs.pool.pools import GAME, RULES


def test_what_a_task_raises_comes_through() -> None:
    pool = InProcessPool([FaultyTask(make_task(GAME, RULES, 0))])
    with pytest.raises(ValueError, match="no cards"):
        pool.step(["!raise"])
