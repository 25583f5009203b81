"""The caller of a request, as routes take it."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends
from starlette.requests import HTTPConnection

from riseml.model import Caller
from riseml.server.gate.request_caller import get_caller


async def _read_caller(connection: HTTPConnection) -> Caller:
    """Return who has sent a request or opened a stream. A coroutine, so that FastAPI needs no thread for it."""
    return get_caller(connection.scope)


CallerOf = Annotated[Caller, Depends(_read_caller)]
"""The parameter of a route that needs to know who calls: `def kill(name: Name, caller: CallerOf)`."""
