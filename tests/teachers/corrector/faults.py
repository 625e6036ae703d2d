"""An endpoint that misbehaves on purpose, on real sockets; and turns to ask it about."""

import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from gtr_turbo.core.teaching import CorrectorConfig
from gtr_turbo.core.turns import Observation, ParsedReply, Reply, SamplingSettings, Turn
from gtr_turbo.teachers.corrector import Corrector
from tests.rows import prompt

KEY = "sk-test-0123456789-never-shown"
KEY_VARIABLE = "CORRECTOR_TEST_KEY"
RIGHT = '{"check": "fine", "verdict": "right", "thought": null}'
WRONG = '{"check": "no", "verdict": "wrong", "thought": {"thoughts": "5+7=12"}}'
PRICES = {"price_per_million_input_tokens": 1000.0, "price_per_million_output_tokens": 1000.0}
"""A question of 1000 tokens and an answer of 100 cost 1.1."""

Behaviour = Callable[[socket.socket, "FaultyServer"], None]


class FaultyServer:
    """Serves its behaviours one after the other, the last one for ever."""

    def __init__(self, *behaviours: Behaviour) -> None:
        self.behaviours = list(behaviours)
        self.requests: list[tuple[str, dict[str, Any]]] = []
        """(head, body) of each request, in order."""
        self.times: list[float] = []
        self.num_sent = 0
        """Bytes of bodies that went out."""
        self.is_closing = False
        self._here = threading.local()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._socket.settimeout(0.05)
        self._acceptor = threading.Thread(target=self._accept)
        self._acceptor.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}/v1"

    @property
    def question(self) -> dict[str, Any]:
        """The body of the request that a behaviour answers."""
        return self._here.question

    def close(self) -> None:
        self.is_closing = True
        self._acceptor.join()
        for thread in self._threads:
            thread.join()
        self._socket.close()

    def _accept(self) -> None:
        while not self.is_closing:
            try:
                connection, _ = self._socket.accept()
            except TimeoutError:
                continue
            thread = threading.Thread(target=self._serve, args=(connection,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            connection.settimeout(10.0)
            try:
                request = read_request(connection)
                self._here.question = request[1]
                with self._lock:
                    number = len(self.requests)
                    self.requests.append(request)
                    self.times.append(time.monotonic())
                self.behaviours[min(number, len(self.behaviours) - 1)](connection, self)
            except OSError:
                return  # the client has had enough


def read_request(connection: socket.socket) -> tuple[str, dict[str, Any]]:
    """Return the head and the JSON body of a request."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += receive(connection)
    head, _, body = data.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").lower().split("\r\n")
    length = next(int(line.split(":")[1]) for line in lines if line.startswith("content-length:"))
    while len(body) < length:
        body += receive(connection)
    return head.decode("latin-1"), json.loads(body)


def receive(connection: socket.socket) -> bytes:
    """Return what came next. Raises OSError when nothing will."""
    part = connection.recv(65536)
    if not part:
        raise OSError("the client left")
    return part


# -------------------------------------------------------------------------------------- behaviours
def completion(text: str | None, usage: tuple[int, int] | None = (1000, 100)) -> bytes:
    """Return the body of a chat completion."""
    value: dict[str, Any] = {"choices": [{"message": {"role": "assistant", "content": text}}]}
    if usage is not None:
        value["usage"] = {"prompt_tokens": usage[0], "completion_tokens": usage[1]}
    return json.dumps(value).encode()


def send(body: bytes, status: str = "200 OK", *headers: str) -> Behaviour:
    """Send a whole answer."""

    def behave(connection: socket.socket, server: FaultyServer) -> None:
        head = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
        connection.sendall("\r\n".join((*head, "", "")).encode() + body)
        server.num_sent += len(body)

    return behave


def say(text: str | None, usage: tuple[int, int] | None = (1000, 100)) -> Behaviour:
    """Answer with a text."""
    return send(completion(text, usage))


def reset(connection: socket.socket, server: FaultyServer) -> None:
    """Reset the connection."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def hang(connection: socket.socket, server: FaultyServer) -> None:
    """Say nothing."""
    connection.settimeout(0.05)
    while not server.is_closing:
        try:
            if not connection.recv(1):
                return
        except TimeoutError:
            continue


def drip(before: bytes) -> Behaviour:
    """Send `before`, and then a blank twenty times a second."""

    def behave(connection: socket.socket, server: FaultyServer) -> None:
        connection.sendall(before)
        while not server.is_closing:
            connection.sendall(b"x")
            time.sleep(0.05)

    return behave


drip_body = drip(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
drip_headers = drip(b"HTTP/1.1 200 OK\r\nX-Slow: ")


def flood(status: str) -> Behaviour:
    """Send 50 MB."""

    def behave(connection: socket.socket, server: FaultyServer) -> None:
        connection.sendall(f"HTTP/1.1 {status}\r\nContent-Length: 52428800\r\n\r\n".encode())
        for _ in range(800):
            connection.sendall(b" " * 65536)
            server.num_sent += 65536

    return behave


# ------------------------------------------------------------------------------------ turns, config
def turn(
    thoughts: str = "5+6=12", advice: str = "", *, valid: bool = True, picture: int = 0
) -> Turn:
    """Return a turn with these thoughts."""
    fields = {"cards": ["5", "7"], "formula": "", "thoughts": thoughts, "action": "5"}
    text = json.dumps(fields) if valid else "hm"
    return Turn(
        observation=Observation(
            picture=np.full((28, 56, 3), picture, np.uint8),
            prompt="make 12 formula: ",
            state_key="a state",
            advice=advice,
        ),
        prompt=prompt((1, 2)),
        reply=Reply(
            token_ids=(1,),
            token_logprobs=np.zeros(1, np.float32),
            text=text,
            num_thought_tokens=1,
            finished=True,
        ),
        sampling=SamplingSettings(temperature=1.0, max_new_tokens=8, suppressed=()),
        parsed=ParsedReply(
            action="5" if valid else None, valid_format=valid, reason=None if valid else "none"
        ),
        legal=valid,
        random_action=False,
        rewards={"task": 0.0},
        terminated=False,
        truncated=False,
        success=False,
        policy_version="v",
    )


def config_for(server: FaultyServer, **fields: Any) -> CorrectorConfig:
    """Return a configuration with short waits."""
    small: dict[str, Any] = {
        "url": server.url,
        "api_key_variable": KEY_VARIABLE,
        "deadline": 2.0,
        "max_attempts": 3,
        "num_parallel": 1,
        "pause": 0.2,
    }
    return CorrectorConfig(**(small | fields))


@contextmanager
def corrector_of(server: FaultyServer, cache: Path, **fields: Any) -> Iterator[Corrector]:
    """Yield a corrector that asks a server."""
    corrector = Corrector(config_for(server, **fields), cache)
    try:
        yield corrector
    finally:
        corrector.close()


def turns(count: int) -> list[Turn]:
    """Return turns with different thoughts."""
    return [turn(f"thought {number}") for number in range(count)]


def verdicts(corrector: Corrector, count: int) -> list[str]:
    """Return what a corrector says of so many turns."""
    return [correction.verdict for correction in corrector.correct(turns(count))]
