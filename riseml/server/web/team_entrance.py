"""Who may use the page of a team's server, which is on its listener for keys, over TLS.

A user logs in with a key, and the server makes a session of this browser: the key is not kept there. The session ends
with the key that opened it. Its cookie is `__Host-riseml`: HttpOnly, Secure, SameSite=Strict, of this host alone. As at
127.0.0.1, a request needs the cookie and a proof that its page has made (`page_proofs`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from http import HTTPStatus
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request, cookie_parser
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import Receive, Scope

from riseml import wire
from riseml.base.errors import RisemlError, Unauthenticated
from riseml.server.clock import now
from riseml.server.gate.key_gate import Authenticator, is_still_valid
from riseml.server.gate.page_session import PageSession
from riseml.server.gate.refusals import refuse
from riseml.server.web.entrance import check_origin
from riseml.server.web.page_proofs import PageProofs
from riseml.store.sessions import LIVES, SESSION_PREFIX, SessionKind, SessionOrigin, SessionStore

COOKIE = "__Host-riseml"
"""The cookie of a session. Browsers take this name only with Secure, for all paths of one host, from that host."""

LOGIN = "/v1/login"
"""Begins the addresses that answer without a session and a key."""

_LONGEST_LOGIN = 4096  # bytes of a request


class _KeyLogin(BaseModel):
    """A key, from the form of the page."""

    model_config = ConfigDict(extra="forbid")

    key: Annotated[str, Field(min_length=1, max_length=512)]


class TeamEntrance:
    """The entrance of a team's server.

    Args:
        authenticator: knows keys and sessions.
        sessions: has the sessions.
        sign: returns the signature of a text with the key of the server.
        is_own_name: returns True for a `Host` under which the server answers.
        clock: returns the time of day.
    """

    no_session = ("this browser is not logged in", "log in again")

    def __init__(
        self,
        authenticator: Authenticator,
        sessions: SessionStore,
        sign: Callable[[str], str],
        is_own_name: Callable[[str], bool],
        clock: Callable[[], datetime] = now,
    ) -> None:
        self._authenticator = authenticator
        self._sessions = sessions
        self._is_own_name = is_own_name
        self._clock = clock
        self._proofs = PageProofs(sign)

    @property
    def proofs(self) -> PageProofs:
        """What checks the proofs of its pages."""
        return self._proofs

    def check_sender(self, scope: Scope) -> Response | None:
        """Return the refusal of a request under a foreign name, or from a foreign page."""
        hosts = Headers(scope=scope).getlist("host")
        if len(hosts) != 1 or not self._is_own_name(hosts[0]):
            return PlainTextResponse("This server does not answer under this name.\n", HTTPStatus.MISDIRECTED_REQUEST)
        return check_origin(scope, "https")

    async def answer(self, scope: Scope, receive: Receive) -> Response | None:
        """Return the answer at an address for those who log in; None: it is another address."""
        match scope["method"], scope["path"]:
            case "GET", "/v1/login":
                offers: wire.LoginOffers = {"keys": True, "provider": None}
                return JSONResponse(offers, headers={"Cache-Control": "no-store"})
            case "POST", "/v1/login/key":
                return await self._log_in_with_key(scope, receive)
            case _, path if path == LOGIN or path.startswith(f"{LOGIN}/"):
                hint = "`GET /v1/login` says how users log in"
                return refuse(HTTPStatus.NOT_FOUND, "the server has no such address", hint)
        return None

    async def find_session(self, scope: Scope) -> PageSession | None:
        """Return the session of a cookie that this server has given."""
        token = cookie_parser(Headers(scope=scope).get("cookie", "")).get(COOKIE, "")
        if not token.startswith(SESSION_PREFIX):  # a cookie never has a key
            return None
        try:
            # No address: an open page whose session has ended asks again and again, which is no attempt to guess a key.
            caller = await asyncio.to_thread(self._authenticator.find_caller, token, "")
        except Unauthenticated:
            return None
        return PageSession(
            caller.key,
            replace(caller, address=find_address(scope)),
            is_valid=lambda: is_still_valid(self._authenticator, token),
        )

    async def _log_in_with_key(self, scope: Scope, receive: Receive) -> Response:
        body = await _read_body(Request(scope, receive))
        try:
            key = _KeyLogin.model_validate_json(body or b"").key
        except ValidationError:
            return refuse(HTTPStatus.BAD_REQUEST, "the request has no key", 'send {"key": "riseml_..."}')
        try:
            caller = await asyncio.to_thread(self._authenticator.find_caller, key, find_address(scope))
        except RisemlError as error:
            return refuse(HTTPStatus(error.http_status), error.message, error.hint or "type the key again")
        if key.startswith(SESSION_PREFIX):  # a session opens no session
            return refuse(HTTPStatus.UNAUTHORIZED, "this is no key", "`riseml key create` makes one")
        return await asyncio.to_thread(self._open_session, scope, caller.user, caller.key)

    def _open_session(self, scope: Scope, user: str, key: str) -> Response:
        """Make a session of the browser. The page gets its page key in the answer, and the cookie beside it."""
        agent = Headers(scope=scope).get("user-agent", "")
        origin = SessionOrigin(user, SessionKind.PAGE, agent, find_address(scope), key)
        session, secret = self._sessions.open(origin, self._clock())
        login: wire.PageLogin = {"session": f"{session.id}.{self._proofs.make_key(session.id)}"}
        answer = JSONResponse(login, headers={"Cache-Control": "no-store"})
        set_session_cookie(answer, secret)
        return answer


def set_session_cookie(answer: Response, secret: str) -> None:
    """Give a browser the cookie of its session."""
    age = int(LIVES[SessionKind.PAGE].whole.total_seconds())
    answer.set_cookie(COOKIE, secret, max_age=age, path="/", secure=True, httponly=True, samesite="strict")


def find_address(scope: Scope) -> str:
    """Return the address of the client of a request."""
    client = scope.get("client")
    return str(client[0]) if client else ""


async def _read_body(request: Request) -> bytes | None:
    """Return the body of a request; None when it is too long, or does not come."""
    body = bytearray()
    try:
        async for piece in request.stream():
            body += piece
            if len(body) > _LONGEST_LOGIN:
                return None
    except ClientDisconnect:
        return None
    return bytes(body)
