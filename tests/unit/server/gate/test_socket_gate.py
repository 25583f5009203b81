"""Which requests pass the gate of the unix socket."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from starlette.responses import PlainTextResponse
from starlette.types import Message, Receive, Scope, Send

from riseml.server.gate.request_caller import get_caller
from riseml.server.gate.socket_connections import SocketConnection
from riseml.server.gate.socket_gate import SocketGate
from riseml.server.http_config import configure_http
from tests.support.callers import ME
from tests.support.waiting import DEADLINE


def ask(kind: str, *headers: tuple[str, str], peer: int | None = os.getuid()) -> list[Message]:
    """Return what the gate sends for a request with these headers; nothing when the request passes."""
    sent: list[Message] = []

    async def api(scope: Scope, receive: Receive, send: Send) -> None:
        assert get_caller(scope) == ME, "the request has passed"

    async def receive() -> Message:
        return {"type": "http.request", "body": b""}

    async def send(message: Message) -> None:
        sent.append(message)

    raw = [(name.encode(), value.encode()) for name, value in headers]
    scope: dict[str, Any] = {"type": kind, "method": "GET", "path": "/", "headers": raw}
    scope["state"] = {} if peer is None else {"riseml-peer-user": peer}
    asyncio.run(SocketGate(api, ME)(scope, receive, send))
    return sent


@pytest.mark.parametrize("name", ["riseml", "localhost", "LOCALHOST:8000", "127.0.0.1:1", "[::1]:65535"])
def test_names_of_this_machine_pass(name: str) -> None:
    assert ask("http", ("host", name)) == []
    assert ask("websocket", ("host", name)) == []


@pytest.mark.parametrize(
    ("headers", "status", "message"),
    [
        ([("host", "evil.example")], 421, "answers as riseml and localhost only"),
        ([("host", "riseml.evil")], 421, "answers as riseml and localhost only"),
        ([("host", "riseml"), ("host", "riseml")], 421, "answers as riseml and localhost only"),
        ([], 421, "answers as riseml and localhost only"),
        ([("host", "riseml"), ("origin", "http://localhost")], 403, "comes from a web page"),
        ([("host", "riseml"), ("origin", "null")], 403, "comes from a web page"),
    ],
)
def test_what_a_web_page_sends_is_refused(headers: list[tuple[str, str]], status: int, message: str) -> None:
    start, body = ask("http", *headers)
    assert start["status"] == status
    assert message in json.loads(body["body"])["error"]["message"]
    assert ask("websocket", *headers) == [{"type": "websocket.close", "code": 1008}]


@pytest.mark.parametrize("peer", [os.getuid() + 1, 4_294_967_295, None])
def test_another_user_of_the_machine_is_refused(peer: int | None) -> None:
    start, body = ask("http", ("host", "riseml"), peer=peer)
    assert start["status"] == 401
    assert f"answers {ME.user} alone" in json.loads(body["body"])["error"]["message"]
    assert ask("websocket", ("host", "riseml"), peer=peer) == [{"type": "websocket.close", "code": 1008}]


def test_the_kernel_says_who_is_at_the_other_end(tmp_path: Path) -> None:
    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        await PlainTextResponse(get_caller(scope).user)(scope, receive, send)

    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "socket"))
    listener.listen(1)
    server = uvicorn.Server(configure_http(SocketGate(answer, ME), SocketConnection))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    transport = httpx.HTTPTransport(uds=str(tmp_path / "socket"))
    with httpx.Client(transport=transport, base_url="http://riseml", timeout=DEADLINE) as client:
        answers = [client.get("/", headers={"x-riseml-peer-user": "0"}).text for _ in range(2)]
    server.should_exit = True
    thread.join()
    assert answers == [ME.user] * 2
