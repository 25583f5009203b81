"""How many requests a key has under way at the same time."""

from __future__ import annotations

import asyncio

import pytest
from starlette.types import Message, Receive, Scope, Send

from riseml.base.roles import Role
from riseml.base.roles import Scope as KeyScope
from riseml.model import Caller, Owner
from riseml.server.gate.request_caller import set_caller
from riseml.server.tls import tls_connections
from riseml.server.tls.tls_connections import KeyLimit

MOST = 3


class HeldApi:
    """Answers when it may."""

    def __init__(self) -> None:
        self.may_answer = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.may_answer.wait()
        if scope["path"] == "/broken":
            raise RuntimeError("broken")
        await send({"type": "http.response.start", "status": 200, "headers": []})


async def ask(limit: KeyLimit, key: str, kind: str = "http", path: str = "/v1/server") -> list[int]:
    """Return the statuses of what the server sends: the code of a refused handshake, too."""
    sent: list[int] = []

    async def receive() -> Message:
        return {"type": "http.request"}

    async def send(message: Message) -> None:
        sent.extend(int(message[name]) for name in ("status", "code") if name in message)

    scope: Scope = {"type": kind, "method": "GET", "path": path, "headers": [], "state": {}}
    set_caller(scope, Caller(Owner("paul", 2001, 2001), Role.MEMBER, KeyScope.RUN, key=key))
    await limit(scope, receive, send)
    return sent


def test_a_key_has_so_many_requests_under_way_and_other_keys_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tls_connections, "MOST_REQUESTS", MOST)

    async def call() -> None:
        api = HeldApi()
        limit = KeyLimit(api)
        paths = ["/v1/server"] * (MOST - 1) + ["/broken"]
        held = [asyncio.create_task(ask(limit, "k1", path=path)) for path in paths]
        await asyncio.sleep(0)  # each one begins
        assert await ask(limit, "k1") == [429]
        assert await ask(limit, "k1", "websocket") == [1013]
        other = asyncio.create_task(ask(limit, "k2"))
        api.may_answer.set()
        assert await other == [200]
        ends = await asyncio.gather(*held, return_exceptions=True)
        assert ends[:-1] == [[200]] * (MOST - 1)
        assert isinstance(ends[-1], RuntimeError)
        again = await asyncio.gather(*(ask(limit, "k1") for _ in range(MOST)))
        assert again == [[200]] * MOST, "an answer and a failure give their places back"

    asyncio.run(call())
