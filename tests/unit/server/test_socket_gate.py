"""Which requests pass the gate of the unix socket."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from riseml.server.socket_gate import SocketGate


def ask(kind: str, *headers: tuple[str, str]) -> list[Message]:
    """Return what the gate sends for a request with these headers; nothing when the request passes."""
    sent: list[Message] = []

    async def api(scope: Scope, receive: Receive, send: Send) -> None:
        """Answer nothing: the request has passed."""

    async def receive() -> Message:
        return {"type": "http.request", "body": b""}

    async def send(message: Message) -> None:
        sent.append(message)

    raw = [(name.encode(), value.encode()) for name, value in headers]
    scope: dict[str, Any] = {"type": kind, "method": "GET", "path": "/", "headers": raw}
    asyncio.run(SocketGate(api)(scope, receive, send))
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
