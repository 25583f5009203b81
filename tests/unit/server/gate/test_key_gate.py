"""Which requests pass the gate of a listener on TCP, and as whose they do."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from riseml.base.errors import Refused, Unauthenticated
from riseml.model import Caller
from riseml.server.gate.key_gate import KeyGate
from riseml.server.gate.request_caller import get_caller
from tests.support.callers import ME

KEY = "riseml-0123456789abcdef"


class OneKey:
    """Knows one key."""

    def find_caller(self, token: str, address: str) -> Caller:
        if address == "10.0.0.9":
            raise Refused("too many attempts", "wait a minute")
        if token != KEY:
            raise Unauthenticated("the server does not take this key", None)
        return ME


def ask(kind: str, *headers: str, address: str = "10.0.0.1", path: str = "/v1/server") -> list[Message]:
    """Return what the gate sends for a request with these `Authorization` headers; nothing when the request passes."""
    sent: list[Message] = []

    async def api(scope: Scope, receive: Receive, send: Send) -> None:
        assert get_caller(scope) is ME

    async def receive() -> Message:
        return {"type": "http.request", "body": b""}

    async def send(message: Message) -> None:
        sent.append(message)

    scope: dict[str, Any] = {"type": kind, "method": "GET", "path": path, "client": (address, 4711)}
    scope["headers"] = [(b"authorization", header.encode()) for header in headers]
    scope["riseml.caller"] = "somebody"
    asyncio.run(KeyGate(api, OneKey())(scope, receive, send))
    return sent


@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_a_request_with_a_key_passes_as_one_of_its_user(kind: str) -> None:
    assert ask(kind, f"Bearer {KEY}") == ask(kind, f"bearer  {KEY}") == []


@pytest.mark.parametrize(
    "headers",
    [(), ("",), (f"Basic {KEY}",), (KEY,), (f"Bearer {KEY}x",), (f"Bearer {KEY}", f"Bearer {KEY}"), ("Bearer é",)],
)
def test_a_request_without_a_valid_key_is_refused(headers: tuple[str, ...]) -> None:
    start, body = ask("http", *headers)
    assert start["status"] == 401
    assert (b"www-authenticate", b"Bearer") in start["headers"]
    assert json.loads(body["body"])["error"]["kind"] == "Unauthenticated"
    assert ask("websocket", *headers) == [{"type": "websocket.close", "code": 1008}]


def test_a_refusal_of_the_authenticator_is_the_answer() -> None:
    start, body = ask("http", f"Bearer {KEY}", address="10.0.0.9")
    assert (start["status"], json.loads(body["body"])["error"]["message"]) == (403, "too many attempts")


def test_the_health_check_alone_needs_no_key() -> None:
    start, body = ask("http", path="/health")
    assert (start["status"], body["body"]) == (200, b"ok\n")
    assert ask("http", path="/health/")[0]["status"] == 401
    assert ask("websocket", path="/health") == [{"type": "websocket.close", "code": 1008}]
