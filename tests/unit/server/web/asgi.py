"""Requests to an application, as the server that listens hands them over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.responses import PlainTextResponse
from starlette.types import Message, Receive, Scope, Send

HOST = "127.0.0.1:4711"


@dataclass
class Answer:
    """What came back."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)  # by lower-case name
    body: bytes = b""
    messages: list[Message] = field(default_factory=list)


class AnsweringApi:
    """An API that notes what reaches it, and answers the body of the request."""

    def __init__(self) -> None:
        self.scopes: list[Scope] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scopes.append(scope)
        if scope["type"] == "websocket":
            await send({"type": "websocket.accept"})
            return
        body = (await receive()).get("body", b"") if scope["method"] not in ("GET", "HEAD") else b""
        await PlainTextResponse(b"api:" + body)(scope, receive, send)


def make_scope(method: str, address: str, headers: Mapping[str, str], host: str) -> Scope:
    """Return a request: its headers are those of the caller, and `host`, if it has one."""
    path, _, query = address.partition("?")
    named = {**({"host": host} if host else {}), **headers}
    return {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(name.lower().encode(), value.encode()) for name, value in named.items()],
    }


def call(
    application: Callable[[Scope, Receive, Send], Coroutine[Any, Any, None]], scope: Scope, body: bytes = b""
) -> Answer:
    """Return the answer of an application."""
    answer = Answer()
    pieces = [body[start : start + 65536] for start in range(0, len(body), 65536)] or [b""]

    async def receive() -> Message:
        piece = pieces.pop(0)
        return {"type": "http.request", "body": piece, "more_body": bool(pieces)}

    async def send(message: Message) -> None:
        answer.messages.append(message)
        if message["type"] == "http.response.start":
            answer.status = message["status"]
            answer.headers = {name.decode().lower(): value.decode() for name, value in message["headers"]}
        answer.body += message.get("body", b"")

    asyncio.run(application(scope, receive, send))
    return answer
