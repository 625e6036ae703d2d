"""A corrector that needs no model: a local server that repeats what the task's solver says.

It speaks the chat-completions protocol over real HTTP, on the loopback interface, so that a run
without any endpoint still goes through the client, its retries and its cache. A thought is right
for it when it is the expert's, word by word.
"""

import json
import logging
import threading
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, final

from gtr_turbo.teachers.corrector.answers import reply_fields
from gtr_turbo.teachers.corrector.questions import CHARACTERS_PER_TOKEN, REPLIED, SOLVER

LOOPBACK: Final = "127.0.0.1"
MAX_QUESTION_BYTES: Final = 32_000_000
"""A picture of a few megapixels and a long prompt."""

logger = logging.getLogger(__name__)

_PATH: Final = "/v1/chat/completions"
_IDLE_SECONDS: Final = 30.0


@final
class ScriptedServer:
    """Serves from its making until `close`."""

    def __init__(self) -> None:
        """Listen on a free port."""
        self._http = _Server((LOOPBACK, 0), _Handler)
        self._thread = threading.Thread(
            target=self._http.serve_forever,
            kwargs={"poll_interval": 0.05},
            name="scripted corrector",
            daemon=True,
        )
        self._thread.start()

    @property
    def url(self) -> str:
        """Base URL of the API."""
        return f"http://{LOOPBACK}:{self._http.server_address[1]}/v1"

    def close(self) -> None:
        """Stop listening."""
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


def answer_question(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the chat completion that answers a request. Raises ValueError for no such question."""
    texts = [part["text"] for part in _user_parts(request) if part.get("type") == "text"]
    reply, solver = (_section(texts, heading) for heading in (REPLIED, SOLVER))
    if reply is None:
        raise ValueError("there is no reply to judge")
    text = json.dumps(judge(reply, solver or ""), ensure_ascii=False)
    return {
        "id": "scripted",
        "object": "chat.completion",
        "created": 0,
        "model": str(request.get("model")),
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": text},
            }
        ],
        "usage": {
            "prompt_tokens": sum(map(len, texts)) // CHARACTERS_PER_TOKEN,
            "completion_tokens": len(text) // CHARACTERS_PER_TOKEN,
            "total_tokens": (sum(map(len, texts)) + len(text)) // CHARACTERS_PER_TOKEN,
        },
    }


def judge(reply: str, advice: str) -> dict[str, Any]:
    """Return the verdict on a reply by the advice of a task (`Observation.advice`).

    Advice without an expert's reply says that there is no right way left.
    """
    lines = [line for line in advice.splitlines() if line.startswith("{")]
    if not lines:
        return {"check": advice, "verdict": "hopeless", "thought": None}
    fields, expert = reply_fields(reply), reply_fields(lines[-1])
    if fields is None or expert is None:
        raise ValueError("a reply is no JSON object")
    names = {name.replace("_", " "): name for name in fields if name != "action"}
    thought = {names.get(name, name): value for name, value in expert.items() if name != "action"}
    is_right = all(fields.get(name) == value for name, value in thought.items())
    if is_right:
        return {"check": "as the solver says", "verdict": "right", "thought": None}
    return {"check": "not as the solver says", "verdict": "wrong", "thought": thought}


def _user_parts(request: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [part for m in request["messages"] if m["role"] == "user" for part in m["content"]]


def _section(texts: list[str], heading: str) -> str | None:
    """Return the part of a question below a heading."""
    found = [text.removeprefix(heading) for text in texts if text.startswith(heading)]
    return found[0] if found else None


@final
class _Server(ThreadingHTTPServer):
    """Threads that end with the process, and no word about clients that left."""

    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Note what went wrong with a connection; the client has noticed by itself."""
        logger.debug("a connection of %s failed.", client_address, exc_info=True)


@final
class _Handler(BaseHTTPRequestHandler):
    """Answers one request per connection."""

    timeout = _IDLE_SECONDS

    def do_POST(self) -> None:
        """Answer a question, or say in the protocol's words why there is no answer."""
        length = self.headers.get("Content-Length", "")
        if self.path != _PATH or not length.isdigit() or int(length) > MAX_QUESTION_BYTES:
            self._send(HTTPStatus.NOT_FOUND, {"error": {"message": "there is no such thing"}})
            return
        try:
            answer = answer_question(json.loads(self.rfile.read(int(length))))
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            self._send(HTTPStatus.BAD_REQUEST, {"error": {"message": f"no question: {error!r}"}})
        else:
            self._send(HTTPStatus.OK, answer)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the run has a log of its own."""

    def _send(self, status: HTTPStatus, value: dict[str, Any]) -> None:
        body = json.dumps(value).encode("ascii")
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
