"""Which requests pass the gate of a listener on TCP, and as whose they do."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from riseml.base.errors import Refused, StoreError, TooManyAttempts, Unauthenticated
from riseml.model import Caller
from riseml.server.gate import open_requests
from riseml.server.gate.key_gate import KeyGate
from riseml.server.gate.request_caller import get_caller
from tests.support.callers import ME

KEY = "riseml-0123456789abcdef"


class OneKey:
    """Knows one key."""

    def find_caller(self, token: str, address: str) -> Caller:
        if address == "10.0.0.9":
            raise Refused("too many attempts", "wait a minute")
        if address == "10.0.0.10":
            raise TooManyAttempts("too many keys", "wait 7 s", retry_after=7)
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


def test_an_address_that_has_to_wait_learns_for_how_long() -> None:
    start, body = ask("http", f"Bearer {KEY}", address="10.0.0.10")
    assert (start["status"], dict(start["headers"])[b"retry-after"]) == (429, b"7")
    assert json.loads(body["body"])["error"]["message"] == "too many keys"


def test_malformed_keys_are_answered_as_unknown_ones() -> None:
    tokens = (f"{KEY}x", "é", "two words", "x" * 20_000, "\x00", "\x7f")
    answers = {str(ask("http", f"Bearer {token}")) for token in tokens}
    assert len(answers) == 1


class EndingKey:
    """A key that is revoked after the first answer of the store; before that, the store may fail."""

    def __init__(self, *, failures: int = 0) -> None:
        self.addresses: list[str] = []
        self._failures = failures

    def find_caller(self, token: str, address: str) -> Caller:
        self.addresses.append(address)
        if len(self.addresses) == 1:
            return ME
        if len(self.addresses) <= 1 + self._failures:
            raise StoreError("the store is locked")
        raise Unauthenticated("this key is not valid")


@pytest.mark.parametrize("failures", [0, 2])
@pytest.mark.parametrize(
    ("kind", "begun", "ends"),
    [
        ("http", [], ["http.response.start", "http.response.body"]),
        ("http", [{"type": "http.response.start", "status": 200, "headers": []}], []),
        ("websocket", [], ["websocket.close"]),
        ("websocket", [{"type": "websocket.accept"}], ["websocket.close"]),
        ("websocket", [{"type": "websocket.accept"}, {"type": "websocket.close", "code": 1000}], []),
    ],
)
def test_an_open_request_ends_with_its_key(
    monkeypatch: pytest.MonkeyPatch, kind: str, begun: list[Message], ends: list[str], failures: int
) -> None:
    sent: list[Message] = []

    async def api(scope: Scope, receive: Receive, send: Send) -> None:
        for message in begun:
            await send(message)
        await asyncio.Event().wait()

    async def receive() -> Message:
        return {"type": "http.request", "body": b""}

    async def send(message: Message) -> None:
        sent.append(message)

    monkeypatch.setattr(open_requests, "PERIOD", 0.001)
    scope = {"type": kind, "method": "GET", "path": "/v1/server", "client": ("10.0.0.1", 4711)}
    key = EndingKey(failures=failures)
    asyncio.run(KeyGate(api, key)({**scope, "headers": [(b"authorization", b"Bearer x")]}, receive, send))
    assert sent[: len(begun)] == begun
    assert [message["type"] for message in sent[len(begun) :]] == ends
    assert key.addresses == ["10.0.0.1", *[""] * (1 + failures)], "asking again counts as no attempt"
    if ends[0:1] == ["http.response.start"]:
        assert sent[0]["status"] == 401


def test_the_health_check_alone_needs_no_key() -> None:
    start, body = ask("http", path="/health")
    assert (start["status"], body["body"]) == (200, b"ok\n")
    assert ask("http", path="/health/")[0]["status"] == 401
    assert ask("websocket", path="/health") == [{"type": "websocket.close", "code": 1008}]
