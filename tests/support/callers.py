"""Callers of requests, and the API as a caller reaches it without a listener."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from riseml.model import Caller
from riseml.server.gate.request_caller import set_caller
from riseml.server.gate.server_user import find_server_user

ME = find_server_user()
"""The user of the tests, as the unix socket knows them."""


def call_as(api: ASGIApp, caller: Caller = ME) -> ASGIApp:
    """The API behind a gate that takes every request for one of this caller."""

    async def gate(scope: Scope, receive: Receive, send: Send) -> None:
        set_caller(scope, caller)
        await api(scope, receive, send)

    return gate
