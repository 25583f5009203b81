"""The audit of requests: a line before a write takes effect and one for its result; a line for each refusal."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp, Message
from starlette.websockets import WebSocket

from riseml.base.errors import Unauthenticated
from riseml.base.roles import Role, Scope
from riseml.model import Caller, Owner
from riseml.server.gate.audit_gate import add_audit
from riseml.server.gate.key_gate import KeyGate
from riseml.store.audit_log import AuditLog

PAUL = Caller(Owner("paul", 2001, 2001), Role.MEMBER, Scope.RUN, key="k1")
BEGUN = datetime(2026, 11, 28, 12, tzinfo=UTC)


class OneKey:
    """Knows the key of paul."""

    def find_caller(self, token: str, address: str) -> Caller:
        if token != "right":
            raise Unauthenticated("unknown key", "`riseml login` asks for one")
        return PAUL


class Server:
    """An audited server: each write of its API notes what the log has at that moment."""

    def __init__(self, path: Path) -> None:
        self.audit = AuditLog(path)
        self.seen: list[list[str]] = []  # the lines that were there when each write took effect
        self.now = BEGUN
        routes = [
            Route("/v1/answer/{status}", self._answer, methods=["GET", "POST"]),
            Route("/v1/experiments/{name}/kill", self._answer, methods=["POST"]),
            WebSocketRoute("/v1/experiments/{name}/command", self._stream),
        ]
        self.app: ASGIApp = add_audit(
            Starlette(routes=routes), self.audit, lambda: self.now, lambda api: KeyGate(api, OneKey())
        )

    def list_lines(self) -> list[str]:
        lines = [line.entry for line in self.audit.read_newest()]
        return [f"{line.user or '-'} {line.key or '-'} {line.request} {line.result}" for line in reversed(lines)]

    async def _answer(self, request: Request) -> Response:
        self.seen.append(self.list_lines())
        return PlainTextResponse("", int(request.path_params.get("status", 200)))

    async def _stream(self, websocket: WebSocket) -> None:
        self.seen.append(self.list_lines())
        await websocket.accept()
        await websocket.close()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    made = Server(tmp_path / "audit.log")
    yield made
    made.audit.close()


def ask(server: Server, method: str, path: str, key: str = "right", address: str = "10.0.0.7") -> int:
    async def send() -> int:
        transport = httpx.ASGITransport(app=server.app, client=(address, 5), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://riseml") as client:
            answer = await client.request(method, path, headers={"Authorization": f"Bearer {key}"})
            return answer.status_code

    return asyncio.run(send())


def test_a_write_has_its_line_before_it_takes_effect_and_one_for_its_result(server: Server) -> None:
    for status, result in ((200, "done 200"), (403, "refused 403"), (404, "failed 404"), (503, "failed 503")):
        ask(server, "POST", f"/v1/answer/{status}")
        begun = f"paul k1 POST /v1/answer/{status} begun"
        assert server.seen[-1][-1] == begun
        assert server.list_lines()[-2:] == [begun, f"paul k1 POST /v1/answer/{status} {result}"]
    newest = next(server.audit.read_newest())
    assert (newest.entry.of, newest.entry.address) == (newest.number - 1, "10.0.0.7")


def test_a_read_has_no_line_and_a_refused_one_has(server: Server) -> None:
    ask(server, "GET", "/v1/answer/200")
    ask(server, "GET", "/v1/answer/404")
    assert server.list_lines() == []
    assert ask(server, "GET", "/v1/answer/403") == 403
    assert ask(server, "POST", "/v1/answer/200", key="wrong") == 401
    assert server.list_lines() == [
        "paul k1 GET /v1/answer/403 refused 403",
        "- - POST /v1/answer/200 refused 401",
    ]
    assert len(server.seen) == 3, "the write without a key had no effect"


def open_stream(server: Server, path: str, *headers: str) -> list[str]:
    """Open a stream as a client does that ends it at once; return the types of what the server sends."""
    sent: list[str] = []

    async def receive() -> Message:
        return {"type": "websocket.connect"}

    async def send(message: Message) -> None:
        sent.append(message["type"])

    async def call() -> None:
        sent_headers = [(b"authorization", header.encode()) for header in headers]
        scope = {"type": "websocket", "path": path, "client": ("10.0.0.7", 5), "headers": sent_headers}
        await server.app({**scope, "subprotocols": []}, receive, send)

    asyncio.run(call())
    return sent


def test_a_stream_into_a_job_is_a_write(server: Server) -> None:
    path = "/v1/experiments/4/command"
    assert open_stream(server, path, "Bearer right") == ["websocket.accept", "websocket.close"]
    assert server.seen[-1] == [f"paul k1 CONNECT {path} begun"]
    assert open_stream(server, path) == ["websocket.close"]
    assert server.list_lines() == [
        f"paul k1 CONNECT {path} begun",
        f"paul k1 CONNECT {path} done 101",
        f"- - CONNECT {path} refused 403",
    ]


def test_a_write_without_its_line_is_refused_and_a_kill_is_not(server: Server, tmp_path: Path) -> None:
    (tmp_path / "audit.log").rename(tmp_path / "elsewhere")
    assert ask(server, "POST", "/v1/answer/200") == 503
    assert server.seen == []
    assert ask(server, "GET", "/v1/answer/200") == 200
    assert ask(server, "POST", "/v1/experiments/4/kill") == 200
    (tmp_path / "elsewhere").rename(tmp_path / "audit.log")
    assert ask(server, "POST", "/v1/answer/200") == 200
    kill = "paul k1 POST /v1/experiments/4/kill"
    assert server.list_lines()[:3] == [f"{kill} begun", f"{kill} done 200", "paul k1 POST /v1/answer/200 begun"]


def test_many_refusals_of_an_address_are_counted(server: Server) -> None:
    for _ in range(50):
        assert ask(server, "GET", "/v1/answer/200", key="wrong") == 401
    ask(server, "GET", "/v1/answer/200", key="wrong", address="10.0.0.8")
    assert len(server.list_lines()) == 21
    server.now += timedelta(minutes=1)
    ask(server, "GET", "/v1/answer/200", key="wrong")
    assert server.list_lines()[-1].endswith("refused 401 and 30 more before")
    assert server.audit.verify().problem == ""
