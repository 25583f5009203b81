"""The gate of a listener on TCP: it says who calls by the key that came with the request."""

from __future__ import annotations

import asyncio
import logging
import re
from http import HTTPStatus
from typing import Protocol

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from riseml.base.errors import RisemlError, Unauthenticated
from riseml.model import Caller
from riseml.server.gate.refusals import refuse
from riseml.server.gate.request_caller import set_caller

_BEARER = re.compile(r"Bearer +([\x21-\x7e]{1,512})", re.ASCII | re.IGNORECASE)
_HEALTH = "/health"  # the one address that answers without a key, for whoever watches whether the server is there

log = logging.getLogger(__name__)


class Authenticator(Protocol):
    """Knows keys and sessions. Threads call it."""

    def find_caller(self, token: str, address: str) -> Caller:
        """Return whose key or session this is.

        Args:
            token: as the client has sent it.
            address: of the client.

        Raises:
            Unauthenticated: nobody's, or it may not be used any more. All such tokens get one answer.
            RisemlError: the address has tried too many, or the store does not answer.
        """
        ...


class KeyGate:
    """The application at a listener on TCP; requests with a key go on to `api`, as those of the unix socket.

    Names of hosts and origins are checked before it (the listener knows its names).
    """

    def __init__(self, api: ASGIApp, authenticator: Authenticator) -> None:
        self._api = api
        self._authenticator = authenticator

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "http" and scope["path"] == _HEALTH and scope["method"] in ("GET", "HEAD"):
            await _answer_health(send)
            return
        try:
            set_caller(scope, await self._find_caller(scope))
        except RisemlError as error:
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
            else:
                answer = refuse(HTTPStatus(error.http_status), error.message, error.hint or "`riseml login` asks again")
                await answer(scope, receive, send)
            return
        await self._api(scope, receive, send)

    async def _find_caller(self, scope: Scope) -> Caller:
        """Return who sends a request.

        Raises:
            RisemlError: as `Authenticator.find_caller`.
        """
        headers = Headers(scope=scope).getlist("authorization")
        match = _BEARER.fullmatch(headers[0]) if len(headers) == 1 else None
        if match is None:
            raise Unauthenticated("this server answers with a key only", "`riseml login URL` asks for it")
        client = scope.get("client")
        return await asyncio.to_thread(self._authenticator.find_caller, match[1], client[0] if client else "")


async def _answer_health(send: Send) -> None:
    await send({"type": "http.response.start", "status": HTTPStatus.OK, "headers": [(b"content-type", b"text/plain")]})
    await send({"type": "http.response.body", "body": b"ok\n"})
