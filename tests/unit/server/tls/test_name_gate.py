"""What stands before the gate of a team's listener."""

from __future__ import annotations

import asyncio

import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Message, Receive, Scope, Send

from riseml.server.tls.name_gate import NameGate

NAMES = ("gpu1.example.org", "192.0.2.11", "::1")


async def answer(scope: Scope, receive: Receive, send: Send) -> None:
    await PlainTextResponse("yes")(scope, receive, send)


def ask(*headers: tuple[str, str], kind: str = "http") -> list[Message]:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    encoded = [(name.encode(), value.encode()) for name, value in headers]
    scope = {"type": kind, "method": "GET", "path": "/v1/server", "headers": encoded}
    asyncio.run(NameGate(answer, NAMES)(scope, receive, send))
    return sent


@pytest.mark.parametrize(
    "host", ["gpu1.example.org", "GPU1.example.org:8443", "192.0.2.11", "192.0.2.11:8443", "[::1]", "[::1]:8443"]
)
def test_its_own_names_pass_with_any_port(host: str) -> None:
    assert ask(("host", host))[0]["status"] == 200


@pytest.mark.parametrize(
    "hosts",
    [
        [],
        ["evil.example.org"],
        ["gpu1"],
        ["gpu1.example.org.evil.example.org"],
        ["gpu1.example.org", "gpu1.example.org"],
        ["gpu1.example.org@evil.example.org"],
        ["gpu1.example.org:port"],
        ["gpu1.example.org/x"],
        [""],
        ["192.0.2.12"],
    ],
)
def test_any_other_host_gets_421(hosts: list[str]) -> None:
    sent = ask(*(("host", host) for host in hosts))
    assert sent[0]["status"] == 421
    assert not any(name.startswith(b"access-control") for name, _ in sent[0]["headers"])


@pytest.mark.parametrize(
    "origin", ["https://evil.example.org", "null", "http://gpu1.example.org:8443", "https://gpu1.example.org", ""]
)
def test_a_foreign_page_gets_403_and_its_stream_is_closed(origin: str) -> None:
    host = ("host", "gpu1.example.org:8443")
    assert ask(host, ("origin", origin))[0]["status"] == 403
    assert ask(host, ("origin", origin), kind="websocket") == [{"type": "websocket.close", "code": 1008}]


def test_the_servers_own_page_passes() -> None:
    assert ask(("host", "gpu1.example.org:8443"), ("origin", "https://gpu1.example.org:8443"))[0]["status"] == 200
