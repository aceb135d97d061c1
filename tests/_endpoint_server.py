"""A server on a real socket that speaks OpenAI's protocol as a test tells it to, well or badly."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

Answer = Callable[[dict[str, Any]], Any]


class Status:
    """An answer that is none: a status, a body and headers."""

    def __init__(self, status: int, body: str = "", **headers: str) -> None:
        self.status, self.body, self.headers = status, body, headers


class Server:
    """Answers by what the test puts into ``script``, then as it should by ``answers``; keeps what it was asked.

    In ``script`` may be a body, a ``Status``, what makes one of a request, or a word: ``hang`` never answers, ``hang up``
    ends the connection, ``drip`` answers for ever.
    """

    def __init__(self, answers: Mapping[str, Answer]) -> None:
        self.script: list[Any] = []
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.ends = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                outer.bodies.append(body)
                outer.headers.append({name.lower(): value for name, value in self.headers.items()})
                outer.paths.append(self.path)
                answer = outer.script.pop(0) if outer.script else answers[self.path]
                if answer == "hang":
                    outer.ends.wait(30)
                    return
                if answer == "hang up":
                    return
                if answer == "drip":
                    self.send_response(200)
                    self.end_headers()
                    with contextlib.suppress(OSError):
                        while not outer.ends.wait(0.01):
                            self.wfile.write(b" ")
                    return
                given = answer(body) if callable(answer) else answer
                if not isinstance(given, Status):
                    given = Status(200, given if isinstance(given, str) else json.dumps(given))
                content = given.body.encode()
                self.send_response(given.status)
                for name, value in given.headers.items():
                    self.send_header(name.replace("_", "-"), value)
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def close(self) -> None:
        self.ends.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server that answers by path as the test's module says in ``ENDPOINT``."""
    running = Server(request.module.ENDPOINT)
    yield running
    running.close()


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The waits that are asked for; nobody waits. No key and no proxy comes from the machine's environment."""
    asked: list[float] = []
    monkeypatch.setattr("pgrag._model_endpoint._sleep", asked.append)
    for name in (
        "PGRAG_ENDPOINT_API_KEY",
        "PGRAG_JUDGE_API_KEY",
        "OPENAI_API_KEY",
        "HTTP_PROXY",
        "http_proxy",
        "ALL_PROXY",
        "all_proxy",
    ):
        monkeypatch.delenv(name, raising=False)
    return asked
