"""The gate of a listener on TCP: it says who calls by the key that came with the request."""

from __future__ import annotations

import asyncio
import logging
import re
from contextlib import suppress
from http import HTTPStatus
from typing import Protocol

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from riseml.base.errors import RisemlError, TooManyAttempts, Unauthenticated
from riseml.model import Caller
from riseml.server.gate.open_requests import answer_while_valid
from riseml.server.gate.refusals import refuse
from riseml.server.gate.request_caller import set_caller
from riseml.server.gate.scrape_key import SCRAPER, ScrapeKey

_BEARER = re.compile(r"Bearer +(.+)", re.ASCII | re.IGNORECASE | re.DOTALL)
_LONGEST_TOKEN = 8192  # characters; what is longer is cut, and is nobody's
_METRICS = "/metrics"
_HEALTH = "/health"  # the one address that answers without a key, for whoever watches whether the server is there

log = logging.getLogger(__name__)


class Authenticator(Protocol):
    """Knows keys and sessions. Threads call it."""

    def find_caller(self, token: str, address: str) -> Caller:
        """Return whose key or session this is.

        Args:
            token: as the client has sent it.
            address: of the client; empty when the gate asks again about a request that is open: no failure is counted.

        Raises:
            Unauthenticated: nobody's, or it may not be used any more. All such tokens get one answer.
            RisemlError: the address has tried too many, or the store does not answer.
        """
        ...


class KeyGate:
    """The application at a listener on TCP; requests with a key go on to `api`, as those of the unix socket.

    Names of hosts and origins are checked before it (the listener knows its names).

    Args:
        api: answers.
        authenticator: knows keys and sessions.
        scrape_key: opens /metrics, and nothing else; None: only keys of users do.
    """

    def __init__(self, api: ASGIApp, authenticator: Authenticator, scrape_key: ScrapeKey | None = None) -> None:
        self._api = api
        self._authenticator = authenticator
        self._scrape_key = scrape_key

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "http" and scope["path"] == _HEALTH and scope["method"] in ("GET", "HEAD"):
            await _answer_health(send)
            return
        try:
            token = _find_token(scope)
            if await self._is_scrape(scope, token):
                set_caller(scope, SCRAPER)
                await self._api(scope, receive, send)
                return
            client = scope.get("client")
            address = client[0] if client else "unknown"
            caller = await asyncio.to_thread(self._authenticator.find_caller, token, address)
            set_caller(scope, caller, lambda: self._authenticator.find_caller(token, ""))
        except RisemlError as error:
            await _refuse(error, scope, receive, send)
            return
        answer = _OpenAnswer(send)
        running = self._api(scope, receive, answer.send)
        if not await answer_while_valid(running, lambda: is_still_valid(self._authenticator, token)):
            await answer.end(scope, receive)

    async def _is_scrape(self, scope: Scope, token: str) -> bool:
        """Return True for a request that only reads /metrics, with the key of the scraper."""
        is_read = scope["type"] == "http" and scope["path"] == _METRICS and scope["method"] in ("GET", "HEAD")
        return self._scrape_key is not None and is_read and await asyncio.to_thread(self._scrape_key.is_right, token)


def is_still_valid(authenticator: Authenticator, token: str) -> bool:
    """Return False when a token that has opened a request may not be used any more."""
    try:
        authenticator.find_caller(token, "")
    except Unauthenticated:
        return False
    except RisemlError as error:  # the store does not answer now: nobody can have revoked the key in it
        log.warning("an open request goes on, although nobody knows whether its key is valid: %s", error.message)
    return True


class _OpenAnswer:
    """How far the answer to a request has come."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._has_begun = False  # an HTTP answer, or the close of a WebSocket

    async def send(self, message: Message) -> None:
        """Send a message of the application."""
        if message["type"] in ("http.response.start", "websocket.close"):
            self._has_begun = True
        await self._send(message)

    async def end(self, scope: Scope, receive: Receive) -> None:
        """End a request whose answer was cancelled: an HTTP answer that has begun stays incomplete, so that the client
        notices.
        """
        if not self._has_begun:
            error = Unauthenticated("this key is not valid any more", "`riseml login` takes another one")
            with suppress(OSError):  # the client is gone
                await _refuse(error, scope, receive, self._send)


def _find_token(scope: Scope) -> str:
    """Return the key or session that came with a request.

    Raises:
        Unauthenticated: none came.
    """
    headers = Headers(scope=scope).getlist("authorization")
    match = _BEARER.fullmatch(headers[0]) if len(headers) == 1 else None
    if match is None:
        raise Unauthenticated("this server answers with a key only", "`riseml login URL` asks for it")
    return match[1][:_LONGEST_TOKEN]


async def _refuse(error: RisemlError, scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008})
        return
    answer = refuse(HTTPStatus(error.http_status), error.message, error.hint or "`riseml login` asks again")
    if isinstance(error, TooManyAttempts):
        answer.headers["Retry-After"] = str(error.retry_after)
    await answer(scope, receive, send)


async def _answer_health(send: Send) -> None:
    await send({"type": "http.response.start", "status": HTTPStatus.OK, "headers": [(b"content-type", b"text/plain")]})
    await send({"type": "http.response.body", "body": b"ok\n"})
