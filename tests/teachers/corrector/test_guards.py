import socket
import time
from collections.abc import Iterator

import httpx2
import pytest

from gtr_turbo.teachers.corrector.guards import BodyError, BoundedStream, Watch, bound


class Parts(httpx2.SyncByteStream):
    def __init__(self, *parts: bytes) -> None:
        self.parts = parts
        self.num_read = 0
        self.is_closed = False

    def __iter__(self) -> Iterator[bytes]:
        for part in self.parts:
            self.num_read += len(part)
            yield part

    def close(self) -> None:
        self.is_closed = True


class Stream:
    """What the HTTP client reports when it has connected."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection

    def get_extra_info(self, name: str) -> socket.socket:
        assert name == "socket"
        return self.connection


def test_a_stream_is_read_up_to_its_bound() -> None:
    stream = Parts(b"123", b"45", b"6789")
    assert b"".join(BoundedStream(stream, 9)) == b"123456789"
    bounded = BoundedStream(Parts(b"123", b"45", b"6789", b"never"), 8)
    with pytest.raises(BodyError, match="more than 8 bytes"):
        list(bounded)
    bounded.close()


def test_closing_reaches_the_server_side() -> None:
    stream = Parts(b"x")
    BoundedStream(stream, 1).close()
    assert stream.is_closed


@pytest.mark.parametrize("coding", ["gzip", "br", "deflate, gzip"])
def test_packed_bodies_are_refused(coding: str) -> None:
    response = httpx2.Response(200, headers={"Content-Encoding": coding}, stream=Parts(b"x"))
    with pytest.raises(BodyError, match="packed"):
        bound(response)


def test_other_bodies_get_a_bound() -> None:
    response = httpx2.Response(200, stream=Parts(b"x" * 300_000))
    bound(response)
    with pytest.raises(BodyError, match="262,144"):
        response.read()


@pytest.mark.parametrize("late", [False, True])
def test_a_watch_wakes_whoever_waits_for_a_silent_server(late: bool) -> None:
    ours, theirs = socket.socketpair()
    watch = Watch(0.2)
    with ours, theirs:
        if not late:
            watch.trace("connection.connect_tcp.complete", {"return_value": Stream(ours)})
        watch.start()
        start = time.monotonic()
        if late:
            time.sleep(0.3)
            watch.trace("connection.connect_tcp.complete", {"return_value": Stream(ours)})
        assert ours.recv(1) == b""
        assert time.monotonic() - start < 1.0
    assert watch.has_expired
    watch.stop()


def test_a_watch_that_was_stopped_does_nothing() -> None:
    ours, theirs = socket.socketpair()
    watch = Watch(0.1)
    with ours, theirs:
        watch.trace("http11.send_request_headers.complete", {"return_value": None})
        watch.trace("connection.connect_tcp.complete", {"return_value": Stream(ours)})
        watch.start()
        watch.stop()
        time.sleep(0.2)
        theirs.sendall(b"still there")
        assert ours.recv(20) == b"still there"
    assert not watch.has_expired
