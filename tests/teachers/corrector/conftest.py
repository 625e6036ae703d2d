from collections.abc import Callable, Iterator

import pytest

from gtr_turbo.teachers.corrector import asking
from tests.teachers.corrector.faults import KEY, KEY_VARIABLE, Behaviour, FaultyServer

Serve = Callable[..., FaultyServer]


@pytest.fixture(autouse=True)
def key_and_short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    monkeypatch.setattr(asking, "BACKOFF_SECONDS", 0.05)


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Return a function that starts a server with behaviours; all are closed afterwards."""
    servers: list[FaultyServer] = []

    def start(*behaviours: Behaviour) -> FaultyServer:
        servers.append(FaultyServer(*behaviours))
        return servers[-1]

    yield start
    for server in servers:
        server.close()
