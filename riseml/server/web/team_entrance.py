"""Who may use the page of a team's server, which is on its listener for keys, over TLS.

A user logs in with a key, and the server makes a session of this browser: the key is not kept there. The session ends
with the key that opened it. Its cookie is `__Host-riseml`: HttpOnly, Secure, SameSite=Strict, of this host alone. As at
127.0.0.1, a request needs the cookie and a proof that its page has made (`page_proofs`).

With a provider of OpenID Connect (`server.oidc`), a user logs in there instead, with a browser or for a command. The
cookie of a login that has begun is SameSite=Lax: it has to come back with the redirect of the provider, and opens
nothing by itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from html import escape
from http import HTTPStatus
from typing import Annotated
from urllib.parse import parse_qs

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request, cookie_parser
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.types import Receive, Scope

from riseml import wire
from riseml.base.api_keys import SESSION_PREFIX
from riseml.base.errors import RisemlError, Unauthenticated
from riseml.base.records import dataclass
from riseml.server.clock import now
from riseml.server.gate.key_gate import Authenticator, is_still_valid
from riseml.server.gate.page_session import PageSession
from riseml.server.gate.refusals import refuse
from riseml.server.gate.request_caller import Login, set_login
from riseml.server.oidc.admission import Admission
from riseml.server.oidc.device_login import DeviceLogins
from riseml.server.oidc.page_login import PAGE_LOGIN_LIFE, PageLogins
from riseml.server.oidc.provider import LoggedIn, Provider
from riseml.server.oidc.refresh import seal_refresh
from riseml.server.web.entrance import check_origin
from riseml.server.web.page_proofs import PageProofs
from riseml.store.sessions import LIVES, Session, SessionKind, SessionOrigin, SessionStore

COOKIE = "__Host-riseml"
"""The cookie of a session. Browsers take this name only with Secure, for all paths of one host, from that host."""

LOGIN = "/v1/login"
"""Begins the addresses that answer without a session and a key."""

_LOGIN_COOKIE = "__Host-riseml-login"
_LONGEST_LOGIN = 4096  # bytes of a request
_COMMAND_ADDRESSES = ("/v1/login/device", "/v1/login/device/session")
_BROWSER_ADDRESSES = ("/login/provider", "/login/return")
_NO_STORE = {"Cache-Control": "no-store"}


class _KeyLogin(BaseModel):
    """A key, from the form of the page."""

    model_config = ConfigDict(extra="forbid")

    key: Annotated[str, Field(min_length=1, max_length=512)]


class _DeviceQuestion(BaseModel):
    """A login of a command that has begun."""

    model_config = ConfigDict(extra="forbid")

    login: Annotated[str, Field(min_length=1, max_length=100)]


@dataclass(frozen=True, slots=True)
class ProviderLogins:
    """What logs users in at the organisation's provider."""

    provider: Provider
    admission: Admission
    pages: PageLogins
    devices: DeviceLogins


class TeamEntrance:
    """The entrance of a team's server.

    Args:
        authenticator: knows keys and sessions.
        sessions: has the sessions.
        sign: returns the signature of a text with the key of the server.
        clock: returns the time of day.
        logins: log users in at the organisation's provider; None: keys alone do.
    """

    no_session = ("this browser is not logged in", "log in again")

    def __init__(
        self,
        authenticator: Authenticator,
        sessions: SessionStore,
        sign: Callable[[str], str],
        clock: Callable[[], datetime] = now,
        logins: ProviderLogins | None = None,
    ) -> None:
        self._authenticator = authenticator
        self._sessions = sessions
        self._clock = clock
        self._logins = logins
        self._proofs = PageProofs(sign)

    @property
    def proofs(self) -> PageProofs:
        """What checks the proofs of its pages."""
        return self._proofs

    def check_sender(self, scope: Scope) -> Response | None:
        """Return the refusal of a request from a foreign page. The listener has checked the name before."""
        if scope["path"] in _COMMAND_ADDRESSES and not Headers(scope=scope).getlist("origin"):
            return None  # a command is no page
        return check_origin(scope, "https")

    async def answer(self, scope: Scope, receive: Receive) -> Response | None:
        """Return the answer at an address for those who log in; None: it is another address."""
        try:
            return await self._answer_login(scope, receive)
        except ValidationError:
            return refuse(
                HTTPStatus.BAD_REQUEST, "the request is not as this address wants it", "see `riseml docs json`"
            )
        except RisemlError as error:
            if scope["path"] in _BROWSER_ADDRESSES and "text/html" in Headers(scope=scope).get("accept", ""):
                return _show_failure(error)
            return refuse(HTTPStatus(error.http_status), error.message, error.hint or "log in again")

    async def _answer_login(self, scope: Scope, receive: Receive) -> Response | None:
        logins = self._logins
        match scope["method"], scope["path"]:
            case "GET", "/v1/login":
                offers: wire.LoginOffers = {"keys": True, "provider": None if logins is None else logins.provider.name}
                return JSONResponse(offers, headers=_NO_STORE)
            case "POST", "/v1/login/key":
                return await self._log_in_with_key(scope, receive)
            case "GET", "/login/provider" if logins is not None:
                return await asyncio.to_thread(_begin_page_login, logins.pages, scope)
            case "GET", "/login/return" if logins is not None:
                return await asyncio.to_thread(self._end_page_login, logins, scope)
            case "POST", "/v1/login/device" if logins is not None:
                return await asyncio.to_thread(_begin_device_login, logins.devices, find_address(scope))
            case "POST", "/v1/login/device/session" if logins is not None:
                name = _DeviceQuestion.model_validate_json(await _read_body(Request(scope, receive))).login
                return await asyncio.to_thread(self._end_device_login, logins, scope, name)
            case _, path if path == LOGIN or path.startswith((f"{LOGIN}/", "/login/")):
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
            ask_again=lambda: self._authenticator.find_caller(token, ""),
            is_valid=lambda: is_still_valid(self._authenticator, token),
        )

    async def _log_in_with_key(self, scope: Scope, receive: Receive) -> Response:
        key = _KeyLogin.model_validate_json(await _read_body(Request(scope, receive))).key
        caller = await asyncio.to_thread(self._authenticator.find_caller, key, find_address(scope))
        if key.startswith(SESSION_PREFIX):  # a session opens no session
            return refuse(HTTPStatus.UNAUTHORIZED, "this is no key", "`riseml key create` makes one")
        origin = _make_origin(scope, caller.user, SessionKind.PAGE, caller.key)
        session, secret = await asyncio.to_thread(self._sessions.open, origin, self._clock())
        set_login(scope, Login(caller.user, session.id))
        login: wire.PageLogin = {"session": self._name_for_page(session)}
        answer = JSONResponse(login, headers=_NO_STORE)
        set_session_cookie(answer, secret)
        return answer

    def _end_page_login(self, logins: ProviderLogins, scope: Scope) -> Response:
        """Give a session to the browser that the provider has sent back. The page key is behind `#`, as elsewhere."""
        query = {name: texts[0] for name, texts in parse_qs(scope["query_string"].decode("latin-1")).items()}
        cookie = cookie_parser(Headers(scope=scope).get("cookie", "")).get(_LOGIN_COOKIE, "")
        logged_in, page = logins.pages.finish(query, cookie)
        session, secret = self._open_session(logins, logged_in, scope, SessionKind.PAGE)
        answer = RedirectResponse(f"{page}#session={self._name_for_page(session)}", HTTPStatus.SEE_OTHER, _NO_STORE)
        set_session_cookie(answer, secret)
        answer.delete_cookie(_LOGIN_COOKIE, secure=True, httponly=True, samesite="lax")
        return answer

    def _end_device_login(self, logins: ProviderLogins, scope: Scope, name: str) -> Response:
        """Give a session to a command whose user has confirmed its login; or say when it may ask again."""
        answer = logins.devices.ask(name)
        if isinstance(answer, float):
            waiting: wire.DeviceSession = {"secret": None, "user": None, "wait": answer}
            return JSONResponse(waiting, headers=_NO_STORE)
        session, secret = self._open_session(logins, answer, scope, SessionKind.DEVICE)
        opened: wire.DeviceSession = {"secret": secret, "user": session.user, "wait": 0.0}
        return JSONResponse(opened, headers=_NO_STORE)

    def _open_session(
        self, logins: ProviderLogins, logged_in: LoggedIn, scope: Scope, kind: SessionKind
    ) -> tuple[Session, str]:
        """Make a session of someone who has logged in at the provider.

        Raises:
            Refused: they may not use this server.
        """
        set_login(scope, Login(logged_in.identity.name))
        moment = self._clock()
        user = logins.admission.admit(logged_in.identity, moment)
        session, secret = self._sessions.open(_make_origin(scope, user.name, kind), moment)
        sealed = None if logged_in.refresh is None else seal_refresh(logged_in.refresh, secret)
        self._sessions.note_check(session.id, sealed, moment)
        set_login(scope, Login(user.name, session.id))
        return session, secret

    def _name_for_page(self, session: Session) -> str:
        return f"{session.id}.{self._proofs.make_key(session.id)}"


def _show_failure(error: RisemlError) -> Response:
    """Return a page about a login that has failed, for the browser that the provider has sent back. It has no style
    and no script.
    """
    sentences = [f"{text[:1].upper()}{text[1:]}." for text in (error.message, error.hint) if text]
    words = "".join(f"<p>{escape(sentence)}</p>\n" for sentence in sentences)
    page = (
        '<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><title>Login to riseml</title></head>\n'
        f"<body>\n<h1>You are not logged in</h1>\n{words}"
        '<p><a href="/login/provider">Log in again</a> or <a href="/">go to the first page</a>.</p>\n</body>\n</html>\n'
    )
    return HTMLResponse(page, error.http_status, _NO_STORE)


def _make_origin(scope: Scope, user: str, kind: SessionKind, key: str = "") -> SessionOrigin:
    return SessionOrigin(user, kind, Headers(scope=scope).get("user-agent", ""), find_address(scope), key)


def _begin_page_login(pages: PageLogins, scope: Scope) -> Response:
    """Send a browser to the provider, from the one name to which it comes back."""
    query = scope["query_string"].decode("latin-1")
    if Headers(scope=scope)["host"] != pages.host:
        return RedirectResponse(f"https://{pages.host}/login/provider?{query}", HTTPStatus.SEE_OTHER, _NO_STORE)
    start = pages.begin(parse_qs(query).get("next", ["/"])[0])
    answer = RedirectResponse(start.url, HTTPStatus.SEE_OTHER, _NO_STORE)
    age = int(PAGE_LOGIN_LIFE)
    answer.set_cookie(_LOGIN_COOKIE, start.cookie, max_age=age, path="/", secure=True, httponly=True, samesite="lax")
    return answer


def _begin_device_login(devices: DeviceLogins, address: str) -> Response:
    name, start = devices.begin(address)
    login: wire.DeviceLogin = {
        "login": name,
        "code": start.user_code,
        "url": start.uri,
        "whole_url": start.whole_uri,
        "expires_in": start.expires_in,
        "interval": start.interval,
    }
    return JSONResponse(login, headers=_NO_STORE)


def set_session_cookie(answer: Response, secret: str) -> None:
    """Give a browser the cookie of its session."""
    age = int(LIVES[SessionKind.PAGE].whole.total_seconds())
    answer.set_cookie(COOKIE, secret, max_age=age, path="/", secure=True, httponly=True, samesite="strict")


def find_address(scope: Scope) -> str:
    """Return the address of the client of a request."""
    client = scope.get("client")
    return str(client[0]) if client else ""


async def _read_body(request: Request) -> bytes:
    """Return the body of a request; nothing when it is too long, or does not come."""
    body = bytearray()
    try:
        async for piece in request.stream():
            body += piece
            if len(body) > _LONGEST_LOGIN:
                return b""
    except ClientDisconnect:
        return b""
    return bytes(body)
