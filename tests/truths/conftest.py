"""The tiny world, and one update that was played, for tests that plant a fault in it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gtr_turbo.train.session import Session
from tests.train.runs import session_of
from tests.truths.played import QUICK, Played, play_update
from tests.world import World, nudge, tiny_config
from tests.world import world as world


@pytest.fixture
def session(world: World, tmp_path: Path) -> Iterator[Session]:
    """Return a session at its start."""
    opened = session_of(tiny_config(world.trained, **QUICK), tmp_path / "run")
    yield opened
    opened.run.close()


@pytest.fixture
def played(session: Session) -> Played:
    """Return one update's turns, sampled by weights that are not those of the start."""
    nudge(session.policy, 0.02)  # pyright: ignore[reportArgumentType]
    return play_update(session)
