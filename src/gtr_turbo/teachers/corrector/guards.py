"""What a server cannot be trusted with: our time and our memory.

A watch ends a request at its deadline wherever it stands (connecting, sending, waiting for headers
or for a body that comes drop by drop); a bounded stream ends a body that is too long.
"""

import socket
import threading
from collections.abc import Iterator, Mapping
from typing import Any, Final, final

import httpx2

MAX_BODY_BYTES: Final = 256 * 1024
"""An honest answer of a few hundred tokens has a few kilobytes."""

_CONNECTED: Final = "connect_tcp.complete"


@final
class BodyError(Exception):
    """A body that is not read to its end."""


@final
class Watch:
    """Cuts the connection of one request when its time is over."""

    def __init__(self, seconds: float) -> None:
        """The time starts in `start`."""
        self.has_expired = False
        """Whether the request was ended, and not by its server."""
        self.has_headers = False
        """Whether a successful answer began, which may be charged for."""
        self._sockets: list[socket.socket] = []
        self._lock = threading.Lock()
        self._timer = threading.Timer(seconds, self.expire)
        self._timer.daemon = True

    def start(self) -> None:
        """Start the clock."""
        self._timer.start()

    def stop(self) -> None:
        """Stop the clock, and let go of the connection."""
        self._timer.cancel()
        with self._lock:
            for connection in self._sockets:
                connection.close()
            self._sockets.clear()

    def expire(self) -> None:
        """End the request now."""
        with self._lock:
            self.has_expired = True
            for connection in self._sockets:
                _shut(connection)

    def trace(self, event: str, details: Mapping[str, Any]) -> None:
        """Take note of a connection that the HTTP client opened (its `trace` extension)."""
        if not event.endswith(_CONNECTED):
            return
        own = details["return_value"].get_extra_info("socket").dup()
        with self._lock:
            self._sockets.append(own)
            if self.has_expired:
                _shut(own)


@final
class BoundedStream(httpx2.SyncByteStream):
    """A body of which at most so many bytes are read."""

    def __init__(self, stream: httpx2.SyncByteStream, max_bytes: int) -> None:
        """`stream` is what the server sends."""
        self._stream = stream
        self._max_bytes = max_bytes

    def __iter__(self) -> Iterator[bytes]:
        """Yield the body. Raises BodyError at the byte that is too much."""
        num_bytes = 0
        for part in self._stream:
            num_bytes += len(part)
            if num_bytes > self._max_bytes:
                raise BodyError(f"the body has more than {self._max_bytes:,} bytes")
            yield part

    def close(self) -> None:
        """Close the connection; what is left of the body is not read."""
        self._stream.close()


def bound(response: httpx2.Response) -> None:
    """Put a bound on a response's body. Raises BodyError for a body that would have to be unpacked.

    (A packed body of a few kilobytes can hold gigabytes; we ask for none.)
    """
    coding = response.headers.get("content-encoding", "identity").strip().lower()
    if coding not in ("", "identity"):
        raise BodyError(f"the body is packed ({coding[:20]!r}), which was not asked for")
    if not isinstance(response.stream, httpx2.SyncByteStream):
        raise BodyError("the body is no stream")
    response.stream = BoundedStream(response.stream, MAX_BODY_BYTES)


def _shut(connection: socket.socket) -> None:
    """End a connection in both directions; whoever waits for it wakes up."""
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # it has ended already
